"""Turnstile: a key stays on one worker until it has had its turns there, and then moves on.

Idea: a rare key is on one worker, and a hot key goes around all of them. State: the turns of each key of the
window.
"""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import Field

from evenflow.partitioners import Options, PlainPartitioner


class TurnstileOptions(Options):
    """Options of `turnstile`."""

    turns: int = Field(
        default=20, ge=1, description="Tuples of a key that go to a worker, one after the other."
    )
    window_ms: int = Field(
        default=60_000, ge=1, description="After so long the turns are counted anew, in ms."
    )


class Turnstile(PlainPartitioner):
    """Moves a key to the next worker after so many tuples, so that a hot key goes around."""

    options_type: ClassVar[type[Options]] = TurnstileOptions
    options: TurnstileOptions

    def start(self) -> None:
        """No key has come yet. It is called again after each change of `self.workers`."""
        self.window = 0
        self.turns: dict[int, int] = {}

    def route_one(self, key: int, time_ms: int) -> int:
        """The worker of the next tuple. key: its hash, 0 to 2^64 - 1. time_ms: it never falls."""
        window = time_ms // self.options.window_ms
        if window != self.window:
            self.window, self.turns = window, {}
        turn = self.turns.get(key, 0)
        self.turns[key] = turn + 1
        return (key + turn // self.options.turns) % self.workers

    def get_state(self) -> Any:
        """All that is remembered. JSON has texts alone for keys of a dict, so the dict becomes a list of
        pairs.
        """
        return [self.window, list(self.turns.items())]

    def set_state(self, state: Any) -> None:
        """Continue from what `get_state` gave."""
        self.window, turns = state
        self.turns = dict(turns)
