"""Records of a schema registry, read by other code than the partitioner's: Avro by fastavro,
Protobuf by Google's library.

May live here: what reads the values of a record for `verify` and for a look at a sample. May not: the
partitioner's kernels.

fastavro believes what a record says. A record of 10 kB with 10,000 levels overflows its stack, which ends the
process. So `avro_walk` goes through the bytes first, and refuses what the partitioner has to refuse. Every
value comes from fastavro. Google's library makes an object of each message, so it gets to see one level of
messages at a time (`protobuf`).
"""
