"""`evenflow key`: asks every partitioner instance of a query where a key goes, and compares what they say.

An instance says in its telemetry where its pages are. The key goes to these addresses only.
"""

from __future__ import annotations

import time
import urllib.error
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http.client import HTTPException
from typing import Annotated, Any
from urllib.parse import quote_from_bytes

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from evenflow.errors import ServiceError
from evenflow.reporting.responsible_instances import responsible_instances
from evenflow.reporting.words import printable
from evenflow.settings import Settings
from evenflow.telemetry import PartitionerRecord
from evenflow.text.strict_json import read_object
from topics.query.input_topic import by_its_rule, with_topic_partitions
from workbench.assist.activity import Part, read_activity
from workbench.assist.page_client import PageClient

_SILENT_MS = 15_000
"""An instance that has said nothing for so long counts only while nobody else has its input partitions."""
_MOST_BYTES = 4_000_000
_DEEPEST = 6
_AT_ONCE = 32

_Number = Annotated[int, Field(ge=0, le=1 << 20)]


class _Holder(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="ignore")

    worker: _Number
    """A worker that has the key, as far as the partitioner knows."""


class KeyAnswer(BaseModel):
    """What is read of an instance's answer.
    `partitioner_service/reports/key_answer.py` says what the fields mean.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore", allow_inf_nan=False)

    query: str
    """The query for which the instance routes. An answer of another query is refused."""
    instance: str
    """The name that the answering instance gives itself."""
    rule: str
    """The partitioner's rule for the key, in words."""
    home: _Number | None
    """The worker that the key has while it is not split.
    None if there is none, or the partitioner does not know it."""
    share: float | None
    """Share of the key in the recent stream, from 0 to 1. None if the partitioner does not count this key."""
    next_workers: list[_Number] | None = None
    """Workers to which the next tuple of the key may go. None: any worker."""
    holders: list[_Holder] = []
    """Workers that have the key, or else its candidates."""
    recent: dict[str, Any] | None = None
    """What the instance's sample of the last period has of the key. None if it has nothing."""


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What came of asking one instance."""

    instance: str
    """Name of the instance by telemetry, or the address that the user named."""
    address: str | None
    """`host:port` of the instance's pages. None if its telemetry names none."""
    answer: KeyAnswer | None = None
    """The answer, read and checked. None if there is none."""
    fields: dict[str, Any] | None = None
    """The same answer as plain JSON."""
    trouble: str = ""
    """Why there is no answer. Empty if there is one."""

    def as_json(self) -> dict[str, Any]:
        """The reply as JSON can hold it."""
        return {
            "instance": self.instance,
            "address": self.address,
            "answer": self.fields,
            "trouble": self.trouble,
        }


def ask_all(settings: Settings, key: bytes, *, at: Sequence[str] = (), patience: float) -> list[Reply]:
    """Ask the instances for this key, all at once. The replies are in the order of the instances' names.

    key: its bytes, as `settings.typed_key` makes them. at: addresses (`host:port`) to ask. Without any,
    telemetry says which instances there are, and where. patience: seconds to wait for each. Raises
    ServiceError if no instance is known, or if the broker does not answer.
    """
    places: list[tuple[str, str | None]] = [(address, address) for address in dict.fromkeys(at)]
    if not places:
        places = _places(by_its_rule(with_topic_partitions(settings)))
    asker = _Asker(settings, named=bool(at))
    with ThreadPoolExecutor(min(_AT_ONCE, len(places))) as pool:
        replies = pool.map(lambda place: asker.ask(place[0], place[1], key=key, patience=patience), places)
        return sorted(replies, key=lambda reply: reply.instance)


def homes_of(replies: Iterable[Reply]) -> dict[int, list[str]]:
    """Home of the key -> the instances that name it. More than one home means that the instances differ."""
    homes: dict[int, list[str]] = {}
    for reply in replies:
        if reply.answer is not None and reply.answer.home is not None:
            homes.setdefault(reply.answer.home, []).append(reply.instance)
    return homes


def _places(settings: Settings) -> list[tuple[str, str | None]]:
    records = instances_of(read_activity(settings).parts, settings.input_partitions)
    if not records:
        raise ServiceError(
            f"no partitioner instance of query {settings.query.name} has been heard in"
            f" {settings.topic('telemetry')}",
            hint="start one with `evenflow partition`, or name its pages with --at host:port",
        )
    return [(record.instance, record.pages) for record in records]


def instances_of(
    parts: Iterable[Part], partitions: int, *, now: Callable[[], float] = time.time
) -> list[PartitionerRecord]:
    """The newest record of each instance that counts. partitions: of the input topic.
    now: seconds since 1970.
    """
    records = [(part.at, part.telemetry) for part in parts if isinstance(part.telemetry, PartitionerRecord)]
    counted = responsible_instances(
        sorted(records, key=lambda entry: -entry[0]),
        partitions=partitions,
        owned=lambda entry: entry[1].owned,
        anyway=lambda entry: 1000 * now() - entry[0] < _SILENT_MS,
    )
    return [record for _, record in counted]


class _Asker:
    """Asks the pages of a query's instances about a key. named: whether the user named the addresses.

    Raises ConfigError if a file of `[web]` cannot be used.
    """

    def __init__(self, settings: Settings, *, named: bool) -> None:
        self._pages = PageClient(settings.web, named=named)
        self._query = settings.query.name

    def ask(self, instance: str, address: str | None, *, key: bytes, patience: float) -> Reply:
        """The reply of one instance."""
        if address is None:
            return Reply(instance=instance, address=None, trouble="it has not said where its pages are")
        path = f"/key/?format=json&key={quote_from_bytes(key, safe='')}"
        try:
            with self._pages.open(address, path, patience=patience) as response:
                # One byte more than is allowed, so that a longer answer is refused instead of cut.
                answer, fields = read_answer(response.read(_MOST_BYTES + 1))
            if answer.query == self._query:
                return Reply(instance=answer.instance, address=address, answer=answer, fields=fields)
            trouble = f"it works on query {answer.query}"
        except urllib.error.HTTPError as error:
            trouble = f"{error.code}: {self._refusal(error)}"
        except ValidationError:
            trouble = "its answer is none of evenflow's"
        except (OSError, ValueError, HTTPException) as error:
            trouble = f"no answer: {getattr(error, 'reason', error)}"
        return Reply(instance=instance, address=address, trouble=printable(trouble)[:300])

    def _refusal(self, error: urllib.error.HTTPError) -> str:
        if error.code == 401 and self._pages.withheld:
            return (
                "it wants the token, which goes only to an address that is named (--at host:port) or whose"
                " certificate is of web.tls_ca"
            )
        if error.code == 401:
            return "it wants another token than that of web.token_file"
        if error.code == 421:
            return "it does not answer under this name: see web.hosts"
        return _error_text(error)


def read_answer(data: bytes) -> tuple[KeyAnswer, dict[str, Any]]:
    """An instance's answer, and all of its fields. Raises ValueError for bytes that are none."""
    fields = _fields(data)
    return KeyAnswer.model_validate(fields), fields


def _fields(data: bytes) -> dict[str, Any]:
    return read_object(data, most_bytes=_MOST_BYTES, depth=_DEEPEST).fields


def _error_text(error: urllib.error.HTTPError) -> str:
    """What an instance says instead of an answer. Another server's words are not repeated."""
    try:
        return str(_fields(error.read(_MOST_BYTES + 1))["error"])
    except (OSError, ValueError, KeyError, HTTPException):
        return "not an answer of evenflow"
