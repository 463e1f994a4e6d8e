"""The options of every scheme whose whole memory is a window: how does it forget?"""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from evenflow.arrays import Rows
from evenflow.partitioners.affinity.window_cardinalities import WindowCardinalities, window_cardinalities
from evenflow.partitioners.base import Options
from evenflow.partitioners.load_options import check_whole_slides
from evenflow.sketches.window_holders import WindowHolders
from evenflow.sketches.window_loads import WindowLoads, window_loads

_LONG_MS = 1 << 62
_NEVER_ENDS = 2**63 - 1
_END = 2  # of every clock


class WindowOptions(Options):
    """Sliding (000), tumbling (004: everything is forgotten when a window ends) or no window at all."""

    mode: Literal["sliding", "tumbling", "cumulative"] = Field(
        "sliding", description="How tuples stop counting: slide by slide, window by window, or never."
    )
    window_ms: int = Field(60_000, ge=1, description="Length of the window, ms; not for mode=cumulative.")
    slide_ms: int = Field(1_000, ge=1, description="Slide, ms; window_ms is a multiple of it (sliding).")

    @model_validator(mode="after")
    def _window_is_whole_slides(self) -> Self:
        if self.mode == "sliding":
            check_whole_slides(self.window_ms, self.slide_ms)
        return self

    @property
    def lengths(self) -> dict[str, int]:
        """Window and slide of the state: a tumbling window is a single slide, so is one that never ends."""
        if self.mode == "cumulative":
            return {"window_ms": _LONG_MS, "slide_ms": _LONG_MS}
        return {
            "window_ms": self.window_ms,
            "slide_ms": self.slide_ms if self.mode == "sliding" else self.window_ms,
        }

    def new_loads(self, workers: int) -> WindowLoads:
        """Empty loads."""
        loads = window_loads(workers, **self.lengths)
        self._hold(loads.clock)
        return loads

    def new_holders(self, workers: int) -> WindowHolders:
        """An empty window of (key, worker) pairs."""
        holders = WindowHolders(workers, **self.lengths)
        self._hold(holders.pool.clock)
        return holders

    def new_cardinalities(self, workers: int, precision: int) -> WindowCardinalities:
        """Empty HyperLogLog sketches, one per worker."""
        cardinalities = window_cardinalities(workers, precision, **self.lengths)
        self._hold(cardinalities.clock)
        return cardinalities

    def _hold(self, clock: Rows) -> None:
        if self.mode == "cumulative":
            clock["end"] = _NEVER_ENDS
