"""Benchmarks under permanent ids: `evenflow bench [ID ...] [--smoke] [--json]`, one JSON object a line.

A scenario is one module with `ID`, `WHAT`, `SEED` (of what it draws) and `run(*, smoke) -> dict`, and one
line in `benchmarks.runner`. Scenarios are seeded, bounded in time, and say on which machine they ran. With
`smoke` a scenario is small enough to run after every change. A scenario whose code another one runs names
that one as its `SMOKED_BY`, and a smoke run of all leaves it out. Whatever is compared runs in turns (A B A B
A B) on the same broker and data. Every figure is shown with its minimum, median and maximum. An id never
changes its meaning: a changed scenario gets a new id.
"""
