"""How records come from the broker into the process: what one fetch holds, and the fetchers that get it.

Only what knows librdkafka or confluent-kafka's messages lives here. What the records mean is for `slices`.
`source` is the only caller.
"""
