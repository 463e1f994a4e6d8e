"""Laws of Mixed: a bounded routing table that moves keys at the end of slides, planned as the rule in
plain Python plans.
"""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.errors import IncompatibleStateError
from evenflow.keys import candidate
from evenflow.partitioners import create, restore
from evenflow.partitioners.snapshots import pack, unpack
from evenflow.sketches.space_saving import SpaceSaving
from tests.examples import examples
from tests.unit.partitioners.streams import Stream, zipf

few = examples(60)
streams = st.builds(
    zipf, st.integers(1, 800), keys=st.integers(1, 60), z=st.floats(0, 2.5), seed=st.integers(0, 99)
)


class Plan:
    """One plan in plain Python: who has which keys, and the loads."""

    def __init__(
        self, loads: list[int], place: dict[int, int], weight: dict[int, int], order: list[int]
    ) -> None:
        self.loads, self.place, self.weight, self.order = loads, dict(place), weight, order

    def keys_of(self, worker: int) -> list[int]:
        return [key for key in self.order if self.place.get(key) == worker]

    def leave(self, key: int) -> None:
        self.loads[self.place.pop(key)] -= self.weight[key]

    def enter(self, key: int, worker: int) -> None:
        self.place[key] = worker
        self.loads[worker] += self.weight[key]

    def leavers(self, worker: int, most: int, allowed: set[int]) -> list[int] | None:
        """The keys that leave so that the load is at most `most`. None if all that are allowed are not
        enough.
        """
        load, result = self.loads[worker], []
        for key in self.keys_of(worker):
            if load <= most:
                break
            if key in allowed and self.weight[key]:
                result.append(key)
                load -= self.weight[key]
        return result if load <= most else None

    def balance(self, bound: int) -> None:
        weight, n = self.weight, len(self.loads)
        waiting = []
        for worker in range(n):
            if self.loads[worker] > bound:
                mine = self.keys_of(worker)
                giants = [key for key in mine if weight[key] > bound]
                kept = max(giants, key=lambda key: (weight[key], -self.order.index(key)), default=None)
                allowed = {key for key in mine if key != kept and weight[key]}
                for key in self.leavers(worker, bound, allowed) or [k for k in mine if k in allowed]:
                    self.leave(key)
                    waiting.append(key)
        while waiting:
            key = min(waiting, key=lambda key: (-weight[key], self.order.index(key)))
            waiting.remove(key)
            ascending = sorted(range(n), key=lambda worker: (self.loads[worker], worker))
            chosen, gone = ascending[0], []
            if self.loads[chosen] + weight[key] > bound >= weight[key]:
                lighter = {other for other in self.place if weight[other] < weight[key]}
                for worker in ascending:
                    result = self.leavers(worker, bound - weight[key], lighter)
                    if result is not None:
                        chosen, gone = worker, result
                        break
            for other in gone:
                self.leave(other)
                waiting.append(other)
            self.enter(key, chosen)


def naive(
    stream: Stream,
    n: int,
    *,
    slide: int,
    slides: int,
    theta: float,
    plan: str,
    beta: float,
    table: int,
    few: int,
) -> list[int]:
    """The rule in plain Python. few: counters."""
    distinct = np.unique(stream[0])
    home = dict(zip(distinct.tolist(), candidate(distinct, 1, n, 7).tolist(), strict=True))
    entries: dict[int, int] = {}
    size: dict[int, int] = {}
    out: list[int] = []
    clock = np.maximum.accumulate(stream[1]) // slide
    for now in np.unique(clock):
        rows = stream[0][clock == now]
        sent = [entries.get(key, home[key]) for key in rows.tolist()]
        out += sent
        summary = SpaceSaving(few)
        summary.offer(rows)
        weight = {int(k): int(c - e) for k, c, e in zip(*summary.counters(), strict=True)}
        size = {key: s - math.ceil(s / slides) for key, s in size.items()}
        for key, count in weight.items():
            size[key] = size.get(key, 0) + count
        largest = sorted((key for key in size if size[key]), key=lambda key: (-size[key], key))[:few]
        size = {key: size[key] for key in largest}
        weight |= {key: 0 for key in entries if key not in weight}
        start = {key: entries.get(key, home[key]) for key in weight}

        def early(key: int, weight: dict = weight, size: dict = size) -> float:
            rest = math.sqrt(weight[key]) if beta % 1 else 1.0
            index = float(weight[key]) ** int(beta) * rest / max(1, size.get(key, 0))
            return weight[key] if plan == "min-table" else index

        order = sorted(weight, key=lambda key: (-early(key), key))
        by_size = sorted(entries, key=lambda key: (size.get(key, 0), key))
        cleaned = len(entries) if plan == "min-table" else 0
        while True:
            made = Plan([sent.count(worker) for worker in range(n)], start, weight, order)
            for key in by_size[:cleaned]:
                made.leave(key)
                made.enter(key, home[key])
            made.balance(math.floor((1 + theta) * len(rows) / n))
            moved = {key: worker for key, worker in made.place.items() if worker != home[key]}
            excess = len(moved) - table
            if excess <= 0 or cleaned == len(entries) or plan == "min-mig":
                break
            cleaned = min(len(entries), max(cleaned + excess, 2 * cleaned))
        kept = sorted(moved, key=lambda key: (-weight[key], key))[:table]
        entries = {key: moved[key] for key in kept}
    return out


@few
@given(
    streams,
    st.integers(1, 12),
    st.sampled_from([7, 50, 200]),
    st.sampled_from([1, 3, 20]),
    st.sampled_from([0.0, 0.08, 0.5]),
    st.sampled_from(["mixed", "min-table", "min-mig"]),
    st.sampled_from([0.0, 1.0, 1.5]),
    st.sampled_from([1, 4, 100]),
    st.sampled_from([5, 64]),
)
def test_mixed_equals_the_rule_in_plain_python(
    stream: Stream,
    n: int,
    slide: int,
    slides: int,
    theta: float,
    plan: str,
    beta: float,
    table: int,
    few: int,
) -> None:
    p = create(
        "mixed",
        workers=n,
        slide_ms=slide,
        window_ms=slide * slides,
        theta=theta,
        plan=plan,
        beta=beta,
        table=table,
        counters=few,
    )
    shape = {"theta": theta, "plan": plan, "beta": beta, "table": table, "few": few}
    assert p.assign(*stream).tolist() == naive(stream, n, slide=slide, slides=slides, **shape)


def test_keys_move_at_the_end_of_slides_alone() -> None:
    keys, times = zipf(20_000, z=1.3)
    out = create("mixed", workers=16, window_ms=4_000, slide_ms=1_000).assign(keys, times)
    for slide in range(20):
        rows = times // 1_000 == slide
        pairs = np.stack([keys[rows], out[rows].astype(np.uint64)])
        assert len(np.unique(pairs, axis=1).T) == len(np.unique(keys[rows]))


@pytest.mark.parametrize("plan", ["mixed", "min-table", "min-mig"])
def test_the_table_stays_within_its_size_and_the_loads_come_down(plan: str) -> None:
    """Twenty keys of equal weight on four workers, and rare ones: a table of twenty entries makes them
    level.
    """
    rng = np.random.default_rng(3)
    keys = np.where(rng.random(40_000) < 0.95, rng.integers(1, 21, 40_000), rng.integers(21, 3000, 40_000))
    keys, times = keys.astype(np.uint64), np.arange(40_000)
    p = create("mixed", workers=4, slide_ms=2_000, window_ms=8_000, plan=plan, table=20)
    out = p.assign(keys, times)
    assert 0 < p.observe().head_keys <= 20
    last = np.bincount(out[-10_000:], minlength=4).max()
    hashed = np.bincount(candidate(keys[-10_000:], 1, 4, 7), minlength=4).max()
    assert last < 1.13 * 2_500 < hashed


def test_min_table_needs_fewer_entries_and_min_mig_moves_less() -> None:
    keys, times = zipf(60_000, keys=3000, z=0.9)
    entries, moves = {}, {}
    for plan in ("min-table", "min-mig"):
        p = create("mixed", workers=16, slide_ms=5_000, window_ms=20_000, plan=plan)
        out = p.assign(keys, times)
        entries[plan] = p.observe().head_keys
        moves[plan] = len(np.unique(np.stack([keys, out.astype(np.uint64)]), axis=1).T)
    assert entries["min-table"] < entries["min-mig"]
    assert moves["min-mig"] < moves["min-table"]


def test_a_silence_makes_states_vanish() -> None:
    keys, times = zipf(3_000)
    p = create("mixed", workers=4, slide_ms=500, window_ms=2_000)
    p.assign(keys, times)
    p.assign(keys[:1], times[-1:] + 1_000_000)
    assert len(unpack(p.snapshot())[1]["sized"]) == 0


def test_a_rescale_keeps_entries_whose_worker_is_still_there() -> None:
    keys, times = zipf(10_000)
    p = create("mixed", workers=12, slide_ms=1_000, window_ms=4_000)
    p.assign(keys, times)
    before = unpack(p.snapshot())[1]
    p.rescale(8)
    after = unpack(p.snapshot())[1]
    old = dict(zip(before["entries"].tolist(), before["targets"].tolist(), strict=True))
    new = dict(zip(after["entries"].tolist(), after["targets"].tolist(), strict=True))
    assert new
    assert new == {
        k: w for k, w in old.items() if w < 8 and w != candidate(np.array([k], np.uint64), 1, 8, 7)[0]
    }


def test_a_snapshot_whose_entry_names_no_worker_is_refused() -> None:
    p = create("mixed", workers=4, slide_ms=500, window_ms=500)
    p.assign(*zipf(3_000))
    header, state = unpack(p.snapshot())
    header.pop("shapes")
    state["targets"][0] = 4
    with pytest.raises(IncompatibleStateError, match="does not exist"):
        restore(pack(header, state))
