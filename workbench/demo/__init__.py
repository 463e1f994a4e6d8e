"""The main job on one machine: broker, replay, partitioners, Spark, verify, and what it looked like.

`options` says what to run, `services` holds the processes, `figures` measures what was routed, `screen`
shows it, `run` is the order of events.
"""

from workbench.demo.options import DemoOptions
from workbench.demo.run import DemoResult, run

__all__ = ["DemoOptions", "DemoResult", "run"]
