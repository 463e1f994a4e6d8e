"""Which partitioner, how many workers and partitions:
a recommendation from a sample of the stream, with figures.

Admission rule: pure functions from arrays to frozen data. Reading the sample (`evenflow.sources.sample`,
`workbench.assist.samples`) and printing the answer (`evenflow.commands.advise`) belong elsewhere. `sample`
describes the sample, `candidates` lists the partitioners that are tried, `rule` chooses one, `sizing` counts
workers and partitions, and `report` puts the recommendation into words.

>>> import pyarrow as pa
>>> from evenflow.advice import Sample, Wishes, advise
>>> sample = Sample("demo", pa.array([f"k{i % 100}" for i in range(10_000)]))
>>> advise(sample, Wishes(workers=1)).partitioner
'hashing'
"""

from evenflow.advice.advise import advise
from evenflow.advice.report import Advice
from evenflow.advice.sample import Sample, Strays
from evenflow.advice.sizing import Wishes

__all__ = ["Advice", "Sample", "Strays", "Wishes", "advise"]
