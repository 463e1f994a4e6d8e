"""The windows again, in SQL: panes, windows, aggregates, the rows that are emitted,
and how far results reach.

Called by the core of verify. Code that shows results to people uses the aggregates' SQL, too.
"""
