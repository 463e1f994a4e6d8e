"""Micro-batches through the whole pipeline: two instances, one of them killed in mid-batch, and results
are exact.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evenflow.wire import decode_frame
from tests.pipeline.end_to_end import (
    Pipeline,
    Stream,
    assert_exact,
    committed,
    has_ended,
    make_settings,
    owners,
)
from tests.pipeline.planes import soon_missed, telemetry
from tests.pipeline.routed import records

pytestmark = [pytest.mark.pipeline, pytest.mark.long, pytest.mark.timeout(280)]

EVENT: dict[str, Any] = {"batch_interval": 1000}
PROCESSING: dict[str, Any] = {"batch_interval": 700, "batch_clock": "processing"}
FUSED, SPLIT = {"wiring": "fused"}, {"wiring": "split"}
REDUCE_TASKS = {"wiring": "fused", "reduce": "prompt"}


@pytest.mark.parametrize(
    ("name", "how", "spark"),
    [
        pytest.param("prompt", EVENT, REDUCE_TASKS, id="prompt-event-reduce-tasks"),
        pytest.param("dalton-batch", PROCESSING, SPLIT, id="dalton-batch-processing-split"),
        pytest.param("partly", EVENT, REDUCE_TASKS, id="partly-reduce-tasks"),
        pytest.param("time-based", PROCESSING, FUSED, id="time-based"),
        pytest.param("partly", PROCESSING, SPLIT, id="partly-split"),
        pytest.param("prompt", PROCESSING, SPLIT, id="prompt-processing-split"),
        pytest.param("dalton-batch", EVENT, FUSED, id="dalton-batch-event"),
        pytest.param("time-based", EVENT, SPLIT, id="time-based-split"),
        pytest.param("hashing", EVENT, FUSED, id="hashing"),
        pytest.param("shuffle", PROCESSING, FUSED, id="shuffle"),
        pytest.param("pkg", EVENT, FUSED, id="pkg"),
        pytest.param("cam", PROCESSING, FUSED, id="cam"),
    ],
)
def test_an_instance_killed_in_mid_batch_costs_time_and_nothing_else(
    kafka_settings: Any,
    query_name: str,
    tmp_path: Path,
    name: str,
    how: dict[str, Any],
    spark: dict[str, str],
) -> None:
    settings = make_settings(
        soon_missed(kafka_settings),
        query_name,
        tmp_path,
        query={"slide": "5s"} if name == "pkg" else {},
        partitioner={"name": name, "instances": 2, **how},
        spark={"buckets": 2, **spark},
    )
    stream = Stream(settings)
    with Pipeline(settings, tmp_path) as pipeline:
        for stage in ("aggregate",) if spark["wiring"] == "fused" else ("combine", "reduce"):
            pipeline.start(stage, "--until-ended")
        pipeline.start_instances(names=("a", "b"))

        def shared() -> bool:
            stream.write(50)
            return committed(settings) > 0 and owners(settings) == [2, 2]

        pipeline.wait_until(shared)

        def holds() -> bool:
            stream.write(50)
            told = [said.batches for said in telemetry(settings) if said.instance == "b"]
            return any(said is not None and said.count >= 2 and said.held for said in told)

        pipeline.wait_until(holds)
        pipeline.kill("b")
        stream.write(300)
        stream.end()
        pipeline.wait_until(lambda: has_ended(settings))
        pipeline.stop("a")
        pipeline.finish()
    assert_exact(stream)
    frames = [decode_frame(m.value(), fingerprint=settings.fingerprint) for m in records(settings, "routed")]
    batches = {(frame.header.session, frame.header.batch) for frame in frames if frame.batch.num_rows}
    assert len(batches) >= 2
    assert None not in {batch for _, batch in batches}
