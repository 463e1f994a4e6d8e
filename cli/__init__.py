"""The services' commands: one file per command, each with `register(app)`.
The library's are in `evenflow.commands`.

A command parses its words, calls one function of a lower package, and prints. Figures go to standard output,
everything else to standard error.
"""
