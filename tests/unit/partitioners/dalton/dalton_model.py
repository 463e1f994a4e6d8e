"""Dalton written a second time, slowly and plainly: dictionaries, full scans, no window ever subtracted."""

from collections import Counter, defaultdict
from math import ceil, inf
from typing import Any

import numpy as np

from evenflow.keys import candidate, salts

MASK = 2**64 - 1


def mix64(x: int) -> int:
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


class SlowDalton:
    """The rule of 000, Algorithm 1, with the decisions of the docstring of `dalton`, exact counts."""

    def __init__(
        self,
        workers: int,
        *,
        seed: int = 7,
        source: int = 0,
        slide_ms: int = 100,
        slides: int = 10,
        stats_ms: int | None = None,
        eps: float = 0.1,
        gamma: float = 0.1,
        p1: float = 0.5,
        p2: float = 0.5,
        cap: int | None = None,
        cap_max: int = 6,
        cap_growth: float = 0.7,
        theta: float | None = None,
    ) -> None:
        self.times = workers if theta is None else 1 / theta if theta else inf
        self.n, self.seed, self.slide_ms, self.slides = workers, seed, slide_ms, slides
        self.stats_ms = stats_ms or slide_ms
        self.eps, self.gamma, self.p1, self.p2 = eps, gamma, p1, p2
        self.cap, self.cap_max, self.cap_growth = cap, cap_max, cap_growth
        self.word = int(salts(seed, 1, first=(1 << 32) + source)[0])
        self.sent: list[tuple[int, int, int, int]] = []  # slide, key, worker, cost
        self.slide: int | None = None
        self.window: int | None = None
        self.counts: Counter[int] = Counter()
        self.tuples: Counter[int] = Counter()
        self.previous = 0
        self.expiry: dict[int, int] = {}
        self.q: dict[int, list[float]] = {}
        self.rewards: list[float] = []

    def draw(self) -> int:
        self.word = (self.word + 0x9E3779B97F4A7C15) & MASK
        return mix64(self.word)

    def inside(self) -> list[tuple[int, int, int, int]]:
        assert self.slide is not None
        self.sent = [one for one in self.sent if one[0] > self.slide - self.slides]
        return self.sent

    def loads(self) -> list[int]:
        got = Counter[int]()
        for _, _, worker, cost in self.inside():
            got[worker] += cost
        return [got[worker] for worker in range(self.n)]

    def holders(self) -> dict[int, set[int]]:
        result: dict[int, set[int]] = defaultdict(set)
        for _, key, worker, _ in self.inside():
            result[key].add(worker)
        return dict(result)

    def home(self, key: int) -> int:
        return int(candidate(np.array([key], np.uint64), 1, self.n, self.seed)[0])

    def assign(self, key: int, time: int, cost: int = 1) -> int:
        slide, window = time // self.slide_ms, time // self.stats_ms
        self.slide = slide if self.slide is None else max(slide, self.slide)
        if self.window is None:
            self.window = window
        if window > self.window:
            self.previous = self.counts.total() if window == self.window + 1 else 0
            self.counts.clear()
            self.tuples.clear()
            self.window = window
            for old in [k for k, until in self.expiry.items() if until < window]:
                del self.expiry[old], self.q[old]
        self.counts[key] += cost
        self.tuples[key] += 1
        home = self.home(key)
        every = self.times == inf
        frequent = self.tuples[key] > 1 and self.counts[key] * self.times >= self.previous > 0
        if every or frequent:
            until = self.window + (-(-self.slides * self.slide_ms // self.stats_ms) if every else 1)
            if key in self.q:
                self.expiry[key] = until
            elif every or len(self.q) < 4 * ceil(self.times):
                self.expiry[key] = until
                self.q[key] = [-2.0] * self.n
        if key not in self.q:
            self.sent.append((self.slide, key, home, cost))
            return home
        worker = self.choose(key, home)
        self.sent.append((self.slide, key, worker, cost))
        self.learn(key, worker)
        return worker

    def learn(self, key: int, worker: int) -> None:
        loads, held = self.loads(), len(self.holders()[key])
        average = sum(loads) / self.n
        cost = (loads[worker] - average) / max(loads[worker], average)
        reward = -(self.p1 * cost + self.p2 * held / self.n)
        self.rewards.append(reward)
        self.q[key][worker] += self.gamma * (reward - self.q[key][worker])
        if self.cap is not None and self.cap < self.cap_max:
            holders = self.holders()
            capped = sum(len(holders.get(k, ())) >= self.cap for k in self.q)
            self.cap += capped > 0 and capped >= self.cap_growth * len(self.q)

    def choose(self, key: int, home: int) -> int:
        row = self.q[key]
        if (self.draw() >> 11) * 2.0**-53 >= self.eps:
            return home if row[home] == max(row) else row.index(max(row))
        holders = sorted(self.holders().get(key, ()))
        if self.cap is not None and len(holders) >= self.cap:
            return holders[self.draw() % len(holders)]
        return self.draw() % self.n


class SlowDaltonBatch(SlowDalton):
    """Section 3.4: frequencies and holders of the batch, values of all batches so far."""

    def __init__(self, workers: int, *, by_batch: bool = False, **options: Any) -> None:
        super().__init__(workers, **options)
        self.by_batch = by_batch
        self.batch = 0
        self.placed: list[tuple[int, int, int, int]] = []
        self.new: set[int] = set()

    def inside(self) -> list[tuple[int, int, int, int]]:
        return self.placed if self.by_batch else super().inside()

    def holders(self) -> dict[int, set[int]]:
        result: dict[int, set[int]] = defaultdict(set)
        for _, key, worker, _ in self.placed:
            result[key].add(worker)
        return dict(result)

    def assign_batch(self, keys: list[int], times: list[int]) -> list[int]:
        self.batch += 1
        self.placed.clear()
        counts = Counter(keys)
        self.new = {k for k, f in counts.items() if f > 1 and f * self.n >= len(keys)}
        self.expiry = {k: until for k, until in self.expiry.items() if until >= self.batch}
        self.q = {k: row for k, row in self.q.items() if k in self.expiry}
        self.expiry |= dict.fromkeys(self.new, self.batch + 1)
        self.q = {k: self.q.get(k, [-2.0] * self.n) for k in self.expiry}
        return [self.place(key, time) for key, time in zip(keys, times, strict=True)]

    def place(self, key: int, time: int) -> int:
        slide, home = time // self.slide_ms, self.home(key)
        self.slide = slide if self.slide is None else max(slide, self.slide)
        worker = self.choose(key, home) if key in self.q else home
        self.sent.append((self.slide, key, worker, 1))
        self.placed.append(self.sent[-1])
        if key in self.q:
            self.learn(key, worker)
        return worker
