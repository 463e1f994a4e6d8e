"""Focuses: schedules that look where one class of hole would be, instead of everywhere.

A hole often needs a rare shape and two or three faults at certain places. A focus draws these, and the rest
as any other schedule does. `drawing.py` gives some seeds a focus, and `test_runs.py` uses one for each mend
that it takes out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.faults.schedules.schedule import Fault

Place = tuple[str, int, int]
"""(kind of call, lowest number, highest number)."""


@dataclass(frozen=True)
class Aim:
    """A fault that is drawn `count` times: one of these kinds, at one of these places, for so many
    seconds.
    """

    kinds: tuple[str, ...]
    places: tuple[Place, ...]
    seconds: tuple[float, float] = (0.0, 0.0)
    count: tuple[int, int] = (1, 1)

    def drawn(self, draw: Random) -> list[Fault]:
        """Faults of this aim."""
        return [self._one(draw) for _ in range(draw.randint(*self.count))]

    def _one(self, draw: Random) -> Fault:
        call, lowest, highest = draw.choice(self.places)
        number = draw.randint(lowest, highest)
        return Fault(
            draw.choice(self.kinds), call, number, draw.uniform(*self.seconds), draw.randrange(1 << 30)
        )


@dataclass(frozen=True)
class Focus:
    """What is drawn otherwise. shape: choices by field of `Shape`. aims: faults, instead of those of any
    schedule.

    future, silent: how likely it is that a tuple is from far ahead, and that a partition is silent at first.
    quiet: whether the condition drops all tuples of the first half. seconds: choices of how long records are
    written. ends: seconds, at least and at most, from then on until a partition ends. texts, batches: how
    likely it is that tuples have texts, some of them too long, that there are batches that cannot be fetched,
    and that not every row is emitted, or rows become frames. cut: how likely it is that partitioners route in
    micro-batches. limits: how likely it is that `max_jump` or `out_of_orderness` changes, beside what `aims`
    says.
    """

    aims: tuple[Aim, ...] = ()
    shape: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    future: float = 0.2
    silent: float = 0.25
    quiet: bool = False
    seconds: tuple[float, ...] = (3.0, 6.0, 10.0)
    ends: tuple[float, float] = (0.0, 2.0)
    texts: float = 0.0
    batches: float = 0.0
    emits: float = 0.0
    cut: float = 0.0
    limits: float = 0.0


_SPARK = (
    ("plan batch", 1, 8),
    ("run task", 1, 16),
    ("save state", 1, 8),
    ("commit batch", 1, 8),
    ("write rows", 1, 8),
    ("file", 1, 24),
)
_ANYWHERE = (("*", 40, 600),)

FOCUSES: dict[str, Focus] = {
    "two drivers": Focus(
        (Aim(("pause before", "pause after"), _SPARK, (5.0, 20.0), (1, 3)),),
        {"store": ("disk", "objects", "objects"), "piece": (0.3, 0.8)},
    ),
    "ends of sessions": Focus(
        (Aim(("lose ends",), (("*", 60, 300),), (0.0, 0.3)), Aim(("rebalance",), _ANYWHERE, count=(0, 1))),
        {
            "instances": (1, 1, 2),
            "workers": (1, 2),
            "inputs": (1, 2),
            "commit": (300,),
            "linger": (200,),
            "interval": (6_000,),
        },
    ),
    "repeats": Focus(
        (
            Aim(
                ("crash before", "crash after"),
                (("commit batch", 1, 10), ("write rows", 1, 12)),
                count=(1, 3),
            ),
            Aim(("task fails",), (("run task", 1, 30),), count=(0, 2)),
        ),
        {"wiring": ("split", "split", "fused"), "piece": (0.9,), "window": (4_000,)},
        emits=0.3,
    ),
    "future": Focus(
        (Aim(("wall step",), _ANYWHERE, count=(0, 1)), Aim(("rebalance",), _ANYWHERE, count=(0, 1))),
        {"ahead": (3_600_000,)},
        future=1.0,
    ),
    "leaps": Focus(
        (Aim(("rebalance", "delay"), _ANYWHERE, (0.1, 4.0), count=(0, 1)),),
        {"ahead": (None,), "idle": (1_500,), "inputs": (2, 3), "instances": (1, 2), "disorder": (0, 1_000)},
        future=1.0,
        silent=0.8,
    ),
    "aborts": Focus(
        (
            Aim(
                ("delivery fails",), (("offsets", 2, 14), ("offsets", 2, 14), ("commit", 2, 20)), count=(2, 5)
            ),
        ),
        {"instances": (1, 1, 2), "workers": (1, 2, 3), "commit": (300, 1_000), "buckets": (1, 2)},
    ),
    "rebalances": Focus(
        (
            Aim(("rebalance",), _ANYWHERE, count=(1, 3)),
            Aim(
                ("pause before", "pause after", "crash late"),
                (("commit", 2, 14), ("flush", 2, 20)),
                (6.5, 12.0),
                (0, 2),
            ),
        ),
        {"instances": (2, 3), "inputs": (2, 3), "commit": (1_000, 2_000)},
    ),
    "the beginning": Focus(
        (Aim(("pause before",), (("offsets", 1, 2), ("list_offsets", 2, 8)), (2.0, 9.0)),),
        {"instances": (2, 3), "start": ("earliest",)},
    ),
    "expiry": Focus(
        (Aim(("expire offsets",), (("*", 100, 450),), (8.0, 12.0)),),
        {"start": ("latest", "latest", "earliest"), "filtered": (True,)},
        quiet=True,
    ),
    "growth": Focus(
        (
            Aim(("add partitions",), (("*", 100, 500),), (0.0, 3.0), (1, 2)),
            Aim(("rebalance",), (("*", 200, 700),), count=(0, 1)),
            Aim(("delivery fails",), (("offsets", 2, 14), ("commit", 2, 20)), count=(0, 2)),
            Aim(
                ("crash before", "crash after", "crash late", "pause before", "pause after", "delay"),
                (("commit", 3, 40), ("committed", 8, 60), ("committed", 8, 60)),
                (0.5, 5.0),
                (0, 2),
            ),
        ),
        {
            "instances": (2, 2, 3),
            "inputs": (2, 3),
            "start": ("earliest",),
            "window": (2_000,),
            "disorder": (0, 0, 1_000),
            "lateness": (0,),
            "interval": (500, 1_500),
        },
        silent=0.0,
        seconds=(10.0, 16.0),
        ends=(2.0, 24.0),
    ),
    "bounds": Focus(
        (
            Aim(("rebalance",), (("*", 60, 300),), count=(0, 1)),
            Aim(("delivery fails",), (("offsets", 2, 14), ("commit", 2, 14)), count=(0, 1)),
            Aim(("task fails",), (("run task", 1, 30),), count=(0, 1)),
        ),
        {"window": (2_000, 4_000)},
        texts=1.0,
    ),
    "unfetchable": Focus(
        (
            Aim(("rebalance",), _ANYWHERE, count=(0, 1)),
            Aim(("delivery fails",), (("offsets", 2, 14), ("commit", 2, 20)), count=(0, 1)),
            Aim(
                ("crash before", "crash after", "pause before"),
                (("commit", 2, 20), ("offsets", 2, 20), ("consume", 20, 120)),
                (0.5, 9.0),
                (0, 2),
            ),
        ),
        {"idle": (None, 1_500)},
        batches=1.0,
    ),
    "verify": Focus(
        (
            Aim(("truncate routed",), (("*", 100, 400),), count=(0, 1)),
            Aim(("rebalance", "crash late"), _ANYWHERE, (0.1, 4.0), count=(0, 1)),
        ),
        {
            "verified": (True,),
            "alone": ("max(v)", "min(v)", "count_distinct(v)", "quantile(v, 0.5)", "top_k(v, 2)", "count(v)"),
            "sink": ("kafka",),
            "instances": (1, 2),
            "workers": (1, 2),
            "window": (4_000,),
            "block": (4,),
            "linger": (200,),
            "commit": (300,),
            "disorder": (3_000,),
        },
    ),
    "truncated input": Focus(
        (
            Aim(("truncate input",), (("*", 100, 500),)),
            Aim(("rebalance", "crash late"), _ANYWHERE, (0.1, 4.0), count=(0, 1)),
        ),
        {"instances": (1, 2), "sink": ("kafka",), "commit": (300,), "linger": (200,)},
    ),
    "made again": Focus(
        (
            Aim(("recreate input", "recreate input", "recreate routed"), (("*", 60, 250),)),
            Aim(
                ("pause before",),
                (("consume", 6, 24), ("consume", 6, 24), ("consume", 2, 80)),
                (5.0, 20.0),
                (1, 2),
            ),
            Aim(("crash before", "crash late"), _ANYWHERE, (0.1, 4.0), count=(0, 1)),
        ),
        {
            "instances": (1, 1, 2),
            "inputs": (1, 2),
            "start": ("earliest",),
            "commit": (300,),
            "linger": (200,),
        },
        silent=0.5,
        seconds=(10.0, 16.0),
    ),
    "micro-batches": Focus(
        (
            Aim(("rebalance",), _ANYWHERE, count=(0, 2)),
            Aim(("delivery fails",), (("offsets", 2, 14), ("commit", 2, 20)), count=(0, 2)),
            Aim(("add partitions",), (("*", 100, 400),), (0.0, 3.0), (0, 1)),
            Aim(
                ("crash before", "crash after", "crash late", "pause before", "pause after", "delay"),
                (("commit", 3, 20), ("consume", 10, 90), ("offsets", 2, 20)),
                (0.5, 9.0),
                (0, 2),
            ),
        ),
        {
            "instances": (1, 2, 2, 3),
            "inputs": (2, 3),
            "commit": (300, 1_000),
            "idle": (None, 1_500),
            "start": ("earliest",),
            "max_skew": (2_000, 2_000, 4_000, None),
        },
        silent=0.3,
        batches=0.3,
        ends=(0.0, 8.0),
        cut=1.0,
    ),
    "updates": Focus(
        (
            Aim(("rebalance",), _ANYWHERE, count=(0, 1)),
            Aim(("task fails",), (("run task", 1, 30),), count=(0, 2)),
            Aim(
                ("crash before", "crash after", "pause before", "pause after"),
                _SPARK,
                (5.0, 20.0),
                (0, 2),
            ),
        ),
        {
            "updates": (True,),
            "lateness": (2_000, 5_000),
            "disorder": (0, 1_000),
            "window": (2_000, 4_000),
            "emit": ("all",),
            "interval": (500, 1_500),
            "sink": ("kafka", "frames", "parquet"),
        },
        silent=0.0,
        seconds=(6.0, 10.0),
        texts=0.2,
        cut=0.1,
    ),
    "limits": Focus(
        (
            Aim(("change limits",), (("*", 60, 400),), (0.0, 1.0), (2, 4)),
            Aim(("rebalance",), _ANYWHERE, count=(0, 1)),
            Aim(("delivery fails",), (("offsets", 2, 14), ("commit", 2, 20)), count=(0, 1)),
            Aim(
                ("crash before", "crash after", "crash late", "pause before", "pause after"),
                (("commit", 3, 20), ("consume", 10, 90)),
                (0.5, 9.0),
                (0, 1),
            ),
        ),
        {
            "instances": (1, 2, 2, 3),
            "inputs": (2, 3),
            "idle": (None, 1_500),
            "disorder": (0, 0, 0, 1_000),
            "lateness": (0, 0, 0, 2_000),
            "start": ("earliest",),
            "commit": (300,),
            "linger": (200,),
            "window": (2_000,),
        },
        silent=0.2,
        seconds=(10.0, 16.0),
        emits=0.2,
        cut=0.2,
    ),
    "offsets that fall": Focus(
        (
            Aim(("offsets fall back",), (("*", 60, 400),), (0.0, 0.3)),
            Aim(("rebalance",), _ANYWHERE, count=(0, 1)),
        ),
        {
            "instances": (1, 1, 2),
            "workers": (3, 4),
            "inputs": (1, 2),
            "buckets": (1, 2),
            "partitioner": ("evenflow", "dalton-cooperative", "shuffle"),
            "window": (4_000,),
            "disorder": (1_000, 3_000),
            "commit": (300,),
            "linger": (200,),
            "interval": (500, 1_500, 6_000),
        },
        seconds=(10.0, 16.0),
    ),
    "partials": Focus(
        (
            Aim(("truncate partials",), (("*", 100, 450), ("plan batch", 2, 8), ("plan batch", 2, 8))),
            Aim(
                ("crash before", "crash after"),
                (("commit batch", 1, 10), ("write rows", 1, 12)),
                count=(0, 1),
            ),
        ),
        {"wiring": ("split",), "interval": (1_500, 6_000), "buckets": (1, 1, 2), "piece": (0.1,)},
    ),
    "damage": Focus((Aim(("damage state",), (("plan batch", 2, 8), ("commit batch", 1, 6))),)),
}
"""By name. `mutations.py` names the focus that looks for each mend."""
MORE_FOCUSES = ("offsets that fall", "partials")
"""Seeds draw these apart from the others, so that most seeds have the focus that they had before there
were these.
"""
