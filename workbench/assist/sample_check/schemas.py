"""A sample as far as the registry is asked for the schemas that its records name."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from evenflow.settings import Settings
from partitioner_service.reading.registered.sample_schemas import SampleSchemas
from partitioner_service.reading.registered.schemas import Schemas, schemas_of
from topics.schemas.registry import Lookup
from workbench.assist.sample_check.sample import TopicRecords


def with_schemas(
    settings: Settings,
    sample: TopicRecords,
    *,
    registry: Lookup | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> tuple[TopicRecords, SampleSchemas | None]:
    """The sample without records whose schemas nobody knows in time, and the schemas of the others.

    The schemas are None if the settings need no registry. registry: None for that of the settings. Raises
    ConfigError and what `SampleSchemas.from_registry` raises.
    """
    schemas = schemas_of(settings) if registry is None else Schemas(registry, clock=clock)
    if schemas is None:
        return sample, None
    answers = SampleSchemas.from_registry(sample.values, schemas, clock=clock)
    unasked, stretches = 0, []
    for stretch in sample.stretches:
        rows = [row for row, value in enumerate(stretch.values) if answers.is_enough_for(value)]
        unasked += len(stretch.values) - len(rows)
        stretches.append(stretch if len(rows) == len(stretch.values) else stretch.of(rows))
    return replace(sample, stretches=tuple(stretches), unasked=unasked), answers
