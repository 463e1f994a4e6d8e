"""The schema of results in a registry: looked up, compared with what is there, and registered."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from evenflow.errors import ConfigError, IncompatibleStateError
from evenflow.settings.sections.input import RegistrySettings
from topics.schemas.registry import Registry, SchemaRefused

if TYPE_CHECKING:
    from confluent_kafka.schema_registry import Schema

_INCOMPATIBLE = 409
_NO_RIGHT = (401, 403, 422)
"""HTTP statuses of a registry that does not register: the user may not, or nobody may now."""
_MOST_NAMED = 5


class ResultsRegistry(Registry):
    """The registry of `[results.registry]`, or of `[input.registry]` where results have none of their own."""

    def __init__(self, registry: RegistrySettings, section: str) -> None:
        """section: the section of the settings that names this registry, for messages."""
        self._form, self._subject, self._fmt = "avro", "", None
        self._connect(registry, section)

    def number(self, subject: str, text: str) -> int | None:
        """The number of this Avro schema, None if it is not registered under the subject.

        Raises RegistryAway and SchemaRefused.
        """
        self._client.clear_caches()
        schema = self._answer(lambda: self._client.lookup_schema(subject, self._schema(text)))
        return None if schema is None else self._whole(schema.schema_id)

    def registered(self, subject: str, text: str) -> int:
        """The number of this Avro schema under the subject.

        Raises RegistryAway, SchemaRefused, and ConfigError, which says what to do, if it is not registered.
        """
        number = self.number(subject, text)
        if number is None:
            raise ConfigError(
                f"the schema of the results is not registered at {self._url} under {subject}",
                hint=(
                    "a start registers it, unless results.register_schema = false: then register what"
                    " `evenflow results --schema` shows"
                ),
            )
        return number

    def admit(self, subject: str, text: str, *, register: bool) -> int:
        """The number of this Avro schema under the subject, where it is registered unless it is there.

        register: False if it must be there already. Raises RegistryAway, ConfigError if it may not be
        registered, and IncompatibleStateError if another schema is there with which the registry does not
        accept it.
        """
        number = self.number(subject, text)
        if number is not None:
            return number
        before = self._answer(lambda: self._client.get_latest_version(subject))
        earlier = None if before is None or before.schema is None else before.schema.schema_str
        if earlier is not None and not self._accepts(subject, text):
            raise self._incompatible(subject, text, earlier)
        if not register:
            raise ConfigError(
                f"the schema of the results is not registered at {self._url} under {subject}, and "
                "results.register_schema is false",
                hint="register what `evenflow results --schema` shows, or set results.register_schema = true",
            )
        try:
            return self.register(subject, text)
        except SchemaRefused as refused:
            if refused.status == _INCOMPATIBLE:
                raise self._incompatible(subject, text, earlier) from None
            if refused.status not in _NO_RIGHT:
                raise
            raise ConfigError(
                f"the schema registry at {self._url} does not register the schema of the results under"
                f" {subject}: {refused.why}",
                hint=(
                    f"give the user of {self._section} the right to write this subject. Or have someone who"
                    " may do so register what `evenflow results --schema` shows, and set"
                    " results.register_schema = false"
                ),
            ) from None

    def _accepts(self, subject: str, text: str) -> bool:
        """Whether the registry would register this schema beside those that the subject has."""
        ask: Callable[[], bool] = lambda: self._client.test_compatibility(subject, self._schema(text))  # noqa: E731
        try:
            return self._answer(ask) is not False
        except SchemaRefused as refused:
            # Who may not ask may still register, and then the registry says it.
            if refused.status in _NO_RIGHT:
                return True
            raise

    def _incompatible(self, subject: str, text: str, earlier: str | None) -> IncompatibleStateError:
        differs = "" if earlier is None else f": {_differences(text, earlier)}"
        return IncompatibleStateError(
            f"another schema is registered at {self._url} under {subject}, and the registry does not accept"
            f" that of the results beside it{differs}",
            hint=(
                "set results.topic to a topic of its own. If nobody reads the earlier records any more,"
                " delete the subject in the registry, or set its compatibility to NONE"
            ),
        )

    def _schema(self, text: str) -> Schema:
        from confluent_kafka.schema_registry import Schema

        return Schema(text, schema_type="AVRO")

    def _whole(self, number: object) -> int:
        if type(number) is not int or not 0 <= number < 2**32:
            raise self._no_schema("its number is no whole number")
        return number


def _differences(ours: str, theirs: str) -> str:
    """In words how the schema of the results differs from another Avro schema."""
    try:
        new, old = json.loads(ours), json.loads(theirs)
        if not isinstance(old, dict) or not isinstance(old.get("fields"), list):
            return "it is no record"
        fields, before = _fields(new), _fields(old)
        differences = [
            f"its field {name} is {_short(before[name])}, and that of results is {_short(fields[name])}"
            for name in fields
            if name in before and before[name] != fields[name]
        ]
        if _full_name(new) != _full_name(old):
            differences.append(
                f"its record is called {_full_name(old)}, and that of results {_full_name(new)}"
            )
        differences += [f"results have no field {name}" for name in before if name not in fields]
        differences += [f"it has no field {name}" for name in fields if name not in before]
    except (ValueError, TypeError, KeyError, RecursionError):
        return "it cannot be read"
    rest = len(differences) - _MOST_NAMED
    return "; ".join(differences[:_MOST_NAMED]) + (f"; and {rest} more" if rest > 0 else "")


def _fields(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {str(field["name"])[:100]: field["type"] for field in schema["fields"]}


def _full_name(schema: Mapping[str, Any]) -> str:
    return ".".join(str(schema[name])[:100] for name in ("namespace", "name") if schema.get(name))


def _short(kind: Any) -> str:
    return json.dumps(kind)[:100]
