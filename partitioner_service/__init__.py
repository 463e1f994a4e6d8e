"""The partitioner service: a Faust app whose data plane routes tuples in a thread of its own.

A block's way through the data plane. `plane.loop` reads from the source, hands each block to the gate, and
writes what the gate lets out:

    kafka.source -> routing.gate -> routing.router ---------------------> kafka.sink
    owned input     at once, or     reading.parse: records to columns     frames, rejected records and offsets
    partitions      as whole        lateness, plan, worker, frames        in one transaction
                    micro-batches

| folder | what may live there |
|---|---|
| `web` | the pages of an instance |
| `plane` | the loop, and what it needs to turn |
| `begin` | what happens once, before the loop turns: checks, the claim of a query's beginning |
| `exchange` | what instances of one partitioner tell each other |
| `reports` | what an instance says about itself: telemetry, status, log lines, health |
| `kafka` | owned partitions, their committed state, the two ends of the data plane |
| `routing` | records to frames, without Kafka. The router calls the parser |
| `block` | a module: the slices that a block comes in as, and what is refused of them |
| `fetch` | records out of librdkafka without an object for each |
| `reading` | bytes to columns, a format in each folder or file |

A folder imports from the ones below it (`make lint` proves it). `app` is the Faust side: lifecycle, agents,
pages. The package may import `evenflow`, `topics` and `monitoring`.
"""
