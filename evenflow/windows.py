"""Pane arithmetic: a pane is one slide. A window is window/slide consecutive panes.

Pane i covers event times [i*slide, (i+1)*slide) in ms since 1970 UTC. The window whose last pane is e covers
panes e-panes_per_window+1 .. e, that is event times [(e+1)*slide - window, (e+1)*slide). Everything is
aligned to 1970. Floor division makes this hold for times before 1970, too.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from evenflow.numeric.arrays import NEVER, Int64s

NO_MARK: int = -(2**62)
"""Mark of a lane of which nothing is known yet: every pane is open."""
END_MARK: int = 2**62
"""Mark of a lane that has ended: every pane is closed."""


def pane_of(times: Int64s, slide: int) -> Int64s:
    """Pane of each event time (ms). Shape (n,) -> (n,)."""
    return np.floor_divide(times, slide)


def without_leaps(times: Int64s, window: int) -> Int64s:
    """The times without leaps. Shape (m,) -> (m,).

    A time is a leap if it lies more than a window (ms) after each of the next 64 times. A leap is replaced by
    the greatest time before it that is no leap. So a tuple with a wrong clock does not end all windows of a
    stream. This is for streams that are known as a whole.
    """
    following = np.full(len(times), NEVER)
    following[:-1] = times[1:]
    for reach in (1, 2, 4, 8, 16, 32):  # each round doubles how many times `following` looks ahead
        following[:-reach] = np.maximum(following[:-reach], following[reach:].copy())
    # The difference of two int64 may need 64 bits. As uint64 it is right, because `times` is the greater one.
    leaps = (times > following) & (times.astype(np.uint64) - following.astype(np.uint64) > np.uint64(window))
    leaps[-64:] = False  # too few times follow to tell
    if not leaps.any():
        return times
    calm: Int64s = np.maximum.accumulate(np.where(leaps, NEVER, times))
    return np.where(leaps & (calm != NEVER), calm, times)


def panes_closed_by(mark: Any, slide: int) -> Any:
    """The pane below which every pane has ended at or before the mark. `mark` is a scalar or an array, in
    ms.
    """
    return mark // slide


def window_bounds(last_pane: int, *, window: int, slide: int) -> tuple[int, int]:
    """(start, end) in ms of the window whose last pane this is."""
    end = (last_pane + 1) * slide
    return end - window, end
