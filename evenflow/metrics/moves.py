"""Keys that move: how often a worker gets a key that other workers have.

A key *moves* to a worker in a slide if the worker gets it, has not had it within the window, and other
workers have. The worker then needs the key's state, or begins a partial of its own. That a key that nobody
has gets its first worker is no move. So over a stream without windows there are Gamma - |K| moves.
"""

from __future__ import annotations

import numpy as np

from evenflow.metrics.loads import Integers
from evenflow.numeric.arrays import Int64s


def key_moves(
    workers: Integers, codes: Integers, panes: Integers, n: int, *, panes_per_window: int
) -> tuple[Int64s, Int64s]:
    """(slides that have tuples, ascending; moves in each of them).

    workers, codes, panes: worker, key and slide of each tuple, shape (tuples,). Slides never fall. n: number
    of workers. panes_per_window: slides in a window, which ends with the slide that is looked at. ValueError
    unless the three are of one length and n and panes_per_window at least 1.
    """
    if not len(workers) == len(codes) == len(panes) or n < 1 or panes_per_window < 1:
        raise ValueError(
            f"{len(workers)} workers, {len(codes)} keys and {len(panes)} slides, "
            f"n = {n}, {panes_per_window} slides in a window"
        )
    slides, at = np.unique(np.asarray(panes, np.int64), return_inverse=True)
    keys = np.asarray(codes, np.int64)
    pairs = keys * n + np.asarray(workers, np.int64)
    fresh_pairs = _fresh(pairs, at, slides, panes_per_window)
    fresh_keys = _fresh(keys, at, slides, panes_per_window)
    return slides, fresh_pairs - fresh_keys


def _fresh(values: Int64s, at: Int64s, slides: Int64s, width: int) -> Int64s:
    """In each slide, how many have a tuple and had none in the slides of the window
    before it. Shape (slides,).
    """
    if not len(values):
        return np.zeros(0, np.int64)
    # Each pair of one and its slide as one number, so that `unique` sorts numbers and not rows.
    occurrences = np.unique(values * len(slides) + at)
    value, slide = occurrences // len(slides), occurrences % len(slides)
    # `occurrences` is sorted, so the earlier slides of the same value come just before.
    follows = value[1:] == value[:-1]
    near = slides[slide[1:]] - slides[slide[:-1]] < width
    fresh = np.concatenate([[True], ~(follows & near)])
    return np.bincount(slide[fresh], minlength=len(slides)).astype(np.int64)
