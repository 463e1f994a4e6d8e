"""Benchmarks under permanent ids: `python -m benchmarks [ID ...] [--smoke]`, one JSON object a line.

A scenario is one module with `ID`, `WHAT` and `run(*, smoke) -> dict`, and one line in `benchmarks.__main__`.
Scenarios are seeded and say on which machine they ran; `smoke` makes them small enough for every change.
"""
