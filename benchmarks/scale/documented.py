"""Unit costs that the other benchmarks have measured. Docs/measurements.md says how, and on what machine.

An entry is CPU seconds of one.
"""

from __future__ import annotations

DOCUMENTED = {
    "tuple_partitioned": 0.9e-6,
    "tuple_brokered": 0.5e-6,
    "row_emitted": 1.4e-6,
    "frame_scanned": 2 / 1.1e6,
}
"""tuple_partitioned, tuple_brokered: `growth-service`, 8 x 4 partitions (the broker without replicas). row_emitted:
JSON rows, `service-results`. frame_scanned: Spark's bare Kafka scan, 1.1 M records/s on two cores, so an upper bound."""
