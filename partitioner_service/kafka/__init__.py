"""Kafka in and out: owned partitions, their committed state, records as slices,
frames and offsets in one transaction.

`source` and `sink` are the two ends. May live here: whatever calls a Kafka client for the data plane, and
what it keeps of partitions for that. May not: decisions about tuples. Called by `plane`, `begin` and
`reports`.
"""
