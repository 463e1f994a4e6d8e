"""Sources that tell each other what they know: who does, what it changes, and what it is good for."""

import numpy as np
import pytest

from evenflow.partitioners import names
from evenflow.simulation import KeyedStream, Scenario, entrant, generated, simulate
from evenflow.simulation import routing as routing_module
from evenflow.simulation.routing import Routed, route
from evenflow.simulation.streams import rank_hashes

ABLE = ("evenflow", "dalton-cooperative")
WINDOW = {"window_ms": 10_000, "slide_ms": 1_000}


def mixed(tuples: int, *, keys: int, seed: int) -> KeyedStream:
    """Three sources of four see a uniform stream, the last one Zipf 1.5."""
    rng = np.random.default_rng(seed)
    ranks = rng.integers(0, keys, tuples)
    shares = np.cumsum(np.arange(1, keys + 1) ** -1.5)
    ranks[3::4] = np.searchsorted(shares / shares[-1], rng.random(len(ranks[3::4])))
    times = np.arange(tuples, dtype=np.int64)
    return KeyedStream(rank_hashes(keys)[ranks], ranks.astype(np.int32), times, keys, tuples)


def routed(stream: KeyedStream, text: str, *, exchange: bool, **scenario: object) -> Routed:
    given = {"workers": 16, "sources": 4, **WINDOW, **scenario}
    return route(stream, entrant(text), Scenario(exchange=exchange, **given))


@pytest.mark.parametrize("name", names())
def test_who_cannot_exchange_is_unchanged_and_who_can_says_so(name: str) -> None:
    stream = generated("zipf", tuples=8_000, keys=300, zipf=1.4)
    off, on = (routed(stream, name, exchange=exchange, workers=6) for exchange in (False, True))
    assert (off.exchanged, on.exchanged) == (False, name in ABLE)
    assert (off.workers.tolist() == on.workers.tolist()) == (name not in ABLE)


def test_one_evenflow_has_nobody_to_hear() -> None:
    stream = generated("shift", tuples=30_000, keys=2_000, zipf=1.4)
    off, on = (routed(stream, "evenflow", exchange=exchange, sources=1) for exchange in (False, True))
    assert on.workers.tolist() == off.workers.tolist()


@pytest.mark.parametrize("window", [WINDOW, {"window_ms": None, "slide_ms": 500}])
def test_one_cooperative_dalton_is_dalton(window: dict) -> None:
    stream = generated("zipf", tuples=30_000, keys=2_000, zipf=1.4)
    cooperative = routed(stream, "dalton-cooperative", exchange=True, sources=1, **window)
    dalton = routed(stream, "dalton", exchange=False, sources=1, **window)
    assert cooperative.workers.tolist() == dalton.workers.tolist()


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_evenflows_that_hear_each_other_level_what_one_of_them_cannot(seed: int) -> None:
    stream = mixed(60_000, keys=3_000, seed=seed)
    off, on = (_imbalance(stream, "evenflow", seed, exchange=exchange) for exchange in (False, True))
    assert on < off / 2


def _imbalance(stream: KeyedStream, text: str, seed: int, *, exchange: bool) -> float:
    scenario = Scenario(workers=16, sources=4, seed=seed, exchange=exchange, **WINDOW)
    (result,) = simulate(stream, [entrant(text)], scenario, processes=1)
    assert result.figures.window_imbalance is not None
    return result.figures.window_imbalance


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("zipf", [1.0, 1.5])
def test_daltons_that_share_a_table_split_fewer_keys_than_lonely_ones(zipf: float, seed: int) -> None:
    stream = generated("zipf", tuples=100_000, keys=3_000, zipf=zipf, seed=seed)
    copies = []
    for exchange in (True, False):
        scenario = Scenario(workers=16, sources=4, seed=seed, exchange=exchange, **WINDOW)
        (result,) = simulate(stream, [entrant("dalton-cooperative")], scenario, processes=1)
        copies.append(result.figures.ksr)
    assert copies[0] - 1 < 0.95 * (copies[1] - 1)


def test_the_exchange_repeats_itself_in_any_process_and_for_any_block(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stream = mixed(12_000, keys=500, seed=1)
    scenario = Scenario(workers=6, sources=4, exchange=True, **WINDOW)
    entrants = [entrant(text) for text in (*ABLE, "dalton-cooperative:dsync_ms=300", "pkg")]
    apart = simulate(stream, entrants, scenario, processes=2)
    here = simulate(stream, entrants, scenario, processes=1)
    monkeypatch.setattr(routing_module, "BLOCK", 77)
    cut = simulate(stream, entrants, scenario, processes=1)
    for group in (apart, cut):
        for one, other in zip(group, here, strict=True):
            assert one.loads.tolist() == other.loads.tolist()
            assert one.over_time.tolist() == other.over_time.tolist()
            assert one.figures.ksr == other.figures.ksr
    assert [result.figures.exchange for result in here] == [True, True, True, False]


def test_without_a_window_the_slide_says_when() -> None:
    stream = mixed(20_000, keys=500, seed=1)
    by_slide = [
        routed(stream, "evenflow", exchange=True, window_ms=None, slide_ms=slide).workers.tolist()
        for slide in (500, 50_000)
    ]
    off = routed(stream, "evenflow", exchange=False, window_ms=None).workers.tolist()
    assert by_slide[0] != off
    assert by_slide[1] == off, "no slide ends before the stream does"
