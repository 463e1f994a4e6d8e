"""The commands that need nothing but the library, and the frame that all commands share.

Admission rule: a command parses words, calls one function of the library and prints. One file per command, each with
`register(app)`. Figures go to standard output, everything else to standard error. Nothing heavy is imported before a
command runs.
"""
