"""The schemas that the records of a sample name. Anybody may write records of thousands of ids, so the
registry is asked for the commonest alone, once and for a bounded time.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace

from evenflow.settings import Settings
from partitioner_service.reading.registered.schemas import (
    Answer,
    Schemas,
    SchemasToCome,
    Withheld,
    schemas_of,
)
from topics.schemas.registry import Lookup, RegisteredSchema, RegistryAway, SchemaRefused
from workbench.assist.sample_check.sample import TopicRecords
from workbench.registered.records import schema_id

MOST_SCHEMAS = 200
"""Schemas that the registry is asked for."""
MOST_SECONDS = 10.0
"""How long it is asked for them."""
_AT_ONCE = 16


class SampleSchemas:
    """What the registry says of the ids that it was asked for, as a registry (`Lookup`) without any other."""

    def __init__(self, answers: Mapping[int, Answer]) -> None:
        self._answers = answers
        self.of_parser = Schemas(self, hands_out_any=lambda: True, ask_for=math.inf)
        """The same for a parser. Nobody is asked any more, so all answers come at once."""

    def schema(self, number: int) -> RegisteredSchema | None:
        """The schema of this id. None if there is none. Raises SchemaRefused if the registry withholds it."""
        answer = self._answers.get(number)
        if isinstance(answer, Withheld):
            raise SchemaRefused(
                f"the registry refuses schema {number}: {answer.why}", why=answer.why, hint=""
            )
        return answer


def with_schemas(
    settings: Settings,
    sample: TopicRecords,
    *,
    registry: Lookup | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> tuple[TopicRecords, SampleSchemas | None]:
    """The sample without records whose schemas nobody knows in time, and the schemas of the others.

    The schemas are None if the settings need no registry. registry: None for that of the settings. Raises
    RegistryAway if the registry does not answer at all, SchemaRefused if it refuses everything, and
    ConfigError.
    """
    schemas = schemas_of(settings) if registry is None else Schemas(registry, clock=clock)
    if schemas is None:
        return sample, None
    answers = _answers(schemas, sample, clock)
    unasked, stretches = 0, []
    for stretch in sample.stretches:
        rows = [
            row
            for row, value in enumerate(stretch.values)
            if value is None or (number := schema_id(value)) is None or number in answers
        ]
        unasked += len(stretch.values) - len(rows)
        stretches.append(stretch if len(rows) == len(stretch.values) else stretch.of(rows))
    return replace(sample, stretches=tuple(stretches), unasked=unasked), SampleSchemas(answers)


def _answers(schemas: Schemas, sample: TopicRecords, clock: Callable[[], float]) -> dict[int, Answer]:
    """What is known of the commonest ids of these records. Raises what `with_schemas` raises."""
    counted = Counter(schema_id(value) for value in sample.values if value is not None)
    del counted[None]
    numbers = [number for number, _ in counted.most_common(MOST_SCHEMAS) if number is not None]
    answers: dict[int, Answer] = {}
    deadline = clock() + MOST_SECONDS
    while numbers and clock() <= deadline:
        try:
            answers |= schemas.of(numbers[:_AT_ONCE])
        except SchemasToCome:
            continue  # what was answered is not asked for again
        except RegistryAway:
            if not answers:
                raise
            break
        del numbers[:_AT_ONCE]
    return answers
