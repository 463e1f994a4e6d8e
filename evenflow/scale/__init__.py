"""A pipeline on paper: how often each thing happens, what it costs,
and how large a pipeline has to be (`evenflow size`).

`shape` counts, `law` knows the keys, `costs` multiplies counts by unit costs, `measurements` has the unit
costs that `evenflow bench scale` measured. `sizes` turns a demand into a pipeline, `limits` says what breaks
first, `lines` writes the settings. `runs` holds the model against measured runs. Everything here is
arithmetic: nothing is measured, and no service is asked. docs/scale.md is the page.
"""

from __future__ import annotations

from evenflow.scale.demand import Demand
from evenflow.scale.limits import Break, breaks, shortest_delay
from evenflow.scale.lines import overlay_lines, quota_lines, settings_lines
from evenflow.scale.measurements import measured
from evenflow.scale.sizes import Sizes, sizes

__all__ = [
    "Break",
    "Demand",
    "Sizes",
    "breaks",
    "measured",
    "overlay_lines",
    "quota_lines",
    "settings_lines",
    "shortest_delay",
    "sizes",
]
