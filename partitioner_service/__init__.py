"""The partitioner service: a Faust app whose data plane routes tuples in a thread of its own.

A block's way through the data plane, one file each: `source` (Kafka in, ownership and committed
state) -> `parse` (records to columns) -> `route` (lateness, partitioner, frames) -> `sink` (Kafka out,
transactions). `loop` calls these four steps one after the other, and `plane` opens the parts and runs the
loop. `in_force` says which plan is followed. `reports` says what the controller hears. `app` is the Faust
side: lifecycle, plan agent, status page. This package may import `evenflow`, `topics` and `monitoring`.
"""
