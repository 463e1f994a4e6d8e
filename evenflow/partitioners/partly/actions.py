"""What PartLy's policy can decide about a key: into which shares it is cut,
and how their data blocks are chosen.

An action is a pair (cut, choice), numbered `cut * CHOICES + choice`.

A cut is a list of shares of the key's tuples. The first cut leaves the key whole. The next ones cut it into
2, 3, 4 and 5 equal shares. The last three have shares of 50, 25 and 12.5 %. A share that no data block can
hold is cut again: a key of `b` times the tuples of a mean data block has every share cut into ceil(b) equal
pieces. So "whole" means "in as few data blocks as can hold it", and five shares suffice for keys of any size.

A choice is an order of the data blocks. The largest piece goes to the first one, and so on:

    LEAST_TUPLES   ascending number of tuples
    LEAST_KEYS     ascending number of keys, and of tuples among equals
    LEAST_BOTH     ascending sum of both, each as a share of its mean
    TIGHTEST       first those with room for the largest piece, the fullest first; then the others, the
                   emptiest first

The space grows by stages (001, section 4.6, technique 2). The actions of a stage are the first ones of the
next stage:

    stage 1   whole, or 2 equal shares
    stage 2   up to 5 equal shares
    stage 3   shares of 50, 25 and 12.5 %

The paper lets an action name data blocks by number. Then a network serves one number of data blocks, and has
to learn that data blocks are alike. With an order of the data blocks in place of their numbers one network
serves any number.
"""

from __future__ import annotations

import numpy as np

LEAST_TUPLES, LEAST_KEYS, LEAST_BOTH, TIGHTEST = range(4)
CHOICES = 4
CUTS = (
    (1.0,),
    (0.5, 0.5),
    (1 / 3,) * 3,
    (0.25,) * 4,
    (0.2,) * 5,
    (0.5, 0.25, 0.25),
    (0.5, 0.25, 0.125, 0.125),
    (0.5, 0.125, 0.125, 0.125, 0.125),
)
"""The shares of each cut, descending."""
MOST_SHARES = max(map(len, CUTS))
ACTIONS = len(CUTS) * CHOICES
STAGES = (2, 5, len(CUTS))
"""How many of `CUTS` each stage allows."""

SHARES = np.array([[*cut, *[0.0] * (MOST_SHARES - len(cut))] for cut in CUTS])
"""(cuts, MOST_SHARES): `CUTS` with zeros behind."""
SHARES_OF = np.array([len(cut) for cut in CUTS], np.int64)
"""(cuts,): number of shares of each cut."""


def actions_of(stage: int) -> int:
    """How many actions a stage has: those below this number. stage: 1 to 3. ValueError for another one."""
    if not 1 <= stage <= len(STAGES):
        raise ValueError(f"stage must be from 1 to {len(STAGES)}, not {stage}")
    return STAGES[stage - 1] * CHOICES
