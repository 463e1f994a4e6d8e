"""From a demand to a pipeline: what the plan promises holds in the model, and its lines are settings that
say the same.
"""

import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from evenflow.elasticity.demand import executors
from evenflow.errors import ConfigError
from evenflow.scale import Demand, breaks, measured, overlay_lines, settings_lines, shortest_delay, sizes
from evenflow.scale.sizes import BATCH_SHARE, BROKER_SHARE, INSTANCE_SHARE, TRANSACTION_SHARE, Sizes
from evenflow.settings import Settings, load_settings

ROOT = Path(__file__).parents[3]
EXAMPLE = Demand(rate=1e7, workers=1_000, keys=10**7, delay=5.0)
MEASUREMENTS, _ = measured()


def planned(demand: Demand = EXAMPLE) -> Sizes:
    return sizes(demand, MEASUREMENTS)


def loaded(plan: Sizes) -> Settings:
    tables = tomllib.loads(settings_lines(plan))
    return load_settings(None, query={"window": "60s", "slide": "1s"}, **tables)


demands = st.builds(
    Demand,
    rate=st.sampled_from([2e3, 1e5, 1e6, 1e7]),
    workers=st.sampled_from([1, 8, 64, 1_000]),
    keys=st.sampled_from([1, 100, 10**6, 10**8]),
    delay=st.floats(0.5, 30),
    zipf=st.sampled_from([0.0, 1.0, 2.0]),
    work=st.sampled_from([0.0, 20e-6]),
)


@settings(max_examples=12, deadline=None)
@given(demands)
def test_a_plan_that_fits_keeps_the_delay_and_every_place_within_what_is_planned_for(demand: Demand) -> None:
    plan = planned(demand)
    assert plan.shape.delay <= demand.delay + 1e-9
    assert loaded(plan).partitioner.workers == demand.workers, (
        "its lines are settings, whether it fits or not"
    )
    if plan.misfits:
        return
    busy = plan.busy()
    assert busy["instances"] <= INSTANCE_SHARE + 1e-9
    assert max(busy["brokers"], busy["network"]) <= BROKER_SHARE + 1e-9
    assert busy["micro-batch"] <= BATCH_SHARE + 1e-9
    assert busy["transaction"] <= TRANSACTION_SHARE + 1e-9
    assert max(busy.values()) < 1


def test_the_lines_make_spark_ask_for_as_many_executors_as_are_planned() -> None:
    for demand in (EXAMPLE, replace(EXAMPLE, rate=1e6, workers=64, work=20e-6, delay=4.0)):
        plan = planned(demand)
        made = loaded(plan)
        asked = executors(made, ("combine", "reduce"), p=demand.workers, r=made.reducers)
        assert asked == plan.executors
        assert made.spark.combine_tasks is not None
        assert made.spark.combine_tasks <= plan.shape.executor_cores
        assert made.frames_per_batch >= 2 * plan.frames_per_batch


def test_patches_of_the_overlay_name_containers_that_the_manifests_have() -> None:
    parts, pool, *_ = overlay_lines(planned()).split("\n\n")
    base = {}
    for part in ("partitioner", "spark"):
        with open(ROOT / "k8s" / "base" / f"{part}.yaml", encoding="utf-8") as file:
            base |= {(one["kind"], one["metadata"]["name"]): one for one in yaml.safe_load_all(file) if one}
    patches = list(yaml.safe_load_all(parts))
    assert len(patches) == 3
    for patch in patches:
        containers = base[patch["kind"], patch["metadata"]["name"]]["spec"]["template"]["spec"]["containers"]
        (patched,) = patch["spec"]["template"]["spec"]["containers"]
        assert patched["name"] in {one["name"] for one in containers}
    assert yaml.safe_load(pool)["spec"]["replicas"] == planned().shape.brokers


def test_what_breaks_first_stands_first_and_is_full_at_its_multiple() -> None:
    plan = planned()
    result = breaks(plan)
    times = [one.times for one in result if one.times is not None]
    assert times == sorted(times)
    first = result[0]
    assert first.times is not None
    assert first.times > 1
    faster = replace(plan.shape, rate=first.times * plan.shape.rate)
    assert plan.busy(faster)[first.place] == pytest.approx(1, rel=0.02)
    assert 0 < shortest_delay(plan) < plan.shape.delay


def test_more_to_do_needs_no_less() -> None:
    few, many = planned(replace(EXAMPLE, rate=1e6, workers=100)), planned()
    assert (few.shape.instances, few.shape.brokers, few.executors) <= (
        many.shape.instances,
        many.shape.brokers,
        many.executors,
    )
    hard = planned(replace(EXAMPLE, rate=1e6, work=100e-6))
    assert hard.shape.executor_cores > 100, "a tuple costs 100 us, so 100 cores are not enough"


@pytest.mark.parametrize(("workers", "routed"), [(8, {8}), (128, {128}), (1_000, {63, 125, 250, 500, 1_000})])
def test_workers_share_no_fewer_partitions_than_evenflow_itself_chooses(
    workers: int, routed: set[int]
) -> None:
    shape = planned(replace(EXAMPLE, rate=1e6, workers=workers)).shape
    assert shape.routed in routed
    assert shape.workers == pytest.approx(workers)


def test_what_no_pipeline_can_do_is_said() -> None:
    assert any("micro-batch" in why for why in planned(replace(EXAMPLE, delay=0.6)).misfits)
    assert any("256 instances" in why for why in planned(replace(EXAMPLE, rate=1e10)).misfits)
    assert any("micro-batch" in why for why in planned(replace(EXAMPLE, work=200e-6)).misfits)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"rate": 0.0}, "rate must be more than 0"),
        ({"rate": float("inf")}, "rate must be more than 0"),
        ({"workers": 0}, "workers must be at least 1"),
        ({"workers": 2_000}, "more than the 1,024 that a query may have"),
        ({"rate": 500.0}, "1,000 workers for 500 tuples a second"),
        ({"keys": 0}, "keys must be at least 1"),
        ({"delay": 0.1}, "a delay of 0.1 s is too short"),
        ({"slide": 7.0}, "not a whole number of slides"),
        ({"zipf": -1.0}, "0 to 10"),
        ({"work": 2.0}, "0 to 1 second"),
    ],
)
def test_a_demand_that_no_pipeline_can_have_is_refused(wrong: dict[str, float], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        replace(EXAMPLE, **wrong)
