"""Blocks of JSON records: the grammar as kernels, one compiled pass over the block, and its cells.

Called by `columns` and `elements`.
"""
