"""What a query can say, through the whole pipeline: aggregates, expressions, keys, formats, views, code of
one's own.
"""
