"""The end of a query, or of its name: what a query has left, removing it, and taking it along under another name.

May live here: finding, removing and copying what belongs to a stopped query. May not: anything that a running service
needs. Called by `evenflow reset` and `evenflow rename`.
"""
