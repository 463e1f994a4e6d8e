"""The services' commands: one file per command, each with `register(app)`. The library's are in `evenflow.commands`.

A command parses words, calls one function of a room below and prints. Figures go to standard output,
everything else to standard error.
"""
