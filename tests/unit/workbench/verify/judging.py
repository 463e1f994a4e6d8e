"""Records that the real router judges, and what `verify` says of its verdicts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from evenflow import partitioners
from evenflow.progress import PartitionState
from evenflow.settings import Settings
from partitioner_service.block import Slice
from partitioner_service.routing.router import Router
from workbench.verify import INPUT_SCHEMA, REJECTED_SCHEMA, RESULTS_SCHEMA, CommittedInput, Report, check


def judged(
    settings: Settings,
    values: list[dict[str, Any]],
    keys: Sequence[bytes | None],
    *,
    verified_by: Settings | None = None,
) -> tuple[Report, list[str]]:
    """What verify says of the partitioner's rejections, and these rejections' reasons by offset ('' for
    none).

    verified_by: the settings of verify. None: the same.
    """
    records = [json.dumps(value, ensure_ascii=False).encode() for value in values]
    router = Router(settings, partitioners.create("hashing", workers=1, seed=7))
    state = PartitionState(fingerprint=settings.fingerprint, topic_id="t", offset=0)
    routed = router.route(
        [Slice(0, 0, len(records) - 1, records, keys=keys if settings.query.key == "@key" else None)],
        {0: state},
    )
    reasons = [""] * len(records)
    for group in routed.rejections:
        for position in group.positions.tolist():
            reasons[position] = group.reason
    after = routed.states[0]
    committed = CommittedInput.of(0, after, settings.query)
    inputs = [
        {"partition": 0, "offset": i, "timestamp": 7, "key": key, "value": value}
        for i, (key, value) in enumerate(zip(keys, records, strict=True))
    ]
    rejected = [
        {**inputs[i], "reason": reason, "at_partition": 0, "at_offset": i, "omitted": False}
        for i, reason in enumerate(reasons)
        if reason
    ]
    for row in rejected:
        row.pop("timestamp")
    return (
        check(
            settings if verified_by is None else verified_by,
            pa.Table.from_pylist(inputs, schema=INPUT_SCHEMA),
            pa.Table.from_pylist(rejected, schema=REJECTED_SCHEMA),
            RESULTS_SCHEMA.empty_table(),
            [committed],
        ),
        reasons,
    )
