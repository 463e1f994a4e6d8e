"""The seeded generators as sources, one for each law of keys: zipf:..., uniform:..., drift:..., and so on."""

from __future__ import annotations

from functools import partial

from evenflow.generation.laws import LAWS
from evenflow.sources.generators import generate
from evenflow.sources.source import SourceFormat

FORMATS = tuple(
    SourceFormat(name, f"seeded generator: {law.description}", partial(generate, name))
    for name, law in LAWS.items()
)
