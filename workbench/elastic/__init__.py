"""A closed loop on one machine: a live replay whose rate changes, executors that come and go,
a policy that decides.

Admission rule: what `evenflow demo --control` and `evenflow bench elasticity` share. `loop` runs the
pipeline. `course` reads from the topics what happened. `course_figures` says how good it was. `shapes` has
the streams. `virtual_time` plays a loop without Kafka and Spark, and `virtual_stream` sends and routes its
tuples.
"""

from workbench.elastic.course import Batch, Change, Course, course_of
from workbench.elastic.course_figures import CourseVerdict, verdict_of
from workbench.elastic.loop import LoopObserver, LoopOptions, LoopResult, run_loop
from workbench.elastic.screen import fields, show_loop
from workbench.elastic.shapes import SHAPES, Shape, shape_of

__all__ = [
    "SHAPES",
    "Batch",
    "Change",
    "Course",
    "CourseVerdict",
    "LoopObserver",
    "LoopOptions",
    "LoopResult",
    "Shape",
    "course_of",
    "fields",
    "run_loop",
    "shape_of",
    "show_loop",
    "verdict_of",
]
