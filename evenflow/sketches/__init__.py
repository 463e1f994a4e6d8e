"""Bounded summaries of a stream that several families of partitioners share: frequencies,
distinct keys, window loads.

A summary that only one family uses lives in the folder of that family. Admission rule: the state is numpy
arrays in a NamedTuple that kernels take as one argument. Each sketch has its error bound in its docstring and
in a test.

A structure is passed whole: a kernel takes the NamedTuple, which may contain others, and reads its fields by
name. Rows, and numbers that belong together, are records (`arrays.record`): a kernel reads
`meta = sketch.meta[()]`, then `meta["size"]`. A single number that kernels write (a stop flag, the state of a
generator) is an array of shape (1,), read and written at 0. Passing structures whole costs nothing: a tuple
of `evenflow` takes 30.8, 39.3 and 50.8 ns (uniform, Zipf 1.0 and 1.5), and took 31.9, 39.4 and 52.8 ns when
its 22 arrays were passed one by one.

There is one trap. A kernel that the compiler does not inline gets its structure on the stack at each call,
field by field, some seven words per array. If such a call comes with every tuple and does little work, the
callee is `inlined`: `first_unchanged` (am with HyperLogLog: 22.3 ns instead of 30.1) and `raise_cap` (Dalton:
23.3 ns instead of 28.4). If it is called from several places, it takes only the arrays that it reads:
`q_table._scan` with the whole table of nine arrays made a tuple of Dalton cost 63 ns instead of 38. A call
from Python with nested structures takes longer: 2 us for a window, 6 us for the thirty arrays of Dalton,
which is some 4 us more than one by one. So a kernel is called for a block of tuples, not for a few.
"""
