"""The laws of generated streams by name, and the settings of each,
for `evenflow replay` and `evenflow simulate`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from evenflow.errors import ConfigError
from evenflow.generation.rank_laws import (
    Alternating,
    Costly,
    Disjoint,
    Drift,
    Flash,
    FlashCrowd,
    RandomExponent,
    RankLaw,
    ReplacedHotKeys,
    Runs,
    SessionKeys,
    Uniform,
    WanderingExponent,
    Zipf,
)

MOST_COST = 1_000_000
"""The greatest cost of a tuple (`evenflow.partitioners.costs.MAX_COST`)."""


@dataclass(frozen=True)
class Setting:
    """A number that can be set for a law."""

    default: float | str
    """The default. A string names another setting whose value is the default."""
    least: float = 0
    """The least value allowed."""
    most: float = 1e9
    """The greatest value allowed."""
    whole: bool = False
    """Whether the value must be a whole number."""


@dataclass(frozen=True)
class KeyLaw:
    """A named law with its settings. `rank_law` makes a `RankLaw` of it."""

    description: str
    """What the law does, in a few words for users."""
    make: Callable[..., RankLaw]
    """Makes the law from the number of keys, the seed, and the settings by name."""
    settings: Mapping[str, Setting] = field(default_factory=dict)
    """The law's settings by name, in the order of declaration."""

    def rank_law(self, keys: int, seed: int, **given: float) -> RankLaw:
        """The law over so many keys. A setting that is not given has its default.

        ConfigError if the numbers contradict each other.
        """
        values: dict[str, Any] = {}
        # In the order of declaration: a default may name only a setting that stands before it.
        for name, setting in self.settings.items():
            default = values[setting.default] if isinstance(setting.default, str) else setting.default
            values[name] = given.get(name, default)
        return self.make(keys, seed, **values)


def _random_exponent(keys: int, seed: int, low: float, high: float) -> RankLaw:
    if high < low:
        raise ConfigError(f"random-exponent: low={low:g} must not exceed high={high:g}")
    return RandomExponent(keys, low, high, seed)


def _wandering_exponent(keys: int, seed: int, z: float, low: float, high: float, step: float) -> RankLaw:
    if high <= low:
        raise ConfigError(f"wandering-exponent: low={low:g} must be below high={high:g}")
    return WanderingExponent(keys, z, low=low, high=high, step=step, seed=seed)


def _flash_crowd(keys: int, seed: int, z: float, share: float, first: int, last: int) -> RankLaw:
    if not 0 < share < 1 or last < first:
        raise ConfigError(
            f"flash-crowd: share={share:g} must be above 0 and below 1, first={first} not above last={last}"
        )
    return FlashCrowd(keys, z, share=share, first=first, last=last)


def _runs(keys: int, seed: int, length: int, longest: int) -> RankLaw:
    if longest < length:
        raise ConfigError(f"runs: length={length} must not exceed longest={longest}")
    return Runs(keys, length=length, longest=longest, seed=seed)


def _flash(keys: int, seed: int, z: float, share: float, every: int) -> RankLaw:
    if not 0 < share < 1:
        raise ConfigError(f"flash: share={share:g} must be above 0 and below 1")
    return Flash(keys, z, share=share, every=every)


def _sessions(keys: int, seed: int, alive: int, life: int) -> RankLaw:
    # A key that leaves must not be among those that come next.
    return SessionKeys(keys, min(alive, max(1, keys // 2)), life)


def _disjoint(keys: int, seed: int, z: float, sources: int) -> RankLaw:
    if sources > keys:
        raise ConfigError(f"disjoint: sources={sources} must not exceed the {keys} keys")
    return Disjoint(keys, z, sources=sources)


def _costly(keys: int, seed: int, z: float, share: float, rare: float, dearer: int) -> RankLaw:
    if keys < 3:
        raise ConfigError(f"costly: {keys} keys are too few: a hot one, a rare one and one more are needed")
    if not 0 < share < share + rare < 1:
        raise ConfigError(f"costly: share={share:g} and rare={rare:g} must be above 0, and together below 1")
    return Costly(keys, z, share=share, rare=rare, dearer=dearer)


_Z = {"z": Setting(1.0)}
LAWS: dict[str, KeyLaw] = {
    "zipf": KeyLaw("Zipf(z) over the keys", lambda keys, seed, z: Zipf(keys, z), _Z),
    "uniform": KeyLaw("every key equally likely", lambda keys, seed: Uniform(keys)),
    "alternating": KeyLaw(
        "uniform and Zipf(z) by turns, one period each", lambda keys, seed, z: Alternating(keys, z), _Z
    ),
    "random-exponent": KeyLaw(
        "Zipf with an exponent from [low, high], new each period",
        _random_exponent,
        {"low": Setting(0.5), "high": Setting(1.5)},
    ),
    "wandering-exponent": KeyLaw(
        "Zipf whose exponent walks between `low` and `high`, from z on, about `step` each period",
        _wandering_exponent,
        {**_Z, "low": Setting(0.5), "high": Setting(1.8), "step": Setting(0.15)},
    ),
    "drift": KeyLaw(
        "Zipf(z) whose hot keys move on by `step` each period",
        lambda keys, seed, z, step: Drift(keys, z, step),
        {**_Z, "step": Setting(10, least=1, whole=True)},
    ),
    "replaced": KeyLaw(
        "Zipf(z) whose `hot` hottest keys are new ones each period, and"
        " come again after `generations` of them",
        lambda keys, seed, z, hot, generations: ReplacedHotKeys(keys, z, hot=hot, generations=generations),
        {**_Z, "hot": Setting(200, least=1, whole=True), "generations": Setting(500, least=1, whole=True)},
    ),
    "flash-crowd": KeyLaw(
        "Zipf(z), but in the periods `first` to `last` the coldest key has `share` of the tuples",
        _flash_crowd,
        {
            **_Z,
            "share": Setting(0.5),
            "first": Setting(1, whole=True),
            "last": Setting("first", whole=True),
        },
    ),
    "runs": KeyLaw(
        "`length` to `longest` tuples of one key in a row, then those of another",
        _runs,
        {"length": Setting(200, least=1, whole=True), "longest": Setting("length", least=1, whole=True)},
    ),
    "flash": KeyLaw(
        "Zipf(z), but in one period of `every` a key that was cold has `share`"
        " of the tuples, another one each time",
        _flash,
        {**_Z, "share": Setting(0.3), "every": Setting(10, least=1, whole=True)},
    ),
    "sessions": KeyLaw(
        "`alive` keys at a time (at most half of the keys), which live for `life`"
        " periods and come back after all others",
        _sessions,
        {"alive": Setting(1000, least=1, whole=True), "life": Setting(6, least=1, whole=True)},
    ),
    "disjoint": KeyLaw(
        "each of `sources` sources has keys of its own, Zipf(z): tuple t is of source t mod `sources`",
        _disjoint,
        {**_Z, "sources": Setting(5, least=1, whole=True)},
    ),
    "costly": KeyLaw(
        "a hot key has `share` of the tuples, and a rare one has `rare` of them, each `dearer` times as"
        " costly as any other; Zipf(z) over all other keys",
        _costly,
        {
            **_Z,
            "share": Setting(0.3),
            "rare": Setting(0.01),
            "dearer": Setting(100, least=1, most=MOST_COST, whole=True),
        },
    ),
}
