"""How many examples a long law gets: few in `make test`, `EVENFLOW_EXAMPLES` times as many in `make test-long`."""

from __future__ import annotations

import os

from hypothesis import settings


def examples(few: int) -> settings:
    """The setting for a law. Its examples are drawn anew in each run, so many runs see many of them."""
    return settings(max_examples=few * int(os.environ.get("EVENFLOW_EXAMPLES", "1")), deadline=None)
