"""Unit costs that other benchmarks have measured. `docs/measurements.md` says how, and on what machine.

An entry is the CPU seconds of one unit.
"""

from __future__ import annotations

DOCUMENTED = {
    "tuple_partitioned": 0.53e-6,
    "tuple_brokered": 0.3e-6,
    "row_emitted": 1.4e-6,
    "frame_scanned": 2 / 1.1e6,
    "micro_batch": 0.36,
}
"""tuple_partitioned is of `service-partitioner-evenflow`. tuple_brokered is of a broker without replicas: to
take a tuple in (0.19, a producer of 6 M tuples), to give it out and to take its frame in (0.08,
`service-partitioner-evenflow`), and to give the frame out (0.03). row_emitted is from `service-results`, for
JSON rows. frame_scanned is from Spark's bare Kafka scan, 1.1 M records/s on two cores. It charges both cores
in full, so it is an upper bound. micro_batch is from the rows of a live run, where driver and executor are
one JVM: an upper bound, too."""
