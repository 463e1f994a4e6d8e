"""The conditions under which partitioners are compared: workers, sources and windows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from evenflow.elasticity.simulated.migration import Migration
from evenflow.errors import ConfigError
from evenflow.numeric.arrays import Int64s
from evenflow.partitioners import Partitioner, create
from evenflow.partitioners.fitting import fitted
from evenflow.partitioners.window import MAX_SLIDES
from evenflow.simulation.channel import Channel
from evenflow.simulation.streams import KeyedStream
from evenflow.text.options import parse_choice
from evenflow.windows import pane_of, without_leaps

_MOST_CUMULATIVE_SLIDES = 10_000


@dataclass(frozen=True)
class Entrant:
    """A partitioner that takes part in a comparison."""

    label: str
    """The partitioner as the user wrote it, options included."""
    name: str
    """The partitioner's registered name."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """The options that the user wrote."""


def entrant(text: str) -> Entrant:
    """The entrant for a text such as `"pkg:d=3"`.

    ConfigError for text that is not in this form. Whether the name and the options exist is checked later, by
    `Scenario.check` and `simulate`.
    """
    name, options = parse_choice(text)
    return Entrant(text, name, options)


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """The conditions that are the same for all entrants. ConfigError for a value out of range."""

    workers: int
    """How many workers tuples are routed to."""
    sources: int = 1
    """Number of sources. Tuple t goes to source t mod sources.
    Each source is a partitioner with its own state.
    """
    exchange: Channel | None = None
    """The channel over which sources tell each other what they know, if their algorithm can.
    None: nobody tells.
    """
    seed: int = 1
    """Seed of the hash family and of partitioners that draw random numbers."""
    window_ms: int | None = None
    """Sliding window in ms. None: state is cumulative, and figures are of the whole stream."""
    slide_ms: int = 1_000
    """Slide in ms. By default it is also the micro-batch of a micro-batch partitioner."""
    warmup_slides: int | None = None
    """First slides that are left out of the figures.
    None: one window's slides if tuples follow them, otherwise 0.
    """
    batch: int | None = None
    """Tuples of the stream in a micro-batch. None: the tuples of a slide."""
    state_bytes: int | None = None
    """Bytes of state of a key at a worker. None: what moving state costs is not counted."""
    migration: Migration = field(default_factory=Migration)
    """What it costs to move state."""
    samples: int = 100
    """Points of the stream at which I(t) is taken."""

    def __post_init__(self) -> None:
        self._at_least("workers", self.workers, 1)
        self._at_least("sources", self.sources, 1)
        self._at_least("slide", self.slide_ms, 1)
        self._at_least("samples", self.samples, 1)
        self._at_least("batch", self.batch, 1)
        self._at_least("warmup_slides", self.warmup_slides, 0)
        self._at_least("state_bytes", self.state_bytes, 0)
        if self.window_ms is None:
            return
        self._at_least("window", self.window_ms, 1)
        if self.window_ms % self.slide_ms:
            raise ConfigError(
                f"the slide ({self.slide_ms} ms) does not divide the window ({self.window_ms} ms)",
                hint="a window is a whole number of slides, e.g. --window 60s --slide 1s",
            )
        if self.panes_per_window > MAX_SLIDES:
            raise ConfigError(f"a window has at most {MAX_SLIDES:,} slides, not {self.panes_per_window:,}")

    @staticmethod
    def _at_least(setting: str, value: int | None, least: int) -> None:
        if value is not None and value < least:
            raise ConfigError(f"{setting} must be at least {least}, not {value}")

    @property
    def panes_per_window(self) -> int:
        """Slides in a window."""
        return (self.window_ms or self.slide_ms) // self.slide_ms

    def panes(self, times: Int64s) -> Int64s:
        """The slide in which each tuple counts.
        A tuple that is older than the current slide counts in the current one.
        """
        return np.maximum.accumulate(pane_of(self.clock(times), self.slide_ms))

    def clock(self, times: Int64s) -> Int64s:
        """Event times as the windows see them.

        With a window, the times of a wrong clock are replaced (`windows.without_leaps`), because one of them
        would end every window.
        """
        return times if self.window_ms is None else without_leaps(times, self.window_ms)

    def partitioners(self, who: Entrant, stream: KeyedStream) -> list[Partitioner]:
        """A new partitioner for each source. ConfigError for a name or option that does not exist."""
        options = self.options_of(who, stream)
        return [
            create(
                who.name, workers=self.workers, seed=self.seed, source=source, sources=self.sources, **options
            )
            for source in range(self.sources)
        ]

    def check(self, who: Entrant) -> None:
        """ConfigError if there is no such partitioner or option. It needs no stream."""
        create(who.name, workers=self.workers, seed=self.seed, **who.options)

    def options_of(self, who: Entrant, stream: KeyedStream) -> dict[str, Any]:
        """The entrant's options, completed by the scenario's window and slide
        if the entrant's rule knows windows.

        With a window, every rule that can use a window does. Without a window, state is cumulative, and a
        rule that needs a window gets one that is as long as the stream. Options of the entrant are never
        changed.
        """
        windowed = self.window_ms is not None
        window, slide = (self.window_ms, self.slide_ms) if self.window_ms else self._as_long_as(stream)
        return fitted(who.name, who.options, window_ms=window, slide_ms=slide, windowed=windowed)

    def _as_long_as(self, stream: KeyedStream) -> tuple[int, int]:
        """(window, slide) in ms, of a window that holds the whole stream. The slide is longer if there
        were too many.
        """
        # A stream of `span` ms touches at most span // slide + 2 slides.
        span = int(stream.times.max()) - int(stream.times.min()) + 1
        slide = max(self.slide_ms, -(-span // _MOST_CUMULATIVE_SLIDES))
        return (span // slide + 2) * slide, slide

    def measured_slides(self, panes: Int64s, stream: KeyedStream) -> tuple[int, int]:
        """(first, last) slide of those that have figures: the complete slides after the warm-up.

        The last slide of the stream is complete if the next tuple would come after it. For a file with times
        this is not known, and its last slide is left out unless it is the only one. ConfigError if no slide
        is left.
        """
        first, last = int(panes[0]), int(panes[-1])
        full = stream.next_time is not None and stream.next_time >= (last + 1) * self.slide_ms
        if not full and last > first:
            last -= 1
        warmup = self.warmup_slides
        if warmup is None:
            warmup = self.panes_per_window if self._holds(panes, first + self.panes_per_window, last) else 0
        if not self._holds(panes, first + warmup, last):
            raise ConfigError(
                f"complete slides of {self.slide_ms} ms in the stream: {last - first + 1:,}; "
                f"none with tuples is left after a warm-up of {warmup:,}",
                hint="give fewer --warmup-slides, more tuples, or a shorter --slide",
            )
        return first + warmup, last

    def _holds(self, panes: Int64s, first: int, last: int) -> bool:
        """Whether a window that ends with one of these slides has a tuple."""
        until = int(np.searchsorted(panes, last, side="right"))
        return last >= first and until > 0 and int(panes[until - 1]) > first - self.panes_per_window

    def batches(self, stream: KeyedStream) -> Int64s:
        """The number of the first tuple of each micro-batch, and behind them the length of the stream."""
        if self.batch is not None:
            return np.append(np.arange(0, len(stream), self.batch), len(stream))
        cuts = np.flatnonzero(np.diff(self.panes(stream.times))) + 1
        return np.concatenate([[0], cuts, [len(stream)]])
