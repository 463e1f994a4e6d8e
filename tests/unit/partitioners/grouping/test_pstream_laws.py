"""Laws of pstream: it is the rule in plain Python; what gets hot, and what ceases to be."""

import math
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.generation.draws import generator
from evenflow.keys import candidate
from evenflow.metrics import worker_loads
from evenflow.partitioners import create
from tests.examples import examples
from tests.unit.partitioners.streams import Stream, zipf

WORD = 2**64
few = examples(40)


def mixed(x: int) -> int:
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 % WORD
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB % WORD
    return x ^ (x >> 31)


def draws(seed: int, source: int) -> Iterator[int]:
    state = int(generator(seed, source)[0])
    while True:
        state = (state + 0x9E3779B97F4A7C15) % WORD
        yield mixed(state)


class Plain:
    """The rule with a list of places, sets of eight: the place of a key is the first free one of its set."""

    def __init__(self, n: int, *, r: int, l: int, p: float, source: int = 0, sources: int = 1) -> None:  # noqa: E741
        self.n, self.r, self.l, self.p = n, r, l, p
        self.turn = source * n // sources
        self.draws = draws(7, source)
        size = max(64, 2 ** math.ceil(math.log2(16 / p)))
        self.places: list[tuple[int, int, bool]] = [(0, 0, False)] * size

    def route(self, stream: Stream) -> list[int]:
        homes = candidate(stream[0], 1, self.n, 7).tolist()
        return [self.one(key, home) for key, home in zip(stream[0].tolist(), homes, strict=True)]

    def one(self, key: int, home: int) -> int:
        coins = next(self.draws)
        flips = 0
        while flips < self.r + self.l - 1 and not coins >> flips & 1:
            flips += 1
        if flips >= self.r:
            self.look(key, flips - self.r)
            self.decline()
        if not any(hot and bits and known == key for known, bits, hot in self.places):
            return home
        worker, self.turn = self.turn, (self.turn + 1) % self.n
        return worker

    def look(self, key: int, bit: int) -> None:
        first = mixed(key) % (len(self.places) // 8) * 8
        ways = range(first, first + 8)
        own = [at for at in ways if self.places[at][0] == key]
        free = [at for at in ways if not self.places[at][1]]
        if own or free:
            at = (own or free)[0]
            _, bits, hot = self.places[at] if own and self.places[at][1] else (key, 0, False)
            self.places[at] = (key, bits | 1 << bit, hot or (bits != 0 and bits | 1 << bit != bits))

    def decline(self) -> None:
        at = self.gap()
        while at < len(self.places):
            key, bits, hot = self.places[at]
            self.places[at] = (key, bits >> 1, hot and bits >> 1 != 0)
            at += 1 + self.gap()

    def gap(self) -> int:
        unit = (next(self.draws) >> 11) * 2.0**-53
        return 0 if self.p == 1 else int(min(math.log(1 - unit) / math.log1p(-self.p), 1e9))


@few
@given(
    st.builds(
        zipf, st.integers(1, 800), keys=st.integers(1, 60), z=st.floats(0, 2.5), seed=st.integers(0, 99)
    ),
    st.integers(1, 20),
    st.sampled_from([0, 1, 3]),
    st.sampled_from([2, 5, 32]),
    st.sampled_from([0.02, 0.3, 1.0]),
    st.sampled_from([(0, 1), (1, 3)]),
)
def test_pstream_is_its_rule_in_plain_python(
    stream: Stream, n: int, r: int, bits: int, p: float, which: tuple[int, int]
) -> None:
    source, sources = which
    made = create("pstream", workers=n, source=source, sources=sources, r=r, l=bits, p=p)
    plain = Plain(n, r=r, l=bits, p=p, source=source, sources=sources)
    assert made.assign(*stream).tolist() == plain.route(stream)


def test_a_key_with_a_fifth_of_the_stream_is_soon_hot_and_then_takes_turns_over_all_workers() -> None:
    keys, times = zipf(60_000, keys=50_000, z=0.0)
    keys[::5] = 1
    out = create("pstream", workers=16).assign(keys, times)
    late = out[20_000:][keys[20_000:] == 1]
    assert worker_loads(late, 16).max() - worker_loads(late, 16).min() <= 0.05 * len(late)
    assert len(set(late.tolist())) == 16


def test_a_hot_key_that_goes_away_is_hashed_again_after_its_declines() -> None:
    """With 16 bits and p = 0.01 that takes 1,600 looks in the mean at most, and a look is one tuple in 64."""
    keys, times = zipf(400_000, keys=50_000, z=0.0)
    keys[:40_000:4] = 1
    keys[-3:] = 1
    out = create("pstream", workers=16).assign(keys, times)
    assert len(set(out[20_000:40_000:4].tolist())) == 16
    assert len(set(out[-3:].tolist())) == 1


@pytest.mark.parametrize("keys", [2_000, 100_000])
def test_where_all_keys_are_rare_hardly_a_tuple_takes_turns(keys: int) -> None:
    stream = zipf(300_000, keys=keys, z=0.0)
    out = create("pstream", workers=16).assign(*stream)
    assert (out != candidate(stream[0], 1, 16, 7)).mean() < 0.01


def test_what_is_known_of_keys_survives_a_rescale() -> None:
    keys, times = zipf(60_000, keys=5_000, z=1.5)
    p = create("pstream", workers=16)
    p.assign(keys, times)
    before = p.observe().head_keys
    p.rescale(20)
    assert p.observe().head_keys == before > 3
    assert set(p.assign(keys, times).tolist()) == set(range(20))
