"""The partitioner service: a Faust app whose data plane routes tuples in a thread of its own.

A block's way through the data plane:

    kafka.source -> reading.parse -> routing.router -> kafka.sink
    owned input     records to       lateness, plan,   frames, rejected records and offsets
    partitions      columns          worker, frames    in one transaction

| folder | what may live there |
|---|---|
| `web` | the pages of an instance |
| `plane` | the loop that calls these four steps, and what it needs to turn |
| `begin` | what happens once, before the loop turns: checks, the claim of a query's beginning |
| `exchange` | what instances of one partitioner tell each other |
| `reports` | what an instance says about itself: telemetry, status, log lines, health |
| `kafka` | owned partitions, their committed state, the two ends of the data plane |
| `routing` | columns to frames, without Kafka |
| `fetch` | records out of librdkafka without an object for each |
| `reading` | bytes to columns, a format in each folder or file |

A folder imports from the ones below it (`make lint` proves it). `app` is the Faust side: lifecycle, agents, pages. The
package may import `evenflow`, `topics` and `monitoring`.
"""
