"""Columns to frames, without Kafka: lateness, the plan in force, the partitioner, one frame for each worker.

`router` is the entry. `gate` decides whether a block is routed at once or waits until its micro-batch is whole
(`batches`). May live here: what happens to tuples between reading and writing. May not: Kafka clients, threads, clocks
that are not injected. Called by `plane` and `begin`.
"""
