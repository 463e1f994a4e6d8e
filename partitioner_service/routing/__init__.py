"""Records to frames, without Kafka: parsing, lateness, the plan in force, the partitioner,
one frame for each routed partition.

`gate` is the loop's entry. It decides whether a block is routed at once or waits until its micro-batch is
whole (`batches`). `router` has the records parsed (`reading`), judges and routes them. May live here: what
happens to records between reading from Kafka and writing to it. May not: Kafka clients, threads, clocks that
are not injected. Called by `plane` and `begin`.
"""
