"""A look at the records of the live input topic, compared with the settings.

`sample` reads the first, the middle and the newest records. `shape` and `facts` say what is there. The modules named
`judge_*` compare that with the settings. `strays` are the times that no advice counts. `propose` writes the settings that
would fit. `start` is what a service calls before it begins.
Only `sample` and `start` talk to a broker. Everything else is a function of plain values.
"""

from workbench.look.look import Look, look_at
from workbench.look.sample import TopicRecords
from workbench.look.start import before_start

__all__ = ["Look", "TopicRecords", "before_start", "look_at"]
