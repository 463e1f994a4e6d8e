"""Benchmarks under permanent ids: `evenflow bench [ID ...] [--smoke] [--json]`, one JSON object a line.

A scenario is one module with `ID`, `WHAT` and `run(*, smoke) -> dict`, and one line in `benchmarks.runner`.
Scenarios are seeded, bounded in time, and say on which machine they ran. `smoke` makes them small enough for
every change, and leaves out a scenario whose code another one runs (its `SMOKED_BY`). What is compared is run in
turns (A B A B A B) on the same broker and data, and every figure is shown with its minimum, median and maximum. An
id never changes its meaning: a changed scenario gets a new one.
"""
