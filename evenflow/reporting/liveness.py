"""Whether a part works, by what it last said.
`evenflow status`, the live page and the health pages judge by this alone.

A part that works says something at least every five seconds, or once per batch interval if that is longer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from evenflow.reporting.words import span

Level = Literal["warning", "wrong"]

_SILENT = 12.0  # two words that were due have not come
_SLOW, _STUCK = 12.0, 30.0
_FIRST = 60.0  # Java compiles and Python workers start within the first micro-batch
UNANSWERED = 7.0
"""Seconds without an answer after which Kafka counts as gone."""


@dataclass(frozen=True)
class Trouble:
    """What is wrong with a part."""

    level: Level
    """Whether results do not come ("wrong"), or something is only odd ("warning")."""
    text: str
    """A sentence without a full stop."""


@dataclass(frozen=True, kw_only=True)
class Sign:
    """What is known of a part."""

    name: str
    """The part, for people."""
    silent: float = 0.0
    """Seconds since the part said something."""
    interval: float = 0.0
    """The part's batch interval, s. 0 if it has none."""
    running: float | None = None
    """For how many seconds the part's micro-batch has been running, None if none is."""
    first: bool = False
    """Whether no micro-batch of the part's process has ended yet."""
    ended: str | None = None
    """Why the part has ended by itself, in words. None as far as it has not said so."""

    @property
    def is_silent(self) -> bool:
        """Whether the part counts as dead: it has said that it ended,
        or nothing for 12 s or for three batch intervals.
        """
        return self.ended is not None or self.silent >= silent_after(self.interval)


def silent_after(interval: float = 0.0) -> float:
    """Seconds without a word after which a part counts as dead.
    interval: its batch interval in s, 0 for none.
    """
    return max(_SILENT, 3 * interval)


def silence(sign: Sign) -> Trouble | None:
    """What is wrong if the part has ended or says nothing. None if it has said something else lately."""
    if sign.ended is not None:
        return Trouble("wrong", f"{sign.name} has ended: {sign.ended}")
    if not sign.is_silent:
        return None
    return Trouble("wrong", f"nothing was heard of {sign.name} for {_seconds(sign.silent)}")


def hanging(sign: Sign) -> Trouble | None:
    """What is wrong if a micro-batch does not end. None if none runs for long, or if the part says nothing.

    A micro-batch is slow after 12 s and stuck after 30 s, or after five batch intervals if these are longer.
    The first one of a process is stuck after 60 s, and never slow.
    """
    if sign.running is None or sign.is_silent:
        return None
    least = 5 * sign.interval
    text = f"{sign.name} has been in one micro-batch for {_seconds(sign.running)}"
    if sign.running >= max(_FIRST if sign.first else _STUCK, least):
        return Trouble("wrong", text)
    slow = not sign.first and sign.running >= max(_SLOW, least)
    return Trouble("warning", text) if slow else None


def unanswered(servers: str, seconds: float) -> Trouble | None:
    """What is wrong if Kafka does not answer. servers: its address. seconds: since the first request
    without an answer.
    """
    if seconds < UNANSWERED:
        return None
    return Trouble("wrong", f"Kafka at {servers} has not answered for {_seconds(seconds)}")


def _seconds(seconds: float) -> str:
    return span(1_000 * seconds)
