"""How records come from the broker into the process: what one fetch holds, and the ways to fetch.

Only what knows librdkafka or confluent-kafka's messages lives here. What the records mean is for `slices`.
`source` is the only caller.
"""
