"""How services talk to people: lines at intervals, warnings for conditions that last, and words for numbers.

Admission rule: pure code with injected clocks, without Kafka, Spark or a terminal. A service hands in what it
has counted and which conditions last. This package decides what is said when. Python's `logging` decides
where it goes.
"""

from evenflow.reporting.concerns import Concern, Concerns, LastingConcern
from evenflow.reporting.increases import Increase, Increases
from evenflow.reporting.lines import JsonLines, on_every_line, with_fields
from evenflow.reporting.liveness import Level, Sign, Trouble, hanging, silence, silent_after, unanswered

__all__ = [
    "Concern",
    "Concerns",
    "Increase",
    "Increases",
    "JsonLines",
    "LastingConcern",
    "Level",
    "Sign",
    "Trouble",
    "hanging",
    "on_every_line",
    "silence",
    "silent_after",
    "unanswered",
    "with_fields",
]
