"""The schemas of the ids that records name.

Each schema is asked for once. Ids that are new to this process are asked for a few at a time, and for a
bounded time per call, so that a stream of made-up ids neither floods the registry nor stops the instance.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TypeAlias

from evenflow.settings import Settings
from evenflow.settings.sections.rhythm import MOST_BLOCK
from topics.schemas.registry import Lookup, RegisteredSchema, Registry, RegistryAway, SchemaRefused

log = logging.getLogger("partitioner_service")

_FORGET_AFTER = 60.0
"""Seconds for which an id without a schema is remembered."""
_AT_ONCE = 16
"""Questions to the registry at a time."""
_ASK_FOR = 2.0
"""Seconds for which one call asks. An open transaction lives longer, so it still commits."""
MOST_CHARACTERS = 1_000_000
"""Characters of a schema that is read, with the schemas that it refers to. To compile one takes its time."""
_MOST_SCHEMAS = 10_000
_MOST_REMEMBERED = 64_000_000
"""Bound of the schemas that are remembered: their characters, together."""
_MOST_PROOFS = 3
"""How many known schemas are asked for again before a refusal counts as one of the user."""
_MOST_LOGGED = 20
"""How many withheld ids are logged one by one."""


class SchemasToCome(RegistryAway):
    """The registry answers, and some of the ids are still to be asked for."""


@dataclass(frozen=True)
class Withheld:
    """The registry hands out other schemas, but not this one."""

    why: str
    """What the registry says, short and printable."""


Answer: TypeAlias = RegisteredSchema | Withheld | None
"""What is known of an id. None: the registry has no such schema."""
_RegistryReply: TypeAlias = RegisteredSchema | SchemaRefused | None


def schemas_of(settings: Settings, *, ask_for: float = _ASK_FOR) -> Schemas | None:
    """The schemas of the registry in these settings.
    None if the records need no registry. Raises ConfigError.

    ask_for: as of `Schemas`. A command that reads a sample once has no reason to stop early (`math.inf`).
    """
    if not settings.input.registered:
        return None
    registry = Registry(settings.input)
    # Twice a block: one block may name as many unknown ids as it has records.
    most = 2 * (settings.partitioner.block_tuples or MOST_BLOCK)
    return Schemas(registry, hands_out_any=registry.hands_out_any, most=most, ask_for=ask_for)


class Schemas:
    """Remembers the newest 10,000 schemas, as far as they have 64 million characters at most together. It
    remembers for a minute that an id has none or that it is withheld.

    hands_out_any: whether the registry hands out any schema now. It is called when the registry refuses the
    first schemas that it is asked for. most: number of ids without a schema that are remembered. The ids of a
    block that waits are remembered until the block has been read, however long that takes. at_once: how many
    threads ask. ask_for: seconds after which a call raises SchemasToCome.
    """

    def __init__(
        self,
        registry: Lookup,
        *,
        hands_out_any: Callable[[], bool] = lambda: False,
        most: int = 100_000,
        at_once: int = _AT_ONCE,
        ask_for: float = _ASK_FOR,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._registry, self._hands_out_any = registry, hands_out_any
        self._most, self._at_once, self._ask_for, self._clock = most, at_once, ask_for, clock
        self._known: dict[int, RegisteredSchema] = {}
        self._characters = 0
        self._without: dict[int, tuple[float, Withheld | None]] = {}
        self._waiting = False
        self._logged: set[int] = set()

    def of(self, ids: Iterable[int]) -> dict[int, Answer]:
        """What is known of each of these ids.

        Raises RegistryAway while not all answers are known (SchemasToCome if the registry does answer), and
        SchemaRefused if the registry has refused everything since this process began. Answers that came
        before the error are kept, so the next call goes on from there.
        """
        numbers = list(ids)
        # Nothing is forgotten while a block waits. Otherwise a block of many unknown ids might never be
        # complete.
        if not self._waiting:
            self._forget()
        self._waiting = True
        missing = [number for number in numbers if number not in self._known and number not in self._without]
        if missing:
            self._ask(missing)
        self._waiting = False
        return {number: self._answer(number) for number in numbers}

    def _answer(self, number: int) -> Answer:
        schema = self._known.get(number)
        return self._without[number][1] if schema is None else schema

    def _remember(self, number: int, schema: RegisteredSchema) -> None:
        if _characters(schema) > MOST_CHARACTERS:  # nobody reads it, as one of another format
            schema = replace(schema, form="", texts=(), names=())
        self._known[number] = schema
        self._characters += _characters(schema)

    def _ask(self, numbers: list[int]) -> None:
        """Ask for these ids, and remember the answers. Raises what `of` raises."""
        before = set(self._known)
        answers, failure = self._answers(numbers)
        refused = {number: answer for number, answer in answers.items() if isinstance(answer, SchemaRefused)}
        now = self._clock()
        for number, answer in answers.items():
            if isinstance(answer, RegisteredSchema):
                self._remember(number, answer)
            elif answer is None:
                self._without[number] = now, None
        if refused:
            refusal = next(iter(refused.values()))
            self._prove_that_others_come(self._known.keys() - before, refusal)
            if failure is None:
                failure = self._take_over_refusals(list(refused), now)
        if failure is not None:
            raise failure
        if len(answers) < len(numbers):
            raise SchemasToCome(
                f"records name {len(numbers):,} schema ids that are new here; {len(answers):,} of them are "
                "answered, the others are asked for next"
            )

    def _answers(self, numbers: list[int]) -> tuple[dict[int, _RegistryReply], RegistryAway | None]:
        """What the registry says of these ids, as far as the time goes, and why it stopped answering,
        if it did.
        """
        waiting, until = deque(dict.fromkeys(numbers)), self._clock() + self._ask_for
        answers: dict[int, _RegistryReply] = {}
        failures: list[RegistryAway] = []

        def work() -> None:
            while not failures and self._clock() < until:
                try:
                    number = waiting.popleft()
                except IndexError:
                    return
                try:
                    answers[number] = self._registry.schema(number)
                except SchemaRefused as error:
                    answers[number] = error
                except RegistryAway as error:
                    failures.append(error)

        workers = min(self._at_once, len(waiting))
        if workers == 1:
            work()
        else:
            with ThreadPoolExecutor(workers, thread_name_prefix="schemas") as pool:
                for future in [pool.submit(work) for _ in range(workers)]:
                    future.result()
        return answers, failures[0] if failures else None

    def _take_over_refusals(self, numbers: list[int], now: float) -> RegistryAway | None:
        """Ask once more for ids that were refused, as others come by now, and remember what is said then.

        The registry may have refused everything when it was asked for them, and have let the user in since.
        Returns why it stopped answering, if it did. Ids that were not asked for again are not remembered.
        Raises what `_prove_that_others_come` raises, if it refuses everything now.
        """
        answers, failure = self._answers(numbers)
        refusals = [answer for answer in answers.values() if isinstance(answer, SchemaRefused)]
        if refusals:
            self._prove_that_others_come(set(), refusals[0])
        for number, answer in answers.items():
            if isinstance(answer, RegisteredSchema):
                self._remember(number, answer)
            elif answer is None:
                self._without[number] = now, None
            else:
                self._without[number] = now, Withheld(answer.why)
                self._log(number, answer)
        if failure is None and len(answers) < len(numbers):
            failure = SchemasToCome(f"{len(numbers) - len(answers):,} schema ids are asked for once more")
        return failure

    def _prove_that_others_come(self, fresh: set[int], refusal: SchemaRefused) -> None:
        """Return if the registry hands out other schemas now, so that a refusal is about one id.

        fresh: ids whose schemas have come together with the refusal. Raises the refusal if no schema was ever
        read. Otherwise raises RegistryAway: the user was let in before, and may be again.
        """
        if fresh:
            return
        for number in list(self._known)[-_MOST_PROOFS:]:
            try:
                if self._registry.schema(number) is not None:
                    return
            except SchemaRefused:
                pass
        if self._hands_out_any():
            return
        if not self._known:
            raise refusal
        raise RegistryAway(
            f"the schema registry refuses schemas that it handed out before: {refusal.message}",
            hint=refusal.hint,
        )

    def _log(self, number: int, error: SchemaRefused) -> None:
        if number not in self._logged and len(self._logged) < _MOST_LOGGED:
            self._logged.add(number)
            log.warning("records of schema %d are rejected as unreadable: %s", number, error.message)

    def _forget(self) -> None:
        """Forget what is old.

        A schema may be registered, or permitted, after the first record that names it.
        """
        if len(self._known) > _MOST_SCHEMAS or self._characters > _MOST_REMEMBERED:
            for number in list(self._known):
                self._characters -= _characters(self._known.pop(number))
                if len(self._known) <= _MOST_SCHEMAS and self._characters <= _MOST_REMEMBERED:
                    break
        before = self._clock() - _FORGET_AFTER
        self._without = {number: entry for number, entry in self._without.items() if entry[0] >= before}
        if len(self._without) > self._most:
            self._without.clear()


def _characters(schema: RegisteredSchema) -> int:
    return sum(map(len, schema.texts))
