"""Bounded summaries of a stream that several families of partitioners share: frequencies, distinct keys, window loads.

A summary of one family stands in that family's room. Admission rule: state is numpy arrays in a NamedTuple that kernels
take as one argument, and each sketch has its error bound in its docstring and in a test.

A structure travels whole: a kernel takes the NamedTuple, also one of several others, and reads fields by name. Rows and
single numbers with names are records (`arrays.record`, a kernel reads `meta = sketch.meta[()]`, then `meta["size"]`), so
no position has a number. That costs nothing: `evenflow` takes 30.8, 39.3 and 50.8 ns for a tuple (uniform, Zipf 1.0 and
1.5), and with its arrays one by one, 22 of them, 31.9, 39.4 and 52.8 ns. There is one trap. A kernel that the compiler
does not inline gets its structure field by field on the stack, some seven words an array, at each call. Where such a call
comes with every tuple and the work behind it is small, the callee is `inlined` (am with HyperLogLog took 30.1 ns, and
takes 22.3: `first_unchanged`. Dalton took 28.4 ns, and takes 23.3: `raise_cap`). Where it is called from several
places, it takes the arrays that it reads: `q_table._scan` with the whole table of nine arrays made a tuple of Dalton
cost 63 ns instead of 38. From Python a call with nested structures takes longer (2 us for a window, 6 us for the thirty
arrays of Dalton, some 4 us more than one by one). So a kernel is called for a block of tuples, not for a few.
"""
