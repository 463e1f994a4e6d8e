"""Intervals and paired comparisons over seeds."""

from statistics import mean, median

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.errors import ConfigError
from evenflow.sweep import compared, summarised
from evenflow.sweep.comparing import interval, student_t
from evenflow.sweep.table import ROWS
from tests.examples import examples

values = st.floats(0, 1, allow_nan=False).map(lambda value: round(value, 3))


def table(rows: list[tuple[str, int, int, float | None]]) -> pa.Table:
    """A table of (partitioner, workers, seed, imbalance). All else is the same."""
    columns = {}
    for at, name in enumerate(("partitioner", "workers", "hash_seed", "imbalance")):
        columns[name] = pa.array([row[at] for row in rows], ROWS.field(name).type)
    columns["seed"] = columns["hash_seed"]
    same = {
        "stream": "zipf",
        "tuples": 100,
        "generator_keys": 10,
        "sources": 1,
        "slide_ms": 1,
        "exponent": 1.0,
    }
    for field in ROWS:
        if field.name not in columns:
            columns[field.name] = pa.array([same.get(field.name)] * len(rows), field.type)
    return pa.table({name: columns[name] for name in ROWS.names}, schema=ROWS)


@given(
    ours=st.dictionaries(st.integers(0, 30), values, min_size=1, max_size=12),
    theirs=st.dictionaries(st.integers(0, 30), values, min_size=1, max_size=12),
    shuffled=st.randoms(use_true_random=False),
    centre=st.sampled_from(["mean", "median"]),
)
@examples(100)
def test_a_comparison_is_of_the_seeds_that_both_have(
    ours: dict[int, float], theirs: dict[int, float], shuffled: object, centre: str
) -> None:
    rows = [("a", 4, seed, value) for seed, value in ours.items()]
    rows += [("b", 4, seed, value) for seed, value in theirs.items()]
    shuffled.shuffle(rows)
    both = sorted(set(ours) & set(theirs))
    if not both:
        with pytest.raises(ConfigError, match="no cell and seed in common"):
            compared(table(rows), "imbalance", "a", "b")
        return
    (result,) = compared(table(rows), "imbalance", "a", "b", centre=centre)
    (turned,) = compared(table(rows), "imbalance", "b", "a", centre=centre)
    differences = [ours[seed] - theirs[seed] for seed in both]
    middle = {"mean": mean, "median": median}[centre]
    assert result.seeds == len(both)
    assert result.unpaired == len(ours) + len(theirs) - 2 * len(both)
    assert result.difference.centre == pytest.approx(middle(differences), abs=1e-12)
    assert result.first_value.centre == pytest.approx(middle([ours[seed] for seed in both]))
    assert result.first_wins == sum(ours[seed] < theirs[seed] for seed in both)
    assert result.first_wins + result.second_wins + result.ties == result.seeds
    assert (turned.first_wins, turned.second_wins) == (result.second_wins, result.first_wins)
    assert turned.difference.centre == pytest.approx(-result.difference.centre, abs=1e-12)
    if len(both) == 1:
        assert result.difference.low is None
    else:
        assert result.difference.low is not None
        assert result.difference.low <= result.difference.centre + 1e-12


@pytest.mark.parametrize(
    ("level", "freedom", "expected"),
    [(0.95, 1, 12.7062), (0.95, 4, 2.7764), (0.95, 19, 2.0930), (0.99, 9, 3.2498), (0.95, 1_000, 1.9623)],
)
def test_t_is_that_of_the_tables(level: float, freedom: int, expected: float) -> None:
    assert student_t(level, freedom) == pytest.approx(expected, abs=5e-4)


def test_an_interval_of_a_mean_covers_it_as_often_as_its_level_says() -> None:
    random = np.random.default_rng(5)
    samples = random.normal(3.0, 1.0, (400, 6))
    covered = sum(
        result.low < 3.0 < result.high
        for result in (interval(list(sample), centre="mean", level=0.9) for sample in samples)
    )
    assert 330 <= covered <= 385  # 360 on average


def test_a_bootstrap_is_the_same_each_time_and_lies_within_the_values() -> None:
    drawn = [0.1, 0.5, 0.2, 0.9, 0.3]
    one, other = (interval(drawn, centre="median", level=0.95) for _ in range(2))
    assert one == other
    assert one.centre == 0.3
    assert 0.1 <= one.low <= 0.3 <= one.high <= 0.9


def test_every_condition_has_its_own_line_in_the_order_of_the_table() -> None:
    rows = [
        (name, workers, seed, workers / 10) for workers in (8, 4) for seed in (1, 2) for name in ("a", "b")
    ]
    result = summarised(table(rows), "imbalance")
    assert [(one.partitioner, one.condition["workers"]) for one in result] == [
        ("a", 8),
        ("b", 8),
        ("a", 4),
        ("b", 4),
    ]
    assert [one.value.centre for one in result] == [0.8, 0.8, 0.4, 0.4]
    pairs = compared(table(rows), "imbalance", "a", "b")
    assert [one.condition["workers"] for one in pairs] == [8, 4]
    assert [one.ties for one in pairs] == [2, 2]


@pytest.mark.parametrize(
    ("metric", "names", "expected"),
    [
        ("imbalanse", ("a", "b"), "no metric 'imbalanse'; did you mean 'imbalance'"),
        ("partitioner", ("a", "b"), "no metric 'partitioner'"),
        ("window_imbalance", ("a", "b"), "a has no window_imbalance in the table"),
        ("imbalance", ("a", "c"), "the table has no partitioner 'c'"),
        ("imbalance", ("a", "a"), "'a' is compared with itself"),
    ],
)
def test_what_cannot_be_compared_is_refused(metric: str, names: tuple[str, str], expected: str) -> None:
    rows = [(name, 4, 1, 0.5) for name in ("a", "b")]
    with pytest.raises(ConfigError) as caught:
        compared(table(rows), metric, *names)
    assert expected in str(caught.value)


def test_a_table_with_a_cell_twice_and_an_empty_one_are_refused() -> None:
    with pytest.raises(ConfigError, match="a with seed 1 twice"):
        summarised(table([("a", 4, 1, 0.5)] * 2), "imbalance")
    with pytest.raises(ConfigError, match="has no rows"):
        summarised(table([]), "imbalance")
    for level in (0.0, 1.0, 2.0):
        with pytest.raises(ConfigError, match="between 0 and 1"):
            summarised(table([("a", 4, 1, 0.5)]), "imbalance", level=level)
