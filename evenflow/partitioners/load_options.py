"""The options of every scheme that balances by load: since when does a tuple count?"""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from evenflow.partitioners.base import Options
from evenflow.sketches.window_loads import WindowLoads, window_loads

MAX_SLIDES = 100_000


def check_whole_slides(window_ms: int, slide_ms: int) -> None:
    """ValueError unless the window is a whole number of slides, and not too many."""
    if window_ms % slide_ms or window_ms // slide_ms > MAX_SLIDES:
        raise ValueError(
            f"window_ms ({window_ms}) must be a multiple of slide_ms ({slide_ms}), at most {MAX_SLIDES} slides"
        )


class LoadOptions(Options):
    """Cumulative loads (002) or loads of a sliding window (000, 004)."""

    load: Literal["cumulative", "windowed"] = Field(
        "cumulative", description="Tuples that count as load: all so far, or those of the window."
    )
    window_ms: int = Field(
        60_000, ge=1, description="Length of the window, ms; of windowed loads and of a head of the window."
    )
    slide_ms: int = Field(1_000, ge=1, description="Slide, ms; window_ms is a multiple of it.")

    @model_validator(mode="after")
    def _window_is_whole_slides(self) -> Self:
        check_whole_slides(self.window_ms, self.slide_ms)
        return self

    @property
    def windowed(self) -> bool:
        """Whether old tuples stop counting."""
        return self.load == "windowed"

    @property
    def slides(self) -> int:
        """Slides in the window; 0: loads are cumulative."""
        return self.window_ms // self.slide_ms if self.windowed else 0

    def new_loads(self, workers: int) -> WindowLoads:
        """Empty loads; cumulative ones are a window whose first slide never ends, so a ring of one."""
        if self.windowed:
            return window_loads(workers, window_ms=self.window_ms, slide_ms=self.slide_ms)
        return window_loads(workers, window_ms=1, slide_ms=1)
