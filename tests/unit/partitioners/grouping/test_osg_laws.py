"""Laws of online shuffle grouping: what is learned of costs, when, and what it is good for."""

from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.errors import ConfigError, IncompatibleStateError
from evenflow.keys import candidate
from evenflow.partitioners import Partitioner, create, restore
from evenflow.partitioners.costs import MAX_COST
from evenflow.partitioners.grouping.osg import ROUND_ROBIN, RUN, SEND_ALL, WAIT_ALL
from evenflow.partitioners.snapshots import unpack
from tests.examples import examples
from tests.unit.partitioners.costs import drawn, some_costs
from tests.unit.partitioners.streams import Stream, all_distinct, one_key, zipf

few = examples(40)
streams = st.builds(
    zipf, st.integers(1, 600), keys=st.integers(1, 60), z=st.floats(0, 2.5), seed=st.integers(0, 99)
)
rules = st.fixed_dictionaries(
    {
        "check": st.integers(1, 12),
        "mu": st.sampled_from([0.0, 0.05, 0.3, 2.0]),
        "columns": st.sampled_from([1, 5, 64]),
        "rows": st.integers(1, 4),
        "delay": st.sampled_from([None, 0, 1, 7, 40]),
    }
)


def state_of(p: Partitioner) -> dict[str, int]:
    return {name: int(p._schedule.meta[name]) for name in p._schedule.meta.dtype.names}  # type: ignore[attr-defined]


@dataclass
class Cell:
    """One cell of a sketch."""

    f: int = 0
    w: int = 0

    def mean(self) -> float:
        return self.w / self.f if self.f else 0.0


@dataclass
class Instance:
    """What one worker knows, in plain Python. A cell is found by its row and column."""

    cells: dict[tuple[int, int], Cell] = field(default_factory=dict)
    looked: dict[tuple[int, int], float] | None = None
    measured: int = 0
    spent: int = 0

    def look(self, mu: float) -> dict[tuple[int, int], Cell] | None:
        """The sketch if it is stable; the worker then has an empty one."""
        means = {at: cell.mean() for at, cell in sorted(self.cells.items())}
        if self.looked is not None:
            changes = total = 0.0
            for at, mean in means.items():
                changes += abs(mean - self.looked.get(at, 0.0))
                total += self.looked.get(at, 0.0)
            if changes <= mu * total:
                stable, self.cells, self.looked, self.measured = self.cells, {}, None, 0
                return stable
        self.looked = means
        return None


def naive(
    stream: Stream,
    costs: list[int],
    n: int,
    *,
    check: int,
    mu: float,
    columns: int,
    rows: int,
    delay: int | None,
) -> list[int]:
    """The rule in plain Python, with the scheduler and its workers as objects that send each other
    messages.
    """
    keys = stream[0]
    places = [candidate(keys, row + 1, columns, 7).tolist() for row in range(rows)]
    instances = [Instance() for _ in range(n)]
    sketches: dict[int, dict[tuple[int, int], Cell]] = {}
    sums = [0.0] * n
    state, turn, left, ran = "round robin", 0, 0, 0
    questions: dict[int, tuple[int, float]] = {}  # tuple: round, sum at that moment
    answers: dict[int, float] = {}
    round_ = 0
    out: list[int] = []

    def estimate(worker: int, at: int) -> float:
        cells = [sketches[worker].get((row, places[row][at]), Cell()) for row in range(rows)]
        least = min(cells, key=lambda cell: cell.f)
        if least.f:
            return least.mean()
        first = [cell for (row, _), cell in sketches[worker].items() if row == 0]
        return sum(cell.w for cell in first) / sum(cell.f for cell in first)

    for at in range(len(keys)):
        if state in ("round robin", "send all"):
            worker, turn = turn, (turn + 1) % n
        else:
            worker = sums.index(min(sums))
        if state != "round robin":
            sums[worker] += estimate(worker, at)
        out.append(worker)
        asks = False
        if state == "send all":
            questions[at] = (round_, sums[worker])
            left -= 1
            state = "wait all" if left == 0 else state
        elif state == "run":
            ran += 1
            asks = ran == check * n
        if asks:
            state, left, answers, round_ = "send all", n, {}, round_ + 1
        done = at - (n if delay is None else delay)
        if done < 0:
            continue
        doer = out[done]
        instance = instances[doer]
        instance.measured += 1
        instance.spent += costs[done]
        for row in range(rows):
            cell = instance.cells.setdefault((row, places[row][done]), Cell())
            cell.f, cell.w = cell.f + 1, cell.w + costs[done]
        asked_in, said = questions.get(done, (-1, 0.0))
        if asked_in == round_:
            answers[doer] = instance.spent - said
            if len(answers) == n:
                sums = [total + answers[w] for w, total in enumerate(sums)]
                state, ran = "run", 0
        if instance.measured % check == 0:
            stable = instance.look(mu)
            if stable is not None:
                sketches[doer] = stable
                if len(sketches) == n:
                    state, left, answers, round_ = "send all", n, {}, round_ + 1
    return out


@few
@given(streams, some_costs, st.integers(1, 9), rules)
def test_osg_equals_the_rule_in_plain_python(stream: Stream, some: list[int], n: int, rule: dict) -> None:
    costs = drawn(some, len(stream[0]))
    out = create("osg", workers=n, **rule).assign(*stream, costs)
    assert out.tolist() == naive(stream, costs.tolist(), n, **rule)


@few
@given(streams, st.integers(1, 9), rules)
def test_osg_without_costs_equals_the_rule_in_plain_python(stream: Stream, n: int, rule: dict) -> None:
    out = create("osg", workers=n, **rule).assign(*stream)
    assert out.tolist() == naive(stream, [1] * len(stream[0]), n, **rule)


def by_key(keys: np.ndarray, *, dear: int = 200) -> np.ndarray:
    """Costs that a key decides: every fifth key is this much dearer than the others."""
    return np.where(candidate(keys, 9, 5, 3) == 0, dear, 1).astype(np.int64)


@few
@given(streams, st.integers(1, 9), rules, st.integers(0, 2**32 - 1))
def test_what_a_tuple_costs_decides_nothing_before_it_was_measured(
    stream: Stream, n: int, rule: dict, seed: int
) -> None:
    """Other costs of the latest tuples, those under way, change no worker of a tuple up to them or at once
    behind them.
    """
    keys, times = stream
    under_way = n if rule["delay"] is None else rule["delay"]
    costs = np.random.default_rng(seed).integers(1, 300, len(keys))
    other = costs.copy()
    other[max(0, len(keys) - under_way - 1) :] = MAX_COST
    p, q = (create("osg", workers=n, **rule) for _ in range(2))
    assert p.assign(keys, times, costs).tolist() == q.assign(keys, times, other).tolist()
    if under_way:
        other[max(0, len(keys) - under_way - 1)] = costs[max(0, len(keys) - under_way - 1)]
        p, q = (create("osg", workers=n, **rule) for _ in range(2))
        p.assign(keys, times, costs)
        q.assign(keys, times, other)
        assert p.assign(keys[:1], times[:1]).tolist() == q.assign(keys[:1], times[:1]).tolist()


def test_workers_take_turns_until_each_has_two_looks_at_its_sketch() -> None:
    n, check = 6, 50
    keys, times = one_key(4000)
    p = create("osg", workers=n, check=check, delay=0)
    first = 2 * check * n
    assert p.assign(keys[: first - 1], times[: first - 1]).tolist() == (np.arange(first - 1) % n).tolist()
    assert state_of(p)["state"] == ROUND_ROBIN
    seen = []
    for row in range(first - 1, first + n + 2):
        seen.append(state_of(p)["state"])
        p.assign(keys[row : row + 1], times[row : row + 1])
    assert seen == [ROUND_ROBIN, *[SEND_ALL] * n, RUN, RUN]


def test_the_scheduler_waits_for_the_answers_of_all() -> None:
    n, delay = 4, 11
    keys, times = one_key(1000)
    p = create("osg", workers=n, check=10, delay=delay)
    seen = []
    for row in range(120):
        p.assign(keys[row : row + 1], times[row : row + 1])
        seen.append(state_of(p)["state"])
    # The tuple that makes the last sketch stable is sent, and not measured yet.
    assert seen[2 * 10 * n - 1 + delay - 1] == ROUND_ROBIN
    assert seen[90:] == [SEND_ALL] * 4 + [WAIT_ALL] * delay + [RUN] * (120 - 90 - 4 - delay)


def test_a_correction_makes_the_sum_what_the_worker_has_measured() -> None:
    keys, times = zipf(40_000, keys=50)
    costs = by_key(keys) + np.random.default_rng(5).integers(0, 30, len(keys))
    p = create("osg", workers=5, check=200, delay=0)
    corrected = 0
    for row in range(len(keys)):
        before = state_of(p)["state"]
        p.assign(keys[row : row + 1], times[row : row + 1], costs[row : row + 1])
        if before == SEND_ALL and state_of(p)["state"] == RUN:
            corrected += 1
            # Each worker got one tuple in this round, and it was measured at once: nothing is estimated any
            # more.
            assert np.allclose(p._schedule.expected, p.observe().loads)  # type: ignore[attr-defined]
    assert corrected > 10


def test_a_key_is_estimated_at_its_mean_cost() -> None:
    keys, times = zipf(20_000, keys=30, z=0.5)
    costs = by_key(keys)
    p = create("osg", workers=3, check=300, columns=4096)
    p.assign(keys, times, costs)
    while state_of(p)["state"] != RUN:
        p.assign(keys[:1], times[:1], costs[:1])
    for key in np.unique(keys):
        cost = int(by_key(np.array([key]))[0])
        assert f"estimated to cost {cost} there" in p.explain(int(key)).rule


def test_work_is_level_where_keys_decide_costs() -> None:
    """The tuples alternate, so that turns send all the dear ones to half the workers."""
    n = 8
    keys = np.resize(np.array([11, 22], np.uint64), 60_000)
    times, costs = np.arange(60_000), np.resize(np.array([1, 100], np.int64), 60_000)
    work = {}
    for name in ("shuffle", "osg"):
        p = create(name, workers=n)
        p.assign(keys, times, costs)
        before = p.observe().loads
        p.assign(keys, times, costs)
        work[name] = p.observe().loads - before
    assert work["shuffle"].max() / work["shuffle"].mean() > 1.9
    everything = p.observe().loads  # those of osg, and the turns of its beginning are made good
    assert everything.max() / everything.mean() < 1.01


@few
@given(streams, st.integers(1, 9), rules)
def test_without_costs_tuples_are_level(stream: Stream, n: int, rule: dict) -> None:
    p = create("osg", workers=n, **rule)
    loads = np.bincount(p.assign(*stream), minlength=n)
    assert loads.max() - loads.min() <= 3


def test_keys_that_were_never_measured_are_estimated_at_the_mean() -> None:
    """Were they free, a worker would get them one after the other."""
    old, times = zipf(20_000, keys=10)
    p = create("osg", workers=4, check=100, columns=1 << 16)
    p.assign(old, times)
    while state_of(p)["state"] != RUN or state_of(p)["ran"]:
        p.assign(old[:1], times[:1])
    fresh = all_distinct(150)[0][100:]
    loads = np.bincount(p.assign(fresh, times[:50]), minlength=4)
    assert loads.max() - loads.min() <= 2


@pytest.mark.parametrize(("workers", "state"), [(3, RUN), (9, ROUND_ROBIN)])
def test_a_rescale_keeps_the_sketches_of_the_workers_that_stay(workers: int, state: int) -> None:
    keys, times = zipf(30_000, keys=100)
    costs = by_key(keys)
    p = create("osg", workers=5, check=100)
    p.assign(keys, times, costs)
    before = unpack(p.snapshot())[1]["taken_counts"]
    p.rescale(workers)
    after = unpack(p.snapshot())[1]["taken_counts"]
    stay = min(5, workers)
    assert after[:stay].tolist() == before[:stay].tolist()
    assert not after[stay:].any()
    assert state_of(p)["state"] == state
    p.assign(keys, times, costs)
    loads = p.observe().loads
    assert state_of(p)["known"] == workers
    assert loads.max() / loads.mean() < 1.1


def test_sources_begin_at_different_workers() -> None:
    keys, times = one_key(1)
    firsts = [create("osg", workers=8, source=s, sources=4).assign(keys, times)[0] for s in range(4)]
    assert firsts == [0, 2, 4, 6]


@few
@given(streams, some_costs, st.integers(1, 9), rules)
def test_explain_names_the_worker_of_the_next_tuple(
    stream: Stream, some: list[int], n: int, rule: dict
) -> None:
    costs = drawn(some, len(stream[0]))
    p = create("osg", workers=n, **rule)
    p.assign(*stream, costs)
    for key in (int(stream[0][0]), 3):
        said = p.explain(key).workers
        assert said == tuple(p.assign(np.array([key], np.uint64), np.array([10**6])).tolist())


def test_sketches_that_would_not_fit_are_refused() -> None:
    with pytest.raises(ConfigError, match="lower columns or rows"):
        create("osg", workers=1_024, columns=1 << 16, rows=16)


@pytest.mark.parametrize(("field", "value"), [("turn", 2), ("turn", -1), ("at", 99), ("state", 4)])
def test_a_snapshot_of_workers_that_do_not_exist_is_refused(field: str, value: int) -> None:
    p = create("osg", workers=2)
    p._schedule.meta[field] = value
    with pytest.raises(IncompatibleStateError, match="does not fit"):
        restore(p.snapshot())
