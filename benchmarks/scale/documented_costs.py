"""Unit costs that other benchmarks have measured. `docs/measurements.md` says how, and on what machine.

An entry is the CPU seconds of one unit.
"""

from __future__ import annotations

DOCUMENTED = {
    "tuple_partitioned": 0.9e-6,
    "tuple_brokered": 0.5e-6,
    "row_emitted": 1.4e-6,
    "frame_scanned": 2 / 1.1e6,
    "micro_batch": 0.36,
}
"""tuple_partitioned and tuple_brokered are from `growth-service` with 8 x 4 partitions and a broker without
replicas. row_emitted is from `service-results`, for JSON rows. frame_scanned is from Spark's bare Kafka scan,
1.1 M records/s on two cores. It charges both cores in full, so it is an upper bound. micro_batch is from the
rows of a live run, where driver and executor are one JVM: an upper bound, too."""
