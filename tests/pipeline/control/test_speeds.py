"""Speeds of workers that are measured by real Spark reach real partitioners, and results stay exact."""

from pathlib import Path

import numpy as np
import pytest

from evenflow.settings import KafkaSettings
from evenflow.telemetry import BatchRecord, parse
from tests.pipeline.end_to_end import Pipeline, Stream, assert_exact, make_settings
from tests.pipeline.planes import telemetry
from tests.pipeline.routed import records

pytestmark = [pytest.mark.pipeline, pytest.mark.timeout(280), pytest.mark.long]


def test_a_slow_worker_of_the_real_pipeline_gets_less_and_results_are_exact(
    kafka_settings: KafkaSettings, query_name: str, tmp_path: Path
) -> None:
    """The tuples of worker 0 take eight times as long as others'. Only the time that Spark measures tells
    it apart.
    """
    settings = make_settings(
        kafka_settings,
        query_name,
        tmp_path,
        partitioner={"name": "evenflow", "speeds": "measured", "web_port": 0},
        spark={"combine_wait": [800, 100, 100]},
    )
    stream = Stream(settings)
    with Pipeline(settings, tmp_path) as pipeline:
        pipeline.start("partition", "--until-ended")
        pipeline.start("aggregate", "--until-ended")
        loads = [np.zeros(3)]

        def slow_has_less() -> bool:
            stream.write(300)
            reported = telemetry(settings)
            if reported and reported[-1].loads != loads[-1].tolist():
                loads.append(np.array(reported[-1].loads))
            # Of the last five reports, without what was sent before anything was measured.
            sent = loads[-1] - loads[max(0, len(loads) - 6)]
            return len(loads) > 6 and bool(sent[0] < 0.6 * sent[1:].mean())

        pipeline.wait_until(slow_has_less, timeout=120)
        assert "the slowest is worker 0" in pipeline.running["partition"].output()
        stream.end()
        pipeline.finish()
    assert_exact(stream)


@pytest.mark.parametrize("wiring", ["fused", "split"])
def test_both_instances_are_told_how_long_tuples_take_and_results_are_exact(
    kafka_settings: KafkaSettings, query_name: str, tmp_path: Path, wiring: str
) -> None:
    settings = make_settings(
        kafka_settings,
        query_name,
        tmp_path,
        partitioner={"name": "evenflow", "speeds": "measured", "instances": 2, "web_port": 0},
        spark={"wiring": wiring, "combine_wait": 20},
    )
    stream = Stream(settings)
    with Pipeline(settings, tmp_path) as pipeline:
        pipeline.start_instances("--until-ended", names=("a-0", "b-1"))
        for stage in ["aggregate"] if wiring == "fused" else ["combine", "reduce"]:
            pipeline.start(stage, "--until-ended")
        stream.write(500)

        def combined() -> bool:
            told = [parse(message.value()) for message in records(settings, "telemetry")]
            return any(isinstance(one, BatchRecord) and "combine" in one.parts for one in told)

        def both_told() -> bool:
            stream.write(500)
            logs = [pipeline.running[name].output() for name in ("a-0", "b-1")]
            return all("speeds of the workers, as measured" in log for log in logs)

        # So the stream is as long as it has to be, and no longer.
        pipeline.wait_until(combined)
        pipeline.wait_until(both_told)
        stream.write(1_000)
        stream.end()
        pipeline.finish()
    assert_exact(stream)
