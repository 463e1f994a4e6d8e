"""The data plane: one thread that reads a block, routes it, writes it, and commits every so often.

`data_plane` is what the rest of the process sees. `opening` opens all that the loop works with, in the one
order that is right, and `loop` calls the steps one after the other. May live here: what decides when a step
is taken. May not: what a step does with tuples (`routing`) or with Kafka (`kafka`). Called by `app`.
"""
