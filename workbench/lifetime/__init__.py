"""The end of a query, or of its name: finding what a query has left,
and removing it or moving it to another name.

May live here: finding, removing and copying what belongs to a stopped query. May not: anything that a running
service needs. Called by `evenflow reset` and `evenflow rename`.
"""
