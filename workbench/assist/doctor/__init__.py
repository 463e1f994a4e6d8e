"""`evenflow doctor`: what is wrong on this machine or with the topics of a query, and what to do about it.

`checks` is the entry. Each check gives findings (`workbench.assist.findings`). Called by `cli.doctor`.
"""
