"""The live environment on a real pipeline: its steps change the workers while tuples flow, and results are
exact.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import gymnasium
import pytest

import controller.live
from evenflow.wire import decode_frame
from tests.pipeline.end_to_end import Pipeline, Stream, assert_exact, committed, make_settings
from tests.pipeline.routed import records

pytestmark = [pytest.mark.pipeline, pytest.mark.long, pytest.mark.timeout(400)]


def test_steps_of_the_live_environment_scale_a_pipeline_and_all_results_are_exact(
    kafka_settings: Any, query_name: str, tmp_path: Path
) -> None:
    settings = make_settings(
        kafka_settings,
        query_name,
        tmp_path,
        partitioner={"workers": 2, "routed_partitions": 6},
        spark={"batch_interval": 500},
        control={"scale_in_wait": 0, "group": 2},
    )
    stream, over = Stream(settings), threading.Event()

    def feed() -> None:
        while not over.wait(0.1):
            stream.write(20)

    feeder = threading.Thread(target=feed)
    with Pipeline(settings, tmp_path) as pipeline:
        pipeline.start("aggregate", "--until-ended")
        pipeline.start("partition", "--until-ended")
        feeder.start()
        try:
            pipeline.wait_until(lambda: committed(settings) > 0)
            environment = gymnasium.make(controller.live.ID, settings=settings)
            seen, info = environment.reset(seed=1)
            assert environment.observation_space.contains(seen)
            assert info["in_force"][0] == 2
            in_force = []
            for workers in (5, 2):
                seen, reward, _, _, info = environment.step(workers)
                assert environment.observation_space.contains(seen)
                assert -1 <= reward <= 0
                in_force.append(info["in_force"][0])
            environment.close()
        finally:
            over.set()
            feeder.join()
        assert in_force == [5, 2]
        stream.end()
        pipeline.finish()
    assert_exact(stream)
    used: dict[int, set[int]] = {}
    for message in records(settings, "routed"):
        frame = decode_frame(message.value(), fingerprint=settings.fingerprint)
        if frame.batch.num_rows:
            used.setdefault(frame.header.epoch, set()).add(message.partition())
    assert used[0] <= {0, 1}
    assert len(used[1]) > 2
    assert used[2] <= {0, 1}
