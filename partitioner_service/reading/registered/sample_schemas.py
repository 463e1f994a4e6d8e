"""The schemas that the records of a sample name. Anybody may write records of thousands of ids, so the
registry is asked for the commonest alone, once and for a bounded time.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from partitioner_service.reading.registered.schemas import Answer, Schemas, SchemasToCome, Withheld
from topics.schemas.registry import RegisteredSchema, RegistryAway, SchemaRefused, schema_id

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

    @classmethod
    def from_registry(
        cls,
        values: Iterable[bytes | None],
        schemas: Schemas,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> SampleSchemas:
        """Ask for the commonest ids of these records. schemas: of the registry. clock: seconds.

        Raises RegistryAway if the registry does not answer at all, and SchemaRefused if it refuses
        everything.
        """
        counted = Counter(schema_id(value) for value in values if value is not None)
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
        return cls(answers)

    def is_enough_for(self, value: bytes | None) -> bool:
        """Whether a record can be judged: the registry was asked for its schema, or the record names none."""
        return value is None or (number := schema_id(value)) is None or number in self._answers

    def schema(self, number: int) -> RegisteredSchema | None:
        """The schema of this id. None if there is none. Raises SchemaRefused if the registry withholds it."""
        answer = self._answers.get(number)
        if isinstance(answer, Withheld):
            raise SchemaRefused(
                f"the registry refuses schema {number}: {answer.why}", why=answer.why, hint=""
            )
        return answer
