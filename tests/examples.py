"""How many examples a law gets: the number that stands at it, times `EVENFLOW_EXAMPLES` (1 by default).

`make test` takes a tenth of them, and `make test-long` ten times as many. They are drawn anew in each run, so
many runs see many of them.
"""

from __future__ import annotations

import os
from typing import Any

from hypothesis import settings

_LEAST = 3


def scaled(many: int) -> int:
    """So many examples, times `EVENFLOW_EXAMPLES`."""
    return max(_LEAST, round(many * float(os.environ.get("EVENFLOW_EXAMPLES", "1"))))


def examples(many: int, **others: Any) -> settings:
    """The setting for a law. others: what else Hypothesis is to take, for example `suppress_health_check`."""
    return settings(max_examples=scaled(many), deadline=None, **others)
