"""The seeded generators as sources: zipf:..., uniform:..., alternating:..., random-exponent:..., drift:...,
flash-crowd:..."""

from __future__ import annotations

from functools import partial

from evenflow.sources.generators import GENERATORS, generate
from evenflow.sources.source import SourceFormat

FORMATS = tuple(
    SourceFormat(name, f"seeded generator: {summary}", partial(generate, name))
    for name, (summary, _) in GENERATORS.items()
)
