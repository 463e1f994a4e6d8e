"""How long tests wait for what another process does before they call it a failure.

It costs nothing where all is well. A machine at half its speed, with two suites beside this one, took three times as long
as those on which most limits were set, and tests failed that had nothing wrong.
"""

from __future__ import annotations

import os

PATIENCE = float(os.environ.get("EVENFLOW_PATIENCE", "3"))
"""The factor on the limits that stand at tests."""
