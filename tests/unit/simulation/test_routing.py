"""What is run before the clock is: whatever would be compiled later on."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.partitioners import names
from evenflow.partitioners.dalton.cooperative import DaltonCooperative
from evenflow.partitioners.dalton.messages import SyncMessage
from evenflow.simulation import Scenario, entrant, generated
from evenflow.simulation.routing import warm_up, warm_up_times

SCENARIOS = [Scenario(workers=5, window_ms=60_000, slide_ms=1_000), Scenario(workers=5)]


@given(lengths=st.lists(st.integers(1, 2**60), max_size=4))
def test_a_warm_up_stays_in_one_slide_and_then_passes_over_two_of_every_length(lengths: list[int]) -> None:
    times = warm_up_times(lengths)
    assert (np.diff(times) >= 0).all()
    assert (times == 0).sum() == len(times) / 2
    assert times[-1] >= 2 * max(lengths, default=0)


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("name", names())
def test_every_partitioner_is_warmed_up(name: str, scenario: Scenario) -> None:
    stream = generated("zipf", tuples=5_000, keys=100, rate=10_000)
    assert warm_up(stream, entrant(name), scenario).observe().tuples == 2_000


@pytest.mark.parametrize("text", ["dalton-cooperative", "dalton-cooperative:dsync_ms=4000"])
@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("tuples", [1, 5_000])
def test_the_warm_up_of_a_dalton_that_tells_others_ends_its_second_interval(
    text: str, scenario: Scenario, tuples: int
) -> None:
    stream = generated("zipf", tuples=tuples, keys=100, rate=10_000)
    scratch = warm_up(stream, entrant(text), scenario)
    assert isinstance(scratch, DaltonCooperative)
    assert scratch.awaiting
    assert scratch._stats["window"] >= 2
    message = scratch.tell(0)
    assert message is not None
    assert len(SyncMessage.from_bytes(message.body).keys)
