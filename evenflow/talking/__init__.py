"""How services talk to people: lines at intervals, warnings for what lasts, and words for numbers.

Admission rule: pure, with injected clocks. A service hands in what it has counted and what lasts. What is said when is
decided here, and where it goes is a matter of Python's `logging`. No Kafka, no Spark, no terminal.
"""

from evenflow.talking.concerns import Concern, Concerns, Lasting
from evenflow.talking.heartbeat import Beat, Heartbeat
from evenflow.talking.lines import JsonLines, on_every_line, with_fields

__all__ = ["Beat", "Concern", "Concerns", "Heartbeat", "JsonLines", "Lasting", "on_every_line", "with_fields"]
