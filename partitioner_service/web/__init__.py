"""The pages of an instance, and the address on which they are served.

May live here: what becomes of figures in a browser. May not: figures of its own, and anything that changes a
query. Called by `app`.
"""
