"""Batches as they stand in the log: those that cannot be fetched, and those that grow into too much memory.

Called by the partitioner service, `evenflow skip` and `evenflow status`.
"""
