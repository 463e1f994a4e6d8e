"""The options that say for how long a tuple counts, and how they follow from the window of a query.

A tumbling window is kept as a sliding window of a single slide. Without a window no slide ever ends.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from evenflow.numeric.arrays import LAST_TIME, Rows
from evenflow.sketches.window_holders import WindowHolders
from evenflow.sketches.window_loads import WindowLoads, window_loads
from evenflow.text.options import Options

MAX_SLIDES = 100_000
_LONG_MS = 1 << 62
"""Slide of a state without a window, ms. Its clock never reaches the end of a slide (`Window.hold`)."""


class Lengths(Options):
    """Options of every algorithm with a window. Algorithms that always have a sliding window (000) use
    them as they are.
    """

    window_ms: int = Field(60_000, ge=1, description="Length of the window, ms.")
    slide_ms: int = Field(1_000, ge=1, description="Slide, ms. window_ms is a multiple of it.")

    @model_validator(mode="after")
    def _window_is_whole_slides(self) -> Self:
        window_ms, slide_ms = self.lengths["window_ms"], self.lengths["slide_ms"]
        if window_ms % slide_ms or window_ms // slide_ms > MAX_SLIDES:
            raise ValueError(
                f"window_ms ({window_ms}) must be a multiple of slide_ms ({slide_ms}),"
                f" at most {MAX_SLIDES} slides"
            )
        return self

    @property
    def lengths(self) -> dict[str, int]:
        """Window and slide of the state, ms."""
        return {"window_ms": self.window_ms, "slide_ms": self.slide_ms}

    @classmethod
    def fitted(
        cls, user_options: Mapping[str, Any], *, window_ms: int, slide_ms: int, windowed: bool
    ) -> dict[str, Any]:
        """The given options, with this window added if they leave it open. A given option is never
        changed.
        """
        lengths = {"window_ms": window_ms, "slide_ms": slide_ms}
        return dict(user_options) if lengths.keys() & user_options.keys() else {**lengths, **user_options}


class Window(Lengths):
    """Options of algorithms that work with and without a window: cumulative (002),
    sliding (000) or tumbling (004).
    """

    window: Literal["cumulative", "sliding", "tumbling"] = Field(
        "cumulative",
        description=(
            "Tuples that count: all so far, those of a sliding window, or those since the last window ended."
        ),
    )
    window_ms: int = Field(60_000, ge=1, description="Length of the window, ms. Not used if cumulative.")
    slide_ms: int = Field(
        1_000, ge=1, description="Slide, ms. window_ms is a multiple of it. Only if sliding."
    )

    @property
    def windowed(self) -> bool:
        """Whether old tuples stop counting."""
        return self.window != "cumulative"

    @property
    def lengths(self) -> dict[str, int]:
        """Window and slide of the state, ms."""
        if not self.windowed:
            return {"window_ms": _LONG_MS, "slide_ms": _LONG_MS}
        slide_ms = self.slide_ms if self.window == "sliding" else self.window_ms
        return {"window_ms": self.window_ms, "slide_ms": slide_ms}

    @property
    def slides(self) -> int:
        """How many slides the window has. 0 if there is no window."""
        return self.lengths["window_ms"] // self.lengths["slide_ms"] if self.windowed else 0

    def new_loads(self, workers: int) -> WindowLoads:
        """Empty loads of so many workers, for this window."""
        loads = window_loads(workers, **self.lengths)
        self.hold(loads.clock)
        return loads

    def new_holders(self, workers: int) -> WindowHolders:
        """An empty window of (key, worker) pairs."""
        holders = WindowHolders(workers, **self.lengths)
        self.hold(holders.pool.clock)
        return holders

    def hold(self, clock: Rows) -> None:
        """Stop the clock of a state if there is no window: its first slide then ends at the end of time."""
        if not self.windowed:
            clock["end"] = LAST_TIME

    @classmethod
    def fitted(
        cls, user_options: Mapping[str, Any], *, window_ms: int, slide_ms: int, windowed: bool
    ) -> dict[str, Any]:
        """As for `Lengths`. Unless the options say it, `windowed` decides whether there is a window."""
        options = {"window": "sliding" if windowed else "cumulative", **user_options}
        if not cls.uses_lengths(options, windowed):
            return options
        return super().fitted(options, window_ms=window_ms, slide_ms=slide_ms, windowed=windowed)

    @classmethod
    def uses_lengths(cls, user_options: Mapping[str, Any], windowed: bool) -> bool:
        """Whether the algorithm takes its lengths from the window of the query.

        If the query has no window, an algorithm that was given one keeps the default lengths.
        """
        return windowed and user_options["window"] != "cumulative"


class SlidingWindow(Window):
    """The same options, for algorithms whose window slides unless the options say otherwise."""

    window: Literal["cumulative", "sliding", "tumbling"] = Field(
        "sliding", description=Window.model_fields["window"].description
    )
