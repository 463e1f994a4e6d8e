"""Pane arithmetic: a pane is one slide; a window is window/slide consecutive panes.

Pane i covers event times [i*slide, (i+1)*slide) in ms since 1970 UTC. The window that ends with pane
e covers panes e-panes_per_window+1 .. e, that is [ (e+1)*slide - window, (e+1)*slide ). Everything is
aligned to the epoch; floor division makes that hold for times before 1970 too.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from evenflow.arrays import Int64s

NO_MARK: int = -(2**62)
"""Mark of a lane about which nothing is known yet: every pane is open."""
END_MARK: int = 2**62
"""Mark of a lane that has ended: every pane is closed."""


def pane_of(times: Int64s, slide: int) -> Int64s:
    """Pane index of each event time (ms); shape (n,) -> (n,)."""
    return np.floor_divide(times, slide)


def panes_closed_by(mark: Any, slide: int) -> Any:
    """Every pane below this index has ended at or before the mark (scalar or array, ms)."""
    return mark // slide


def window_bounds(last_pane: int, *, window: int, slide: int) -> tuple[int, int]:
    """(start, end) in ms of the window whose last pane this is."""
    end = (last_pane + 1) * slide
    return end - window, end
