"""The schema registry, asked with confluent-kafka's own client: finding and registering schemas.

A question for a schema has one of three answers: the schema, None if the registry has none of this id, or an
error. An outage is a `RegistryAway`, which may heal. `SchemaRefused` says that the registry answers and hands
nothing out. Whoever asks has to find out whether that is about one schema, or about the user and the address.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from evenflow.errors import ConfigError, ServiceError
from evenflow.reporting.words import printable
from evenflow.settings import InputSettings
from evenflow.settings.sections.input import RegistrySettings

if TYPE_CHECKING:
    from confluent_kafka.schema_registry import Schema
    from confluent_kafka.schema_registry.error import SchemaRegistryError

T = TypeVar("T")

_NO_SUCH_SCHEMA = 40403
"""The registry's own error code."""
_USER_REFUSED = (401, 403)
_MAY_HEAL = (408, 425, 429)
"""HTTP statuses that ask for patience, though they are below 500."""
_DEEPEST = 32
_MOST_REFERENCES = 1_000
"""Bounds of the schemas that a schema refers to, so that no registry can make us ask for ever. For all that
one schema refers to, at any depth, the registry is asked so often at most.
"""
_LONGEST_MESSAGE = 300
"""Characters of the registry's message that are passed on."""
_MOST_CHARACTERS = 16_000_000
"""Characters of the schemas that a schema refers to, together."""
_MOST_SUBJECTS = 20
"""How many subjects are tried when the registry is to prove that it hands out any schema."""


class RegistryAway(ServiceError):
    """The registry does not answer now. Asking again may help."""


class SchemaRefused(ConfigError):
    """The registry answers, but it does not hand out what was asked for.

    why: HTTP status and message, without secrets, for the record that asked for it. status: the HTTP status,
    None if the answer could not be read.
    """

    def __init__(self, message: str, *, why: str, hint: str, status: int | None = None) -> None:
        super().__init__(message, hint=hint)
        self.why = why
        self.status = status


@dataclass(frozen=True)
class RegisteredSchema:
    """A schema of the registry."""

    id: int
    """Number by which records name the schema."""
    form: str
    """"avro", "protobuf" or another type of the registry, in small letters."""
    texts: tuple[str, ...]
    """The schemas that this schema refers to, and last its own text. A text comes behind those that it refers
    to itself. An Avro text is JSON, a Protobuf text is a FileDescriptorProto in base64."""
    names: tuple[str, ...]
    """The name by which each text is referred to. The last name is empty."""


def schema_id(value: bytes) -> int | None:
    """The id of the record's schema. None if the record is not in Confluent's wire format: a zero byte, then
    the id in 4 bytes.
    """
    return None if len(value) < 5 or value[0] else int.from_bytes(value[1:5], "big")


class Lookup(Protocol):
    """Whatever finds a schema by its id, as `Registry` does."""

    def schema(self, number: int) -> RegisteredSchema | None:
        """The schema of this id. None if there is none. Raises RegistryAway and SchemaRefused."""
        ...


@dataclass
class _References:
    """The schemas that one schema refers to, in the making."""

    texts: list[str] = field(default_factory=list)
    """As of `RegisteredSchema`, without the schema's own text."""
    names: list[str] = field(default_factory=list)
    """The name by which each text is referred to."""
    begun: set[str] = field(default_factory=set)
    """These names, and those of the texts around. A schema that refers to itself ends there."""
    questions: int = 0
    """How often the registry was asked."""


class Registry:
    """The registry of `[input.registry]`."""

    def __init__(self, settings: InputSettings) -> None:
        assert settings.registry is not None
        self._form = settings.format
        self._subject = f"{settings.topic}-value" if settings.topic else ""
        self._fmt = "serialized" if settings.format == "protobuf" else None
        self._connect(settings.registry, "input.registry")

    def _connect(self, registry: RegistrySettings, section: str) -> None:
        """Make the client. section: of the settings, for messages."""
        # Imported only here: importing takes half a second for HTTP and login libraries, which few queries
        # need.
        from confluent_kafka.schema_registry import SchemaRegistryClient

        from topics.schemas.bounded_client import BoundedClient

        self._url, self._section = registry.url, section
        self._secrets: tuple[str, ...] = ()
        config: dict[str, Any] = {
            "url": self._url,
            "timeout": registry.timeout / 1000,
            "max.retries": 0,
        }
        if registry.username is not None and registry.password is not None:
            secret = registry.password.get_secret_value()
            config["basic.auth.user.info"] = f"{registry.username}:{secret}"
            self._secrets = (secret, b64encode(config["basic.auth.user.info"].encode()).decode())
        if registry.ssl_ca is not None:
            config["ssl.ca.location"] = str(registry.ssl_ca)
        try:
            self._client = SchemaRegistryClient(config)
            rest = self._client._rest_client
            rest.session.close()
            rest.session = BoundedClient(
                verify=rest.verify, auth=rest.auth, proxy=rest.proxy, seconds=registry.timeout / 1000
            )
        except Exception as error:  # of many types: a TLS file is missing, a URL has the wrong form
            raise ConfigError(f"{section} cannot be used: {error}") from None

    def schema(self, number: int) -> RegisteredSchema | None:
        """The schema of this id, with the schemas that it refers to. None if there is none.

        The registry is asked each time. Any number of threads may ask at once. Raises RegistryAway and
        SchemaRefused.
        """
        self._client.clear_caches()  # its cache has no bound, and would hide that the registry refuses us now
        schema = self._answer(lambda: self._client.get_schema(number, fmt=self._fmt))
        return None if schema is None else self._with_references(number, schema)

    def hands_out_any(self) -> bool:
        """Whether the registry hands out any schema to us now.

        It is asked for the newest version of the input topic's usual subject and of the first subjects that
        it lists. Raises RegistryAway.
        """
        for name in self._likely_subjects():
            try:
                newest = self._answer(partial(self._client.get_latest_version, name, fmt=self._fmt))
                if newest is not None and newest.schema is not None and newest.schema.schema_str:
                    return True
            except SchemaRefused:
                continue
        return False

    def _likely_subjects(self) -> Iterator[str]:
        if self._subject:
            yield self._subject
        try:
            listed = self.subjects()
        except SchemaRefused:
            return
        yield from listed[:_MOST_SUBJECTS]

    def register(self, subject: str, text: str) -> int:
        """The id of this schema, which is registered under `subject` unless it is there already.

        text: in the format of the settings. Raises RegistryAway and ConfigError.
        """
        from confluent_kafka.schema_registry import Schema

        schema = Schema(text, schema_type=self._form.upper())
        number = self._answer(lambda: self._client.register_schema(subject, schema))
        if number is None:
            raise ConfigError(f"the registry at {self._url} has no place for subject {subject}")
        return number

    def subjects(self) -> list[str]:
        """The registry's subjects. `evenflow doctor` asks for them to see whether the registry answers.

        Raises RegistryAway and SchemaRefused.
        """
        listed: object = self._answer(self._client.get_subjects) or []
        if not isinstance(listed, list) or not all(isinstance(name, str) for name in listed):
            raise self._no_schema("no list of subjects")
        return listed

    def _with_references(self, number: int, schema: Schema) -> RegisteredSchema:
        references = _References()
        self._refer(schema, references, 0)
        form, text = schema.schema_type or "AVRO", schema.schema_str
        if not isinstance(form, str) or not isinstance(text, str) or not text:
            raise self._no_schema("its type or its text is no text")
        # The registry leaves the type out for Avro.
        return RegisteredSchema(number, form.lower(), (*references.texts, text), (*references.names, ""))

    def _refer(self, schema: Schema, references: _References, depth: int) -> None:
        """Append the schemas that this schema refers to, each behind those that it refers to itself.

        A reference that the registry does not have is left out. The compiler then finds the schema unfit.
        """
        for reference in (schema.references or ())[:_MOST_REFERENCES]:
            name, version, subject = reference.name, reference.version, reference.subject
            if not isinstance(version, int) or subject is None or not isinstance(name, str):
                continue
            if name in references.begun or depth > _DEEPEST or references.questions >= _MOST_REFERENCES:
                continue
            references.questions += 1
            registered_schema = self._answer(
                partial(self._client.get_version, subject, version, fmt=self._fmt)
            )
            if registered_schema is None or registered_schema.schema is None:
                continue
            text = registered_schema.schema.schema_str or ""
            if not isinstance(text, str):
                raise self._no_schema(f"the text of {name} is no text")
            references.begun.add(name)
            self._refer(registered_schema.schema, references, depth + 1)
            if sum(map(len, references.texts)) + len(text) > _MOST_CHARACTERS:
                raise self._no_schema(
                    f"the schemas that it refers to have more than {_MOST_CHARACTERS:,} characters"
                )
            references.texts.append(text)
            references.names.append(name)

    def _answer(self, ask: Callable[[], T]) -> T | None:
        """The registry's answer. None if there is no such thing. Raises RegistryAway and SchemaRefused."""
        from confluent_kafka.schema_registry.error import SchemaRegistryError

        from topics.schemas.bounded_client import UnfitAnswer

        try:
            return ask()
        except UnfitAnswer as error:
            raise self._no_schema(str(error)) from None
        except SchemaRegistryError as error:
            self._refused(error)
            return None
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            # What the client raises when it takes an answer apart that is not of the registry's interface.
            raise self._no_schema(type(error).__name__) from None
        except Exception as error:  # the client passes on whatever its HTTP library raises
            raise RegistryAway(
                f"the schema registry at {self._url} does not answer: {error or type(error).__name__}",
                hint=f"is it running, and is {self._section}.url right?",
            ) from None

    def _no_schema(self, why: str) -> SchemaRefused:
        return SchemaRefused(
            f"the schema registry at {self._url} answers with something that is no schema: {why}",
            why="the answer is no schema",
            hint=f"is {self._section}.url that of a schema registry, with the right path?",
        )

    def _refused(self, error: SchemaRegistryError) -> None:
        """Raise what this error means. Returns if it means that there is no such thing."""
        status, code = error.http_status_code, error.error_code
        # A 404 of the registry itself has an error code of the form 404xx. Any other 404 comes from a wrong
        # address. Anything may stand where the code should.
        known = isinstance(code, int) and 40400 <= code < 40500
        if code == _NO_SUCH_SCHEMA or (status == 404 and known):
            return
        why = f"HTTP {status}: {self._harmless(error.error_message)}"
        if status >= 500 or status in _MAY_HEAL:
            raise RegistryAway(f"the schema registry at {self._url} does not answer: {why}") from None
        if status in _USER_REFUSED:
            complaint = "refuses us"
            hint = f"check {self._section}.username and password, and what that user may read"
        else:
            complaint = "refuses what we ask"
            hint = f"is {self._section}.url that of a schema registry, with the right path?"
        raise SchemaRefused(
            f"the schema registry at {self._url} {complaint}: {why}", why=why, hint=hint, status=status
        ) from None

    def _harmless(self, message: object) -> str:
        """What the registry says, printable, short, and without the password."""
        text = str(message)
        for secret in self._secrets:
            text = text.replace(secret, "***")
        # Cut twice: what is not printable becomes longer, and nobody should make a whole book printable.
        return printable(text[:_LONGEST_MESSAGE])[:_LONGEST_MESSAGE]
