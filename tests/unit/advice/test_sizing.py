"""Workers, instances and partitions."""

import pytest

from evenflow.advice.sizing import MOST_WORKERS, UTILISATION, Wishes, size
from evenflow.errors import ConfigError


def test_workers_as_asked_or_as_in_the_settings() -> None:
    asked = size(Wishes(workers=5), rate=None)
    assert (asked.workers, asked.reasons[0]) == (5, "5 workers, as asked")
    assert size(Wishes(present_workers=3), rate=None).workers == 3


@pytest.mark.parametrize(("rate", "capacity"), [(100_000, 10_000), (1, 10_000), (12_345, 999)])
def test_the_fullest_worker_that_is_tolerated_stays_within_what_is_planned(
    rate: float, capacity: float
) -> None:
    wishes = Wishes(capacity=capacity, rate=rate, tolerance=0.1)
    workers = size(wishes, rate=rate).workers
    assert rate * 1.1 / workers <= UTILISATION * capacity
    assert workers == 1 or rate * 1.1 / (workers - 1) > UTILISATION * capacity


def test_the_most_workers_leave_room_and_what_is_set_stays_if_it_is_enough() -> None:
    def most(**wishes: int) -> tuple[int, int]:
        fits = size(Wishes(**wishes), rate=None)
        return fits.max_workers, fits.routed_partitions

    assert most(workers=6) == (12, 12)
    assert most(workers=6, present_max_workers=7, present_routed_partitions=7) == (7, 7)
    assert most(workers=6, present_max_workers=8, present_routed_partitions=4) == (8, 4)
    assert most(workers=6, present_max_workers=5, present_routed_partitions=5) == (12, 12)
    assert most(workers=500) == (1_000, 63)
    assert most(workers=MOST_WORKERS) == (MOST_WORKERS, 64)


def test_input_partitions_are_enough_for_twice_the_instances_that_the_rate_needs() -> None:
    slow, fast = (size(Wishes(), rate=rate) for rate in (1_000, 4_500_000))
    assert (slow.instances, slow.input_partitions) == (1, 4)
    assert (fast.instances, fast.input_partitions) == (8, 16)
    assert size(Wishes(instances=3), rate=None).input_partitions == 6


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"workers": 0}, "workers must be at least 1, not 0"),
        ({"workers": 1025}, "workers must be at most 1,024, not 1,025"),
        ({"instances": 0}, "instances must be at least 1"),
        ({"capacity": 0}, "capacity must be more than 0 tuples per second"),
        ({"rate": float("inf")}, "rate must be more than 0 tuples per second"),
        ({"rate": float("nan")}, "rate must be more than 0 tuples per second"),
        ({"tolerance": -0.1}, "tolerance must be at least 0"),
        ({"merge_cost": float("nan")}, "merge_cost must be at least 0"),
        ({"workers": 4, "capacity": 9}, "both say how many workers"),
    ],
)
def test_wishes_out_of_range_are_refused(fields: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Wishes(**fields)


def test_what_cannot_be_counted_is_said() -> None:
    with pytest.raises(ConfigError, match="nothing without a rate"):
        size(Wishes(capacity=9), rate=None)
    with pytest.raises(ConfigError, match=r"need 137,500,000 workers, more than the 1,024"):
        size(Wishes(capacity=1), rate=1e8)
