"""Every figure of a simulation equals its definition, tuple by tuple; every rule is told of the window."""

import doctest

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow import simulation
from evenflow.errors import ConfigError
from evenflow.partitioners import Partitioner, names, registry
from evenflow.partitioners.base import Block
from evenflow.partitioners.explanation import Explanation
from evenflow.partitioners.window import Lengths, Window
from evenflow.simulation import Entrant, KeyedStream, Scenario, entrant, from_columns, generated, simulate
from evenflow.simulation import routing as routing_module
from tests.examples import examples
from tests.unit.simulation import naive

LAST = ("hot_keys", "seconds", "ns_per_tuple")
HELD = ("gamma", "distinct", "ksr", "max_holders")
BALANCE = ("imbalance", "imbalance_mean", "window_imbalance")
EXCHANGE = ["exchange", "exchange_tables", "exchange_bytes"]
FIELDS = ["partitioner", "workers", "tuples", "keys", *EXCHANGE, *BALANCE, *HELD, *LAST]


def figures(stream: KeyedStream, text: str, scenario: Scenario) -> dict:
    (result,) = simulate(stream, [entrant(text)], scenario)
    return result.figures.as_json()


def assert_figures(found: dict, expected: dict) -> None:
    for name, value in expected.items():
        assert found[name] == (None if value is None else pytest.approx(value, abs=1e-12)), name


times = st.lists(st.integers(-400, 1_500), min_size=1, max_size=120)


@examples(60)
@given(
    times,
    st.integers(1, 12),
    st.integers(1, 7),
    st.integers(1, 4),
    st.sampled_from([None, (200, 100), (100, 100), (700, 100), (30, 10)]),
    st.sampled_from(["hashing", "pkg", "d-choices", "shuffle"]),
    st.integers(0, 3),
)
def test_every_figure_equals_its_definition(
    drawn: list[int],
    keys: int,
    workers: int,
    sources: int,
    window: tuple[int, int] | None,
    name: str,
    seed: int,
) -> None:
    ranks = np.random.default_rng(seed).zipf(1.5, len(drawn)) % keys
    stream = from_columns(pa.array([f"k{rank}" for rank in ranks]), np.array(drawn, np.int64))
    told = {} if window is None else {"window_ms": window[0], "slide_ms": window[1]}
    scenario = Scenario(workers=workers, sources=sources, seed=seed, **told)
    options = {} if window is None or name in ("hashing", "shuffle") else {"window": "sliding", **told}
    expected = naive.figures(stream, scenario, naive.route(stream, scenario, name, options))
    result = figures(stream, name, scenario)
    assert_figures(result, expected)
    assert list(result) == FIELDS
    assert (result["tuples"], result["workers"], result["keys"]) == (len(drawn), workers, stream.key_count)


@pytest.mark.parametrize("warmup", [None, 0, 7, 19])
@pytest.mark.parametrize("tuples", [2_000, 1_999, 2_050])
def test_only_complete_slides_after_the_warm_up_count(warmup: int | None, tuples: int) -> None:
    stream = generated("zipf", tuples=tuples, keys=60, zipf=1.2, rate=1_000)
    scenario = Scenario(workers=5, window_ms=500, slide_ms=100, warmup_slides=warmup)
    if warmup == 19 and tuples == 1_999:
        with pytest.raises(
            ConfigError, match="slides of 100 ms in the stream: 19; none with tuples is left after a warm-up"
        ):
            figures(stream, "pkg", scenario)
        return
    options = {"window": "sliding", "window_ms": 500, "slide_ms": 100}
    expected = naive.figures(stream, scenario, naive.route(stream, scenario, "pkg", options))
    assert_figures(figures(stream, "pkg", scenario), expected)


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = generated("zipf", tuples=3_000, keys=100)
    scenario = Scenario(workers=9, sources=4)
    expected = naive.figures(stream, scenario, naive.route(stream, scenario, "d-choices", {}))
    monkeypatch.setattr(routing_module, "BLOCK", 37)
    assert_figures(figures(stream, "d-choices", scenario), expected)


@pytest.mark.parametrize("name", names())
@pytest.mark.parametrize("window", [None, 2_000])
def test_every_registered_name_can_be_simulated(name: str, window: int | None) -> None:
    stream = generated("shift", tuples=6_000, keys=300, zipf=1.4)
    result = figures(stream, name, Scenario(workers=8, sources=2, window_ms=window, slide_ms=500))
    assert list(result) == FIELDS
    assert -1e-12 <= result["imbalance"] <= 1
    assert 1 <= result["ksr"] <= 8
    assert result["distinct"] <= result["gamma"]
    assert 1 <= result["max_holders"] <= 8
    assert result["ns_per_tuple"] == pytest.approx(result["seconds"] * 1e9 / 6_000)


def test_a_simulation_repeats_itself() -> None:
    def run() -> dict:
        stream = generated("drift", tuples=5_000, keys=200, zipf=1.4, seed=3)
        result = figures(stream, "d-choices", Scenario(workers=10, seed=3, window_ms=2_000))
        return {name: value for name, value in result.items() if name not in ("seconds", "ns_per_tuple")}

    assert run() == run()


def test_hot_keys_are_those_that_the_rule_tells_apart() -> None:
    stream = generated("zipf", tuples=5_000, keys=200, zipf=2)
    assert figures(stream, "hashing", Scenario(workers=4))["hot_keys"] is None
    assert figures(stream, "d-choices", Scenario(workers=4))["hot_keys"] > 1


def test_the_example_in_the_docstring_is_true() -> None:
    assert doctest.testmod(simulation).failed == 0


# what a rule is told of the window


class Recorder(Partitioner):
    """A micro-batch partitioner that sends every batch to a worker of its own."""

    micro_batch = True
    options_type = Lengths

    def _start(self) -> None:
        self._batches = 0

    def _assign(self, block: Block) -> None:
        block.out[:] = self._batches
        self._batches += 1

    def _explain(self, key: np.uint64, now: int | None) -> Explanation:
        return Explanation(rule="each batch has its worker", workers=None)

    def _state(self) -> dict:
        return {}

    def _load_state(self, state: dict) -> None:
        pass


class Balancer(Recorder):
    """The same, with a window or without."""

    micro_batch = False
    options_type = Window


@pytest.fixture
def stand_ins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry._ENTRIES, "recorder", registry._Entry(Recorder))
    monkeypatch.setitem(registry._ENTRIES, "balancer", registry._Entry(Balancer))


def told(name: str, length: int | None, **given: object) -> dict:
    stream = generated("uniform", tuples=10_500, keys=3)
    scenario = Scenario(workers=4, window_ms=length, slide_ms=100)
    return scenario.options_of(Entrant("x", name, given), stream)


@pytest.mark.usefixtures("stand_ins")
def test_a_window_is_given_to_every_rule_that_knows_windows() -> None:
    window = {"window_ms": 500, "slide_ms": 100}
    assert told("pkg", 500) == {"window": "sliding", **window}
    assert told("balancer", 500) == {"window": "sliding", **window}
    assert told("recorder", 500) == window
    assert told("hashing", 500) == {}


@pytest.mark.usefixtures("stand_ins")
def test_without_a_window_state_is_cumulative() -> None:
    assert told("pkg", None) == {"window": "cumulative"}
    assert told("balancer", None) == {"window": "cumulative"}
    assert told("recorder", None) == {"window_ms": 10_700, "slide_ms": 100}
    assert told("hashing", None) == {}


@pytest.mark.usefixtures("stand_ins")
def test_what_the_user_sets_is_never_changed() -> None:
    assert told("pkg", 500, window="cumulative")["window"] == "cumulative"
    assert told("pkg", 500, window_ms=900) == {"window": "sliding", "window_ms": 900}
    assert told("balancer", None, window="sliding") == {"window": "sliding"}
    assert told("pkg", None, d=3) == {"window": "cumulative", "d": 3}


def test_a_head_of_the_window_gets_the_window_also_when_loads_are_cumulative() -> None:
    window = {"window_ms": 500, "slide_ms": 100}
    given = {"head": "window", "window": "cumulative"}
    assert told("w-choices", 500, **given) == {**given, **window}
    assert told("w-choices", 500) == {"window": "sliding", **window}
    assert told("d-choices", None) == {"window": "cumulative"}
    whole = {"window_ms": 10_700, "slide_ms": 100}
    assert told("d-choices", None, head="window") == {"window": "cumulative", "head": "window", **whole}


@pytest.mark.usefixtures("stand_ins")
def test_a_micro_batch_is_a_slide_or_so_many_tuples_of_the_stream() -> None:
    stream = generated("uniform", tuples=1_000, keys=3, rate=500)
    by_slide = routing_module.route(stream, entrant("recorder"), Scenario(workers=9, slide_ms=500))
    assert by_slide.workers.tolist() == (stream.times // 500).tolist()
    by_count = routing_module.route(stream, entrant("recorder"), Scenario(workers=9, sources=3, batch=130))
    assert by_count.workers.tolist() == (np.arange(1_000) // 130).tolist()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"workers": 0}, "workers must be at least 1, not 0"),
        ({"sources": 0}, "sources must be at least 1"),
        ({"window_ms": 1_000, "slide_ms": 300}, "does not divide the window"),
        ({"window_ms": 0}, "window must be at least 1"),
        ({"slide_ms": 0}, "slide must be at least 1"),
        ({"batch": 0}, "batch must be at least 1"),
        ({"samples": 0}, "samples must be at least 1"),
        ({"window_ms": 1, "slide_ms": 1, "warmup_slides": -1}, "warmup_slides must be at least 0"),
        ({"window_ms": 200_000, "slide_ms": 1}, "at most 100,000 slides"),
    ],
)
def test_impossible_scenarios_are_refused(wrong: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Scenario(**{"workers": 4, **wrong})
