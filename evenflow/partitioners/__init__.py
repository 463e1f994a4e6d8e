"""Routing algorithms: which worker gets each tuple, decided online.

Admission rule: one algorithm per file, made of pure state and kernels over numpy arrays. An algorithm does no
I/O and reads no clock. The services call `create`, `restore`, `assign` and `observe`, and know no algorithm
by its class.

>>> import numpy as np
>>> p = create("pkg", workers=4)
>>> p.assign(np.zeros(6, np.uint64), np.zeros(6, np.int64)).tolist()
[2, 0, 2, 0, 2, 0]
"""

from evenflow.partitioners.base import Partitioner, Statistics
from evenflow.partitioners.plain import PlainPartitioner
from evenflow.partitioners.registry import (
    Description,
    built_in,
    create,
    describe,
    is_plain_python,
    names,
    restore,
    takes_costs,
    weighing,
)
from evenflow.text.options import Options

__all__ = [
    "Description",
    "Options",
    "Partitioner",
    "PlainPartitioner",
    "Statistics",
    "built_in",
    "create",
    "describe",
    "is_plain_python",
    "names",
    "restore",
    "takes_costs",
    "weighing",
]
