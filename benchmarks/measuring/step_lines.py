"""Says on standard error what a benchmark is doing: when each step begins and ends, and every ten seconds
in between.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from evenflow.errors import EvenflowError

Counts = Mapping[str, int]
"""How far a step is, by what is counted: {"rows": 1200000}."""
_EVERY = 10.0


@contextmanager
def step(label: str, look: Callable[[], Counts] | None = None, *, every: float = _EVERY) -> Iterator[None]:
    """Say that a step begins, every `every` seconds how far it is (by `look`), and that it is done or
    broken off.
    """
    started = time.monotonic()
    over = threading.Event()
    _say(f"{label} ...")
    teller = threading.Thread(target=_tell, args=(label, look, every, over), name="telling", daemon=True)
    teller.start()
    done = False
    try:
        yield
        done = True
    finally:
        over.set()
        teller.join()
        _say(f"{label}: {'done' if done else 'broken off'} after {time.monotonic() - started:.1f} s")


def tell(label: str, figures: Mapping[str, object]) -> None:
    """Say what was found so far, while the benchmark goes on. Only figures that are numbers or words are
    told.
    """
    plain = {name: value for name, value in figures.items() if isinstance(value, int | float | str)}
    _say(f"{label}: " + ", ".join(f"{name} {value}" for name, value in plain.items()))


def _tell(label: str, look: Callable[[], Counts] | None, every: float, over: threading.Event) -> None:
    before: Counts = {}
    started = last = time.monotonic()
    while not over.wait(every):
        try:
            counts = look() if look is not None else {}
        except EvenflowError:
            continue  # what is measured will report the error itself, and better
        now = time.monotonic()
        _say(f"{label}: {now - started:.0f} s{progress(counts, before, now - last)}")
        before, last = counts, now


def progress(counts: Counts, before: Counts, seconds: float) -> str:
    """A text like `, 1,200,000 rows (60,000/s)` for each of the counts. `before`: the counts `seconds`
    seconds ago.
    """
    parts = []
    for name, count in counts.items():
        rate = f" ({(count - before[name]) / seconds:,.0f}/s)" if name in before and seconds > 0 else ""
        parts.append(f", {count:,} {name}{rate}")
    return "".join(parts)


def _say(line: str) -> None:
    print(f"  {time.strftime('%H:%M:%S')} {line}", file=sys.stderr, flush=True)
