"""Rate profiles: at which second after the start each tuple is due. Pure, seeded, vectorised.

A profile maps tuple numbers to seconds. `producers.replay` sends and waits. If the rate is a known curve,
`due(t)` is its integral (tuples due by second t), and the send times are the inverse of `due`. So the number
of tuples sent always follows the curve, and no error adds up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from evenflow.errors import ConfigError
from evenflow.settings.word_options import WordOptions
from evenflow.text.options import name_and_rest

_CHUNK = 65_536  # gaps drawn at once. Part of the seeded sequence: another size gives other gaps
_GRID = 1_024  # cells of a period in which the inverse of a sine is searched


class Profile:
    """Says when each tuple is due."""

    def send_times(self, first: int, event_times: np.ndarray, origin: int) -> np.ndarray | None:
        """Seconds after the start (float64) at which tuples number first, first+1, ... are due.

        None: all at once. event_times: of these tuples (int64, ms). origin: event time of tuple 0 (ms).
        """
        raise NotImplementedError


@dataclass(frozen=True)
class FullSpeed(Profile):
    """As fast as possible."""

    def send_times(self, first: int, event_times: np.ndarray, origin: int) -> None:
        return None


@dataclass(frozen=True)
class RecordedSpeed(Profile):
    """As fast as the events were recorded, or faster or slower by a factor.

    A tuple that is out of order is due before the tuple in front of it, so a replay sends it at once.
    """

    speed: float
    """The factor: seconds of event time in a second of the replay."""

    def send_times(self, first: int, event_times: np.ndarray, origin: int) -> np.ndarray:
        return np.maximum((event_times - origin) / (1000.0 * self.speed), 0.0)


class Curve(Profile):
    """A profile with a known rate at each moment."""

    def due(self, elapsed: np.ndarray) -> np.ndarray:
        """How many tuples (float64) are due by each of these seconds: the integral of the rate from 0."""
        raise NotImplementedError

    def inverse(self, tuples: np.ndarray) -> np.ndarray:
        """Seconds (float64) by which so many tuples are due. The inverse of `due`."""
        raise NotImplementedError

    def send_times(self, first: int, event_times: np.ndarray, origin: int) -> np.ndarray:
        return self.inverse(np.arange(first, first + len(event_times), dtype=np.float64))


@dataclass(frozen=True)
class FixedRate(Curve):
    """The same rate all the time."""

    rate: float
    """Tuples per second."""

    def due(self, elapsed: np.ndarray) -> np.ndarray:
        return np.asarray(elapsed) * self.rate

    def inverse(self, tuples: np.ndarray) -> np.ndarray:
        return tuples / self.rate


@dataclass(frozen=True)
class Steps(Curve):
    """Constant rates, one after the other. The last rate stays."""

    starts: tuple[float, ...]
    """Second from which on each rate holds. The first must be 0."""
    rates: tuple[float, ...]
    """Tuples per second, one for each start."""

    def due(self, elapsed: np.ndarray) -> np.ndarray:
        elapsed = np.asarray(elapsed, np.float64)
        starts, rates, sums = self._arrays()
        step = np.searchsorted(starts, elapsed, side="right") - 1
        return sums[step] + (elapsed - starts[step]) * rates[step]

    def inverse(self, tuples: np.ndarray) -> np.ndarray:
        starts, rates, sums = self._arrays()
        step = np.searchsorted(sums, tuples, side="right") - 1
        return starts[step] + (tuples - sums[step]) / rates[step]

    def _arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        # sums[i]: tuples due when step i begins.
        starts, rates = np.array(self.starts), np.array(self.rates)
        return starts, rates, np.concatenate([[0.0], np.cumsum(np.diff(starts) * rates[:-1])])


@dataclass(frozen=True)
class Sine(Curve):
    """rate(t) = base + amplitude * sin(2 pi t / period)."""

    base: float
    """Mean rate, in tuples/s."""
    amplitude: float
    """Largest deviation from the base, in tuples/s. It is at most the base."""
    period: float
    """Seconds from one peak to the next."""

    def due(self, elapsed: np.ndarray) -> np.ndarray:
        elapsed = np.asarray(elapsed, np.float64)
        turn = 2 * np.pi / self.period
        return self.base * elapsed + self.amplitude / turn * (1 - np.cos(turn * elapsed))

    def inverse(self, tuples: np.ndarray) -> np.ndarray:
        # A whole period has base * period tuples, as the sine adds up to 0. Only the rest must be searched.
        whole, rest = np.divmod(tuples, self.base * self.period)
        grid = np.linspace(0, self.period, _GRID + 1)
        cell = np.clip(np.searchsorted(self.due(grid), rest, side="right") - 1, 0, _GRID - 1)
        low, high = grid[cell], grid[cell + 1]
        # Bisection, not Newton: where the rate is 0, the curve has no slope to follow.
        for _ in range(32):
            middle = (low + high) / 2
            early = self.due(middle) <= rest
            low, high = np.where(early, middle, low), np.where(early, high, middle)
        return whole * self.period + low


@dataclass(frozen=True)
class Arrivals(Profile):
    """Independent random gaps between tuples. A tuple is due after the sum of all gaps up to its own.

    Gaps are drawn in chunks, and each chunk is seeded with (seed, number of the chunk). So the time of a
    tuple depends only on its number, not on how the tuples are asked for.
    """

    gaps: Callable[[np.ndarray], np.ndarray]
    """Turns uniform draws in [0, 1) into gaps (s)."""
    seed: int
    """Seed of the uniform draws."""
    _sums: list[float] = field(default_factory=lambda: [0.0], compare=False, repr=False)

    def send_times(self, first: int, event_times: np.ndarray, origin: int) -> np.ndarray:
        stop = first + len(event_times)
        chunks = range(first // _CHUNK, (stop - 1) // _CHUNK + 1)
        parts = [self._chunk(number) for number in chunks]
        if not parts:
            return np.empty(0)
        offset = chunks[0] * _CHUNK
        return np.concatenate(parts)[first - offset : stop - offset]

    def _chunk(self, number: int) -> np.ndarray:
        # _sums[i]: sum of all gaps before chunk i.
        while len(self._sums) <= number:
            self._sums.append(self._sums[-1] + float(self._gap_sums(len(self._sums) - 1)[-1]))
        return self._sums[number] + self._gap_sums(number)

    def _gap_sums(self, number: int) -> np.ndarray:
        return np.cumsum(self.gaps(np.random.default_rng([self.seed, number]).random(_CHUNK)))


def poisson(rate: float, seed: int) -> Arrivals:
    """A Poisson process of `rate` tuples per second: exponential gaps."""
    # Draws may be 0 but never 1, so the logarithm of 1 - draw is finite.
    # The same holds for the power in `pareto`.
    return Arrivals(lambda draws: -np.log1p(-draws) / rate, seed)


def pareto(alpha: float, xm: float, seed: int) -> Arrivals:
    """Heavy-tailed gaps: P(gap > x) = (xm/x)^alpha for x >= xm seconds.

    The mean is infinite if alpha <= 1.
    """
    return Arrivals(lambda draws: xm * (1 - draws) ** (-1 / alpha), seed)


def spike(base: float, peak: float, at: float, lasting: float) -> Steps:
    """`base` tuples per second, but `peak` from second `at` on for `lasting` seconds."""
    if at == 0:
        return Steps((0.0, lasting), (peak, base))
    return Steps((0.0, at, at + lasting), (base, peak, base))


def staircase(start: float, to: float, step: float, every: float) -> Steps:
    """From `start` to `to` tuples per second, up or down by `step` after each `every` seconds.

    The rate `to` stays.
    """
    # Rounding up, but a quotient that is whole except for a rounding error must not get one step more.
    count = int(np.ceil(abs(to - start) / step - 1e-9))
    rates = [start + np.sign(to - start) * step * number for number in range(count)] + [to]
    return Steps(tuple(every * number for number in range(count + 1)), tuple(map(float, rates)))


def _spike(words: WordOptions) -> Profile:
    return spike(
        words.number("base", None, above=0),
        words.number("peak", None, above=0),
        words.duration("at", None) / 1000,
        words.duration("for", None, least=1) / 1000,
    )


def _staircase(words: WordOptions) -> Profile:
    return staircase(
        words.number("from", None, above=0),
        words.number("to", None, above=0),
        words.number("step", None, above=0),
        words.duration("every", None, least=1) / 1000,
    )


def _sine(words: WordOptions) -> Profile:
    base, amplitude = words.number("base", None, above=0), words.number("amplitude", None, above=0)
    if amplitude > base:
        raise ConfigError(
            f"profile sine: amplitude={amplitude:g} exceeds base={base:g}", hint="a rate is never below 0"
        )
    return Sine(base, amplitude, words.duration("period", None, least=1) / 1000)


def _poisson(words: WordOptions) -> Profile:
    return poisson(words.number("rate", None, above=0), words.integer("seed", 1))


def _pareto(words: WordOptions) -> Profile:
    return pareto(
        words.number("alpha", None, above=0), words.number("xm", None, above=0), words.integer("seed", 1)
    )


def _fixed(words: WordOptions) -> Profile:
    return FixedRate(words.number("rate", None, above=0))


def _speed(words: WordOptions) -> Profile:
    return RecordedSpeed(words.number("factor", None, above=0))


PROFILES: dict[str, tuple[str, Callable[[WordOptions], Profile]]] = {
    "full": ("as fast as possible", lambda words: FullSpeed()),
    "fixed": ("rate=5000", _fixed),
    "recorded": ("factor=60", _speed),
    "spike": ("base=1000,peak=5000,at=10s,for=5s", _spike),
    "staircase": ("from=1000,to=5000,step=1000,every=10s", _staircase),
    "sine": ("base=1000,amplitude=500,period=60s", _sine),
    "poisson": ("rate=1000,seed=1", _poisson),
    "pareto": ("alpha=1.5,xm=0.0002,seed=1 (xm in seconds)", _pareto),
}


def parse_profile(text: str) -> Profile:
    """The profile of a text such as "spike:base=1000,peak=5000,at=10s,for=5s".

    Raises ConfigError for an unknown name, with the known names, and for wrong options.
    """
    name, rest = name_and_rest(text)
    entry = PROFILES.get(name)
    if entry is None:
        forms = "; ".join(f"{word}:{example}" for word, (example, _) in PROFILES.items() if word != "full")
        raise ConfigError(f"there is no profile {name!r}", hint=f"known: full; {forms}")
    words = WordOptions(rest, owner=f"profile {name}")
    profile = entry[1](words)
    words.done()
    return profile


def choose_profile(
    *, rate: float | None = None, speed: str | None = None, profile: str | None = None
) -> Profile:
    """The profile of a fixed rate (tuples/s), of a speed such as "60x", or of a profile text.

    Without any: full speed. Raises ConfigError if more than one is given.
    """
    if sum(choice is not None for choice in (rate, speed, profile)) > 1:
        raise ConfigError("--rate, --speed and --profile exclude each other", hint="give one of them")
    if rate is not None:
        return parse_profile(f"fixed:rate={rate}")
    if speed is not None:
        return parse_profile(f"recorded:factor={speed.strip().removesuffix('x')}")
    return FullSpeed() if profile is None else parse_profile(profile)
