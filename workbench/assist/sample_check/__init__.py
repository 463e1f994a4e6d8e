"""Checks a sample of the live input topic against the settings.

`sample` reads the first, the middle and the newest records. `shape` and `facts` say what is there. The
modules in `judges/` compare that with the settings, and `report` has all that they say. `strays` are the
times that no advice counts. `propose` writes the settings that would fit. `guess` writes a first file of
settings. `start` is what a service calls before it begins.
Only `sample` and `start` talk to a broker. Everything else is a function of plain values.
"""

from workbench.assist.sample_check.report import SampleReport, check_sample
from workbench.assist.sample_check.sample import TopicRecords
from workbench.assist.sample_check.start import before_start

__all__ = ["SampleReport", "TopicRecords", "before_start", "check_sample"]
