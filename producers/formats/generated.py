"""The seeded generators as sources: zipf:..., uniform:..., alternating:..., random-exponent:..., drift:..."""

from __future__ import annotations

from functools import partial

from producers.generators import GENERATORS, generate
from producers.source import SourceFormat

FORMATS = tuple(
    SourceFormat(name, f"seeded generator: {summary}", partial(generate, name))
    for name, (summary, _) in GENERATORS.items()
)
