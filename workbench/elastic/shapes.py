"""The streams that a closed loop is shown on: how their rate, or their hottest key, changes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenflow.errors import ConfigError
from evenflow.text.options import name_of
from producers.profiles import PROFILES, Curve, parse_profile

BASE = 1_000.0
"""Tuples per second. Small on purpose: on two cores more executors compute no faster,
so a tuple costs a wait instead.
"""


@dataclass(frozen=True, kw_only=True)
class Shape:
    """A stream with a course of its own."""

    name: str
    """The value of `evenflow demo --profile` that selects it."""
    profile: str
    """Profile of the stream's rate, as `evenflow replay --profile` takes it."""
    source: str
    """A generator with its options."""
    seconds: float
    """How long the stream is replayed."""

    def rates(self) -> Curve:
        """When each tuple is due. Raises ConfigError for a profile without a rate curve."""
        curve = parse_profile(self.profile)
        if not isinstance(curve, Curve):
            raise ConfigError(f"profile {self.profile} has no rate curve", hint=f"known: {', '.join(SHAPES)}")
        return curve

    def tuples(self) -> int:
        """How many tuples are due within `seconds`."""
        return int(self.rates().due(np.array(self.seconds)))

    @property
    def first_rate(self) -> float:
        """Tuples that are due within the first second."""
        return float(self.rates().due(np.array(1.0)))


SEED = 5
"""Seed of every stream."""
STEADY = f"zipf:z=1.1,keys=2000,tuples=endless,rate=1000,seed={SEED}"
"""The stream of all shapes but the flash crowd, and of every warm-up."""
_CROWD = (
    f"flash-crowd:z=1.1,keys=2000,tuples=endless,rate=1000,seed={SEED},period=4s,share=0.6,first=9,last=40"
)

SHAPES: dict[str, Shape] = {
    shape.name: shape
    for shape in (
        Shape(
            name="spike",
            profile=f"spike:base={BASE:g},peak={2 * BASE:g},at=35s,for=60s",
            source=STEADY,
            seconds=135,
        ),
        Shape(
            name="staircase",
            profile=f"staircase:from={BASE / 2:g},to={2.5 * BASE:g},step={BASE / 2:g},every=27s",
            source=STEADY,
            seconds=135,
        ),
        Shape(
            name="sine",
            profile=f"sine:base={1.4 * BASE:g},amplitude={BASE:g},period=90s",
            source=STEADY,
            seconds=135,
        ),
        Shape(
            name="flash-crowd",
            profile=f"spike:base={BASE:g},peak={2 * BASE:g},at=35s,for=65s",
            source=_CROWD,
            seconds=135,
        ),
    )
}
"""The shapes by name.

The crowd's periods count by the generator's own clock. They span tuples 36,000 to 164,000, which is the peak
of its rate.
"""


def shape_of(text: str, *, seconds: float | None = None) -> Shape:
    """One of the named shapes, or a rate profile over the steady stream.
    Raises ConfigError for anything else.

    seconds: how long the shape is replayed. None: as long as the shape says.
    """
    shape = SHAPES.get(text)
    if shape is None:
        name = name_of(text)
        if name not in PROFILES:
            raise ConfigError(
                f"there is no profile {text!r}",
                hint=(
                    f"known: {', '.join(SHAPES)}; or one of `evenflow replay --profile`, as"
                    " spike:base=500,peak=900,..."
                ),
            )
        shape = Shape(name=name, profile=text, source=STEADY, seconds=135)
        shape.tuples()  # raises ConfigError if the profile is wrong
    if seconds is None:
        return shape
    return Shape(name=shape.name, profile=shape.profile, source=shape.source, seconds=seconds)
