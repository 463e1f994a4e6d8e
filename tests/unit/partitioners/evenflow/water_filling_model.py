"""`evenflow` written a second time, slowly and plainly: lists and dictionaries, full scans, no tree, no
masks.
"""

from dataclasses import dataclass, field
from math import ceil, inf, log, sqrt
from typing import Any

import numpy as np

from evenflow.keys import GOLDEN, candidate, salts
from tests.unit.partitioners.dalton.dalton_model import mix64

MARGIN, LOOKS, FEWEST, FEWEST_OF_MANY, HOLDERS, SHARED, FINE = 3, 8, 8, 4, 2, 8, 1024
MEMORY, LEAST_MEMORY, AGES, DOUBTS, FILLED = 8, 2048, 16, 64, 128
GRAINS, COUNTING, LEAST_FREE, SIGMAS, FEW, PARTS = 2, 1 << 14, 0.05, 2, 8, 1024
WEIGHTS, STEADY, COARSEST, MOST_MEMORY = 256, 8, 16, 1 << 29
RUN_PRICE, SHORTEST_RUN, MOST_RUNS, RUNS_OF_WORKER = 0.25, 2, 4, 8
LONG_RUN, RUNS_SEEN, RUN_LEFT, PASSING_RUNS = 4, 4, 0.5, 2


@dataclass(eq=False)
class Holder:
    """A worker that holds a split key besides its home."""

    worker: int
    used: float
    """Slide of the last tuple it got."""


@dataclass(eq=False)
class Counter:
    """A place of the summary, and the holders of the key it counts, in order of adoption."""

    key: int = 0
    count: int = 0
    error: int = 0
    lasting: int = 0
    """Tuples of the key in about the last window, in parts."""
    holders: list[Holder] = field(default_factory=list)
    current: Holder | None = None
    turn: Holder | None = None
    """The holder before the one whose turn it is."""

    @property
    def certain(self) -> int:
        return self.count - self.error

    def unsplit(self) -> None:
        self.holders, self.current = [], None

    def after(self, holder: Holder) -> Holder:
        return self.holders[(self.holders.index(holder) + 1) % len(self.holders)]

    def drop(self, holder: Holder) -> None:
        before = self.holders[self.holders.index(holder) - 1]
        self.holders.remove(holder)
        self.turn = before if self.turn is holder else self.turn
        self.current = None if self.current is holder else self.current


class SlowEvenflow:
    """The rule of docs/evenflow-partitioner.md for one life of a partitioner (no rescale)."""

    def __init__(
        self,
        n: int,
        *,
        seed: int,
        sources: int = 1,
        window: str = "sliding",
        slide_ms: int = 50,
        slides: int = 6,
        price: float = 5e-4,
        level: float = 0.0,
        watch: int = 8,
        cells: int = 1 << 17,
        most_cells: int = 1 << 22,
        tail: str = "auto",
        weights: tuple[float, ...] = (),
    ) -> None:
        self.n, self.seed, self.price, self.enough = n, seed, price, level
        self.windowed, self.slide_ms, self.slides = window == "sliding", slide_ms, slides
        self.watched = ceil(watch * n * (1 if sources == 1 else max(sqrt(sources), min(8, 64 / sources))))
        self.fewest = max(FEWEST_OF_MANY, ceil(FEWEST / sqrt(sources)))
        self.remembers = tail == "remember" or (tail == "auto" and sources == 1)
        self.salt = int(salts(seed, 1, first=1 << 40)[0])
        self.shared = range(2, 2 + SHARED) if sources > 1 else range(0)
        self.take_speeds(np.array([*weights[:n], *[1.0] * (n - len(weights))]))
        sets = max(1, (1 << (4 * self.watched - 1).bit_length()) // 8)
        self.sets = [[Counter() for _ in range(8)] for _ in range(sets)]
        self.seen, self.memory = 0, max(LEAST_MEMORY, MEMORY * self.watched)
        self.aged = -inf
        self.sources = sources
        self.weighed, self.mean, self.grain, self.counted = False, 1, 1, 1
        """Whether a tuple has cost other than 1, the mean cost, that of the tuple a unit of cost belongs to,
        and that of a tuple that counts as one."""
        self.moments, self.rework = [0.0, 0.0, 0.0], 0
        """Tuples, costs, squares of costs of about a window, and how many tuples make mean and grain known
        anew.
        """
        self.sent: list[tuple[int, int, bool, int]] = []
        """(slide, worker, whether the key was split and lasts, cost) of every tuple of the window."""
        self.recount()
        self.credit, self.relieved = [0] * n, [0] * n
        self.relief = inf
        """The overload above which whole keys move away."""
        self.cells, self.most_cells = cells, max(cells, most_cells) if self.windowed else cells
        if not self.remembers:
            self.cells = self.most_cells = COUNTING
        self.sweeping = max(16, slides)
        """Slides in which every cell is looked at."""
        self.grew = -inf
        self.homes: dict[int, tuple[int, float]] = {}
        """Cell -> (worker, slide of its last tuple); the sweep drops the old ones, a few in each slide."""
        self.swept = 0
        self.brings = 0
        self.again = [0, 0]
        """Tuples of whole keys in about the last window, and those whose cell had a tuple in the same
        slide before.
        """
        self.before: int | None = None
        """The high half of the last tuple's hash."""
        self.in_row = 0
        """Tuples of whole keys in about the last window that came straight after one of the same key."""
        self.in_runs = [0, 0]
        """Tuples in about the last window but of split keys that last, and those that went on a run of a key
        that was new to the slide."""
        self.goes_on = 0
        """Whether such a run goes on."""
        self.limit = inf
        """The overload above which a run that begins moves away."""
        self.slide: int | None = None
        self.since = self.latest = -(2**63)
        self.full = 0
        """Tuples in the last window that was full."""
        self.doubted: list[tuple[int, int, int, bool, int]] = []
        """(high half of the key's hash, home, worker, whether split, time): beyond a silence that is not
        believed yet.
        """
        self.moved = 0
        """Cells that were moved away from a worker with too much."""
        self.runs_moved = 0
        """Cells that were moved when a run began."""
        self.most = 0
        """Holders that a key had at most, besides its home."""

    def take_speeds(self, speeds: Any) -> None:
        self.unit = 1 if np.all(speeds == speeds[0]) else FINE
        self.step = [max(1, int(step)) for step in np.rint(self.unit * speeds.mean() / speeds)]
        self.accept = np.floor(speeds / speeds.max() * 2**32)

    def set_speeds(self, speeds: Any) -> None:
        """As if workers had always been so fast. Where homes are hashed, a run does not go on where it
        was.
        """
        self.before = self.before if self.remembers else None
        old, unit = self.step, self.unit
        self.take_speeds(speeds)
        steps = list(zip(old, self.step, strict=True))
        self.credit = [load // a * b for load, (a, b) in zip(self.credit, steps, strict=True)]
        self.relieved = [load // a * b for load, (a, b) in zip(self.relieved, steps, strict=True)]
        self.recount()
        if self.relief < inf:
            self.relief = self.relief // unit * self.unit
        if self.limit < inf:
            self.limit = self.limit // unit * self.unit

    def recount(self) -> None:
        """Cost of the tuples in the window, loads, and loads of tuples that nothing else levels."""
        self.loads, self.whole, self.costs = [0] * self.n, [0] * self.n, 0
        for _, worker, split, cost in self.sent:
            self.add(worker, split, cost)

    def add(self, worker: int, split: bool, cost: int) -> None:
        self.costs += cost
        self.loads[worker] += self.step[worker] * cost
        self.whole[worker] += 0 if split else self.step[worker] * cost

    @property
    def chance(self) -> int:
        """The load of a tuple, where chance is spoken of."""
        return self.unit * self.grain

    def weigh(self) -> None:
        """The first tuple that costs other than 1. All before it cost 1."""
        self.weighed, self.moments = True, [float(self.costs)] * 3
        self.fewest *= WEIGHTS
        self.memory = min(self.memory * WEIGHTS, MOST_MEMORY)
        self.reckon(WEIGHTS, 1)

    def reckon(self, old: int, new: int) -> None:
        """Count in other units."""
        while self.seen * old // new >= 2 * self.memory:
            self.halve()
        self.seen = self.seen * old // new
        for way in (way for ways in self.sets for way in ways):
            way.count = way.count * old // new
            way.error = min(way.count, -(-way.error * old // new))

    def work_out(self) -> None:
        """Mean and grain of what came."""
        tuples, cost, squares = self.moments
        if tuples < 1:
            return
        self.mean = max(1, int(cost / tuples + 0.5))
        self.grain = max(self.mean, int(squares / cost + 0.5))
        counted = min(self.grain, COARSEST * self.mean)
        if STEADY * abs(counted - self.counted) > self.counted:
            self.reckon(self.counted, counted)
            self.counted = counted
        fewest = max(FEWEST_OF_MANY, ceil(FEWEST / sqrt(self.sources)))
        self.fewest = fewest * WEIGHTS * self.grain // self.counted
        self.rework = 2 * int(tuples) + 1

    def unsplit_loads(self) -> list[int]:
        """Of keys that were not split, and the credit of homes just given."""
        return [load + credit for load, credit in zip(self.whole, self.credit, strict=True)]

    def candidate(self, key: int, i: int) -> int:
        return int(candidate(np.array([key], np.uint64), i, self.n, self.seed)[0])

    def hashed_home(self, key: int) -> int:
        """A slow worker accepts fewer of the keys that are hashed to it."""
        tried = [(key + i * int(GOLDEN)) % 2**64 for i in range(32)]
        homes = [self.candidate(one, 1) for one in tried]
        accepted = (
            home
            for one, home in zip(tried, homes, strict=True)
            if mix64(one ^ self.salt) >> 32 < int(self.accept[home])
        )
        return next(accepted, homes[0])

    def move(self, time: int) -> None:
        """Into a later slide, and on to what was doubted and lies within a window of it."""
        here = time // self.slide_ms
        near = [doubt[-1] for doubt in self.doubted if doubt[-1] // self.slide_ms - here <= self.slides]
        silence = self.slide is not None and here - self.slide > self.slides
        time = max([time, *near])
        now = time // self.slide_ms
        before = now if self.slide is None else self.slide
        passed = self.slides if self.slide is None else min(self.slides, now - self.slide)
        if time - self.since >= self.slides * self.slide_ms and not silence:
            self.full = self.costs
        if self.weighed:
            self.work_out()
        self.slide = now
        if passed == self.slides:
            self.since = time
        self.sent = [one for one in self.sent if one[0] > now - self.slides]
        self.recount()
        kept = 0.0 if passed == self.slides else (1 - 1 / self.slides) ** passed
        if self.weighed:
            self.moments = [moment * kept for moment in self.moments]
            self.rework = 2 * int(self.moments[0]) + 1
        self.credit = [int(credit * kept) for credit in self.credit]
        self.relieved = [int(load * kept) for load in self.relieved]
        for way in (way for ways in self.sets for way in ways):
            for _ in range(passed if passed < self.slides else 0):
                way.lasting -= -(-way.lasting // self.slides)
            way.lasting = way.lasting if passed < self.slides else 0
        self.sweep(min(now - before, 1024))
        for counter in (way for ways in self.sets for way in ways):
            for holder in [holder for holder in counter.holders if holder.used <= now - self.slides]:
                counter.drop(holder)
        if now - self.aged >= max(1, self.slides // AGES) and 4 * self.seen >= self.memory:
            self.forget()
        if silence:
            for high, home, worker, split, cost, _ in self.doubted:
                if self.remembers:
                    self.homes[high % self.cells] = (home, now)
                self.sent.append((now, worker, split, cost))
                self.add(worker, split, cost)
            self.doubted = []
        for high, home, *_ in (doubt for doubt in self.doubted if doubt[-1] <= time and self.remembers):
            self.homes[high % self.cells] = (home, now)
        self.doubted = [doubt for doubt in self.doubted if doubt[-1] > time]
        self.latest = max(self.latest, time)
        tuples = sum(load / step for load, step in zip(self.whole, self.step, strict=True))
        full = time - self.since >= self.slides * self.slide_ms
        brings = tuples / max(1, len(self.homes)) + (not full) * self.mean
        self.brings = int(max(0.0, brings - self.again[0] / max(1, self.again[0] - self.again[1])))
        self.relief, self.limit = self.limits(brings) if self.full and self.remembers else (inf, inf)
        if not self.remembers:
            self.limit = self.limit_of_hashed(brings)
        self.again = [count - count // self.slides for count in self.again]
        self.in_row -= self.in_row // self.slides
        self.in_runs = [count - count // self.slides for count in self.in_runs]
        crowded = 2 * len(self.homes) > self.cells
        if crowded and self.cells < self.most_cells and now >= self.grew + self.slides + self.sweeping:
            self.grow()

    def limits(self, brings: float) -> tuple[int, float]:
        """The overloads above which a key moves away, and a run that begins. brings: what a cell brings in
        a window.
        """
        mean = max(self.full, self.costs) / self.n
        average = self.price * 0.1 * sqrt(max(1.0, self.keys())) * mean
        chance = FEW * self.grain + (sqrt(2 * log(self.n)) + SIGMAS) * sqrt(mean * self.grain)
        length = self.again[0] / max(1, self.again[0] - self.in_row)
        run = length * self.mean
        least = self.enough * mean * self.n
        relief = int(max(chance + average, least) * self.unit)
        # A length of 0: all tuples that count are of split keys.
        if length < SHORTEST_RUN or brings > MOST_RUNS * run or mean < RUNS_OF_WORKER * run:
            return relief, inf
        times = max(1.0, brings / run)
        run_price = RUN_PRICE * average * times / (length - 1) ** 2
        return relief, int(max(self.grain + run_price, least) * self.unit)

    def limit_of_hashed(self, brings: float) -> float:
        """The overload above which a run that begins goes to another candidate."""
        if self.sources == 1 or not self.in_long_runs():
            return inf
        run = self.length_of_runs() * self.mean
        if brings > MOST_RUNS * run:
            return inf
        return int(max(RUN_LEFT * run, self.enough * max(self.full, self.costs)) * self.unit)

    def in_long_runs(self) -> bool:
        whole, going_on = self.in_runs
        return whole - going_on >= RUNS_SEEN * self.mean and LONG_RUN * (whole - going_on) <= whole

    def length_of_runs(self) -> float:
        whole, going_on = self.in_runs
        return whole / max(1, whole - going_on)

    def grow(self) -> None:
        """Four times as many cells: the keys of one are in several now, and keep their worker."""
        self.grew = self.now
        factor = min(4, self.most_cells // self.cells)
        self.homes = {cell + self.cells * i: home for cell, home in self.homes.items() for i in range(factor)}
        self.cells *= factor

    def sweep(self, passed: int) -> None:
        for _ in range(min(self.cells, passed * (self.cells // self.sweeping + 1))):
            self.forget_if_old(self.swept)
            self.swept = (self.swept + 1) % self.cells

    def forget_if_old(self, cell: int) -> None:
        if self.windowed and cell in self.homes and self.homes[cell][1] <= self.now - self.slides:
            del self.homes[cell]

    @property
    def now(self) -> float:
        return -inf if self.slide is None else self.slide

    def counter(self, key: int, spot: int, cost: int) -> Counter:
        """Count the tuple; SpaceSaving within the key's set."""
        weight = max(1, cost * WEIGHTS // self.counted) if self.weighed else 1
        ways = self.sets[spot & (len(self.sets) - 1)]
        result = next((way for way in ways if way.key == key), None)
        if result is None:
            result = min(ways, key=lambda way: way.count)
            result.key, result.error, result.lasting = key, result.count, 0
            result.unsplit()
        result.count += weight
        result.lasting += PARTS * cost
        self.seen += weight
        if self.seen >= 2 * self.memory:
            self.forget()
        return result

    def forget(self) -> None:
        """Half of what was seen."""
        self.halve()
        for way in (way for ways in self.sets for way in ways):
            if self.cooled(way):
                way.unsplit()
        self.aged = self.now

    def halve(self) -> None:
        self.seen //= 2
        for way in (way for ways in self.sets for way in ways):
            way.count //= 2
            way.error = min(way.count, (way.error + 1) // 2)

    def cooled(self, counter: Counter) -> bool:
        return 2 * self.watched * counter.certain < self.seen

    def home(self, key: int, spot: int, in_row: bool) -> int:
        cell = (spot >> 32) % self.cells
        if not self.remembers:
            self.forget_if_old(cell)
            goes_on = in_row and self.sources > 1 and cell in self.homes
            worker = self.homes[cell][0] if goes_on else self.hashed_home(key)
            self.homes[cell] = (worker, self.now)
            return worker
        self.forget_if_old(cell)
        if cell in self.homes:
            worker = self.homes[cell][0]
        else:
            loads = self.unsplit_loads()
            doubted = [home for high, home, *_ in self.doubted if high % self.cells == cell]
            worker = doubted[-1] if doubted else loads.index(min(loads))
            self.credit[worker] += self.brings * self.step[worker]
        self.homes[cell] = (worker, self.now)
        return worker

    def move_home(self, cell: int, home: int) -> int:
        """The cell goes to the worker with the least load of whole keys, and with it what the cell will
        bring.
        """
        loads, brings = self.unsplit_loads(), max(self.mean, self.brings)
        to = loads.index(min(loads))
        if to == home:
            return home
        self.credit[home] -= brings * self.step[home]
        self.relieved[home] += brings * self.step[home]
        self.credit[to] += brings * self.step[to]
        self.give(cell, to)
        self.moved += 1
        return to

    def move_run(self, cell: int) -> int:
        """The cell goes to the worker with the least load."""
        to = self.loads.index(min(self.loads))
        self.give(cell, to)
        self.runs_moved += 1
        return to

    def share_run(self, key: int, cell: int, home: int, level: float) -> int:
        """The first shared candidate below the mean, or the least loaded of all and the home."""
        shared = [self.candidate(key, i) for i in self.shared]
        below = [worker for worker in shared if self.loads[worker] < level]
        among = below[:1] or [home, *shared]
        to = min(among, key=lambda worker: self.loads[worker])
        self.give(cell, to)
        self.runs_moved += 1
        return to

    def give(self, cell: int, to: int) -> None:
        self.homes[cell] = (to, self.now)
        self.doubted = [
            (high, to if high % self.cells == cell else before, *rest) for high, before, *rest in self.doubted
        ]

    def fill(self, counter: Counter, home: int, level: float) -> int:
        """The holder in use until it is full; then the first one below that by the margin, else the least."""
        oldest, loads = self.now - self.slides + 1, self.loads

        def worker() -> int:
            return home if counter.current is None else counter.current.worker

        stale = counter.current is not None and counter.current.used < oldest
        if loads[worker()] > level or stale:
            best, least, enough = None, loads[home], level - MARGIN * self.chance / sqrt(self.sources)
            before = counter.holders[-1]
            looks = 0 if least <= enough else min(len(counter.holders), LOOKS)
            turned = False
            while looks:
                looks -= 1
                holder = counter.after(before)
                if holder.used < oldest:
                    counter.drop(holder)
                    if not counter.holders:
                        break
                else:
                    if loads[holder.worker] < least:
                        best, least = holder, loads[holder.worker]
                        if least <= enough:
                            break
                    before = holder
                if looks == 0 and not turned and len(counter.holders) > LOOKS:
                    assert counter.turn is not None
                    turned, looks, before = True, LOOKS, counter.turn
            if turned:
                counter.turn = before
            counter.current = best
        if counter.current is not None:
            counter.current.used = self.now
        return worker()

    def fullness(self, tuples: int) -> float:
        """How many times its present load the window will hold when it is full. tuples: the cost of these."""
        if not self.windowed or self.full:
            return 1.0
        span = self.latest - self.since + 1
        return max(
            1.0,
            min(
                8.0 * self.slides,
                self.slides * self.slide_ms / span,
                FILLED * self.watched * self.mean / tuples,
            ),
        )

    def keys(self) -> float:
        """About how many keys the window has."""
        return self.cells * log(self.cells / max(self.cells - len(self.homes), self.cells * LEAST_FREE))

    def price_of(self, counter: Counter, level: float, tuples: int) -> float:
        """The overload above which another holder pays."""
        mean = self.full * (self.unit / self.n) or level
        lasts = self.fullness(tuples) * mean * self.price * sqrt(0.01 * self.seen / counter.certain)
        filled = self.fullness(tuples) if self.in_long_runs() else 1.0
        lasted = counter.lasting * float(self.seen) / (float(PARTS) * (filled * tuples) * counter.certain)
        run = self.length_of_runs() * self.mean
        if (
            self.in_long_runs()
            and self.sources > 1
            and not self.remembers
            and counter.lasting <= PARTS * PASSING_RUNS * run
        ):
            lasted = 0.0
        average = self.unit * tuples / max(1.0, self.keys())
        own = max(1.0, self.unit * counter.lasting / PARTS)
        most = min(1.0, sqrt((filled * mean) / average)) * (filled * mean) / 2
        common = GRAINS * average
        grain = min(own if self.remembers else common, common**2 / own, most)
        return max(
            lasts + max(0.0, 1 - lasted) ** 2 * grain, self.fullness(tuples) * self.enough * mean * self.n
        )

    def buy(self, counter: Counter, key: int, home: int, level: float) -> int | None:
        """A holder that is the least loaded of all, bought if it is none yet; None: there is nothing to
        gain.
        """
        loads = self.loads
        lightest = loads.index(min(loads))
        mine = next((holder for holder in counter.holders if holder.worker == lightest), None)
        if mine is not None:
            mine.used = self.now
            return lightest
        if loads[lightest] >= level or lightest == home:
            return None
        held = {home, *(holder.worker for holder in counter.holders)}
        wanted = (self.candidate(key, i) for i in self.shared)
        other = next((w for w in wanted if loads[w] < level and w not in held), lightest)
        if sum(len(way.holders) for ways in self.sets for way in ways) == HOLDERS * self.watched:
            return None
        counter.holders.append(Holder(other, self.now))
        if len(counter.holders) == 1:
            counter.turn = counter.holders[0]
        return other

    def assign(self, key: int, time: int, cost: int = 1) -> int:
        doubted = False
        if cost != 1 and not self.weighed:
            self.weigh()
        if self.windowed:
            ahead = inf if self.slide is None else time // self.slide_ms - self.slide
            doubted = self.slides < ahead < inf and len(self.doubted) < DOUBTS - 1
            if ahead > 0 and not doubted:
                self.move(time)
            if not doubted:
                self.latest = max(self.latest, time)
                self.doubted = self.doubted[:-1]
        if self.weighed:
            if self.moments[0] >= self.rework:
                self.work_out()
            self.moments = [moment + cost**power for power, moment in enumerate(self.moments)]
        tuples = self.costs + cost
        spot = mix64(key ^ self.salt)
        counter = self.counter(key, spot, cost)
        soon = self.homes.get((spot >> 32) % self.cells, (0, None))[1] == self.now
        in_row, self.before = self.before == spot >> 32, spot >> 32
        home = worker = self.home(key, spot, in_row)
        level = tuples * (self.unit / self.n)
        if counter.holders and self.cooled(counter):
            counter.unsplit()
        if counter.holders:
            worker = self.fill(counter, home, level - (self.chance if self.sources > 1 else 0))
        hot = counter.certain * self.watched >= self.seen and counter.certain >= self.fewest
        over = self.loads[worker] - level - MARGIN * self.chance / self.sources
        if hot and over > self.price_of(counter, level, tuples):
            bought = self.buy(counter, key, home, level)
            worker = worker if bought is None else bought
        over, rare = self.loads[worker] - level, not counter.holders and not doubted and not hot
        if over > self.limit and not in_row and rare:
            cell = (spot >> 32) % self.cells
            worker = self.move_run(cell) if self.remembers else self.share_run(key, cell, home, level)
        elif over - self.relieved[worker] > self.relief and rare:
            worker = self.move_home((spot >> 32) % self.cells, worker)
        lasts = 2 * counter.lasting * self.seen >= PARTS * counter.certain * tuples
        split = bool(counter.holders) and lasts
        self.sent.append((self.slide or 0, worker, split, cost))
        self.add(worker, split, cost)
        if not split:
            self.again = [self.again[0] + cost, self.again[1] + soon * cost]
            self.in_row += in_row * cost
        if not in_row:
            self.goes_on = 1 - soon
        full = int(self.fullness(tuples) * tuples)
        if not counter.holders or 2 * counter.lasting * self.seen < PARTS * counter.certain * full:
            self.in_runs[0] += cost
            self.in_runs[1] += self.goes_on * in_row * cost
        if doubted:
            self.doubted.append((spot >> 32, home, worker, split, cost, time))
        self.most = max(self.most, len(counter.holders))
        return worker


def route(model: SlowEvenflow, keys: Any, times: Any, costs: Any = None) -> list[int]:
    costs = [1] * len(keys) if costs is None else costs.tolist()
    rows = zip(keys.tolist(), times.tolist(), costs, strict=True)
    return [model.assign(key, time, cost) for key, time, cost in rows]
