"""What a seed draws: the shape of a pipeline and the strikes that hit it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

KINDS = (
    "kill partitioner", "stop partitioner", "pause partitioner", "one more partitioner",
    "kill driver", "stop driver", "pause driver", "second driver", "kill java",
    "kill python worker",
    "kill broker", "restart broker", "pause broker",
    "cut connections", "slow connections", "refuse connections",
    "plan", "trim routed", "power cut",
)  # fmt: skip
"""Kinds of strikes that any machine can play."""
ON_SMALL_DISKS = ("full checkpoint", "full broker")
"""Kinds that need file systems of their own, which root alone can mount."""
ON_SET_CLOCKS = ("set clock",)
"""Kinds that need a C compiler (clocks.py)."""
WITH_A_REGISTRY = ("registry fails",)
"""Kinds for courses whose records are registered."""
ON_EXECUTORS = ("kill executor",)
"""Kinds for courses whose application has executors, which are processes of their own."""
WITH_A_CONTROLLER = ("kill controller", "stop controller", "pause controller")
"""Kinds for courses that have a controller."""
PARTS = {
    "partitioner": ("kill partitioner", "stop partitioner", "pause partitioner", "one more partitioner"),
    "driver": ("kill driver", "stop driver", "pause driver", "second driver"),
    "Spark's processes": ("kill java", "kill python worker", *ON_EXECUTORS),
    "controller": (*WITH_A_CONTROLLER, "plan"),
    "broker": ("kill broker", "restart broker", "pause broker", "trim routed", "full broker"),
    "network": ("cut connections", "slow connections", "refuse connections"),
    "checkpoint": ("full checkpoint",),
    "registry": WITH_A_REGISTRY,
    "clocks": ON_SET_CLOCKS,
    "everything": ("power cut",),
}
"""Part of the pipeline -> the kinds that hit it."""
EVERY_KIND = (*KINDS, *ON_SMALL_DISKS, *WITH_A_REGISTRY, *ON_SET_CLOCKS, *ON_EXECUTORS, *WITH_A_CONTROLLER)
RARE = {"power cut": 0.4, "kill broker": 0.7, "restart broker": 0.5, "full broker": 0.5}
"""Weight of the kinds that cost a round much time. All others have the weight 1."""
LASTING = {
    "pause partitioner": (0.5, 14.0),
    "pause driver": (0.5, 14.0),
    "pause controller": (0.5, 14.0),
    "one more partitioner": (4.0, 15.0),
    "second driver": (0.0, 8.0),
    "pause broker": (0.5, 8.0),
    "slow connections": (1.0, 6.0),
    "refuse connections": (0.5, 6.0),
    "full checkpoint": (2.0, 8.0),
    "full broker": (1.0, 4.0),
    "registry fails": (1.0, 10.0),
}
"""For how many seconds a strike lasts. All others are over at once. The session of a member of a group ends
after 3 s, a transaction after 10 s, so a pause may outlast both."""
GAP = (0.2, 4.0)
"""Seconds between the beginnings of two strikes, at least and at most."""
CALM = 0.2
"""Share of the strikes before which the pipeline may come to work again. All others hit whatever state it
is in.
"""
PARTITIONERS = (
    "evenflow", "evenflow", "dalton-cooperative", "dalton", "d-choices", "cam", "pkg", "hashing",
    "shuffle", "prompt", "time-based",
)  # fmt: skip
BATCH_PARTITIONERS = frozenset({"prompt", "time-based"})


@dataclass(frozen=True)
class Strike:
    """One fault. gap: seconds after the one before. calm: whether the pipeline has to be at work again before
    it.

    target: which of the parts that it may hit. lasts: seconds.
    """

    gap: float
    calm: bool
    kind: str
    target: int
    lasts: float

    def __str__(self) -> str:
        until = f" for {self.lasts:.1f} s" if self.lasts else ""
        return (
            f"+{self.gap:.1f} s{', at work again' if self.calm else ''}: {self.kind}, target"
            f" {self.target}{until}"
        )


@dataclass(frozen=True)
class Course:
    """One round: a pipeline and what happens to it."""

    seed: int
    wiring: str
    sink: str
    partitioner: str
    instances: int
    views: bool
    late: str
    registered: bool
    forwarding: str
    executors: bool
    controlled: bool
    strikes: tuple[Strike, ...]

    @property
    def sets_clocks(self) -> bool:
        """Whether a strike sets a clock."""
        return any(strike.kind in ON_SET_CLOCKS for strike in self.strikes)

    def __str__(self) -> str:
        shape = (
            f"seed {self.seed}: {self.wiring}, {self.sink}, {self.partitioner}, {self.instances} instances"
            f"{', views' if self.views else ''}{', late tuples update' if self.late == 'update' else ''}"
            f"{', registered' if self.registered else ''}"
            f"{', forwarding' if self.forwarding == 'on' else ''}"
            f"{', executors' if self.executors else ''}{', a controller' if self.controlled else ''}"
        )
        return "\n".join([shape, *map(str, self.strikes)])


UNHARMED = Course(
    seed=1, wiring="fused", sink="kafka", partitioner="evenflow", instances=2, views=False, late="reject",
    registered=False, forwarding="off", executors=False, controlled=False, strikes=(),
)  # fmt: skip
"""A pipeline without drawn strikes."""


def playable(*, small_disks: bool, clocks: bool) -> tuple[str, ...]:
    """The kinds that a machine can play. small_disks: it may mount file systems. clocks: it can set them."""
    left_out = {*(() if small_disks else ON_SMALL_DISKS), *(() if clocks else ON_SET_CLOCKS)}
    return tuple(kind for kind in EVERY_KIND if kind not in left_out)


def draw(seed: int, *, faults: int, kinds: Sequence[str] = KINDS) -> Course:
    """The course of this seed. faults: number of strikes. kinds: those that this machine can play.

    What a course of KINDS alone does not have is drawn by dice of its own, so that seeds of before have the
    same strikes.
    """
    dice = random.Random(seed)
    partitioner = dice.choice(PARTITIONERS)
    shape: dict[str, Any] = {
        "wiring": dice.choice(("fused", "split")),
        "sink": dice.choice(("kafka", "frames", "parquet", "delta")),
        "instances": dice.randint(1, 3),
        "views": dice.random() < 0.3,
        "late": "update" if dice.random() < 0.25 else "reject",
    }
    with_a_registry = bool(set(kinds) & set(WITH_A_REGISTRY))
    shape["registered"] = with_a_registry and dice.random() < 0.7
    if with_a_registry and _happens(f"sink {seed}", 0.2):
        shape["sink"] = "avro"
    shape["executors"] = bool(set(kinds) & set(ON_EXECUTORS)) and _happens(f"executors {seed}", 0.3)
    shape["controlled"] = bool(set(kinds) & set(WITH_A_CONTROLLER)) and _happens(f"controller {seed}", 0.4)
    kinds = _possible(kinds, shape)
    weights = [RARE.get(kind, 1.0) for kind in kinds]
    strikes = []
    for number in range(faults):
        kind = dice.choices(kinds, weights)[0]
        shortest, longest = LASTING.get(kind, (0.0, 0.0))
        strikes.append(
            Strike(
                gap=dice.uniform(*GAP),
                calm=dice.random() < CALM or number == 0,
                kind=kind,
                target=dice.randrange(1_000),
                lasts=dice.uniform(shortest, longest),
            )
        )
    shape["forwarding"] = "on" if _happens(f"forwarding {seed}", 0.3) else "off"
    return Course(seed=seed, partitioner=partitioner, strikes=tuple(strikes), **shape)


def _happens(what: str, chance: float) -> bool:
    return random.Random(what).random() < chance


def _possible(kinds: Sequence[str], shape: dict[str, Any]) -> Sequence[str]:
    """The kinds that a pipeline of this shape can meet. Where it can meet none of them, the shape changes."""
    needs = dict.fromkeys(WITH_A_REGISTRY, "registered") | dict.fromkeys(ON_EXECUTORS, "executors")
    needs |= dict.fromkeys(WITH_A_CONTROLLER, "controlled")
    if all(kind in needs for kind in kinds):
        shape.update({needs[kind]: True for kind in kinds})
    return [kind for kind in kinds if kind not in needs or shape[needs[kind]]]
