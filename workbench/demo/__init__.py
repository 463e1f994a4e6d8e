"""The whole pipeline on one machine: broker, replay, partitioners, Spark, verify,
and figures of what happened.

`options` says what to run. `services` holds the processes. `figures` measures what was routed. `windows`
reads the results back. `screen` shows it all. `run` is the order of events.
"""

from workbench.demo.options import DemoOptions
from workbench.demo.run import DemoResult, run

__all__ = ["DemoOptions", "DemoResult", "run"]
