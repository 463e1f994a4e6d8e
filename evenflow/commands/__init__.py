"""The commands that need nothing but the library, and the frame that all commands share.

Admission rule: a command parses its options, calls one function of the library and prints the result. Each
command has its own file with `register(app)`. Figures go to standard output, everything else goes to standard
error. Heavy modules are imported only when a command runs, inside its functions.
"""
