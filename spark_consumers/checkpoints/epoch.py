"""The epoch of a stage: of all drivers that were ever started on it, only the newest may write.

Rule "one writer per stage".

Kafka decides which driver that is. Each stage of each query has a transactional id, `<query>.spark.<stage>`.
A driver that starts takes the id over, which fences the driver before it, and writes the next epoch in a
transaction. Epochs are records of the stage's own topic (`own_topic`), which is compacted, beside the notes
of `results_note.py`.

Whether a driver is still the newest is asked by writing its record once more. Kafka commits this transaction
only for the newest holder of the id. Nothing that is remembered could answer: a driver may have stood still
since.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from typing import Any, TypeVar

from confluent_kafka import KafkaException

from evenflow.errors import FencedError, ServiceError
from evenflow.settings import Settings
from evenflow.settings.views import TopicRole
from evenflow.telemetry import Stage
from evenflow.text.strict_json import read_object
from spark_consumers.checkpoints.results_note import ROLE_BEFORE
from topics import clients
from topics.call_thread import BoundedCalls
from topics.reader import read_all
from topics.transactional import Transactional

_LOG = logging.getLogger("evenflow.spark")
_TRANSACTION_TIMEOUT_MS = 30_000
_LARGEST_RECORD = 10_000  # bytes
_STEP_SECONDS = 5.0
_LOOK_SECONDS = 0.5
_PAUSE_SECONDS = 0.1
_MOST_RENEWALS = 3
"""New clients in one check."""
_RENEWAL = 4
"""So many requests, one after the other, make a new client and look for a newer driver."""
_T = TypeVar("_T")


@dataclass(frozen=True, kw_only=True)
class Holder:
    """The driver that holds an epoch."""

    epoch: int
    """Grows with each driver of the stage."""
    who: str
    """The driver's machine and process, for people."""

    def encode(self) -> bytes:
        """The holder as a record."""
        return json.dumps({"epoch": self.epoch, "who": self.who}).encode()

    @classmethod
    def read(cls, value: bytes | None) -> Holder | None:
        """The holder in a record. None for a record that cannot be read."""
        try:
            fields = read_object(value or b"", most_bytes=_LARGEST_RECORD, depth=3).fields
            epoch = fields["epoch"]
            if type(epoch) is not int or epoch < 1:
                return None
            return cls(epoch=epoch, who=str(fields.get("who")))
        except (KeyError, ValueError):
            return None


def own_topic(stage: Stage) -> TopicRole:
    """Role of the topic in which a stage keeps what it must find again. No other stage writes there."""
    return "combiner" if stage == "combine" else "reducer"


def newest_holder(settings: Settings, stage: Stage) -> Holder | None:
    """The driver that has taken the stage last, by the records in Kafka. None if none ever has.

    It is not the holder in the last record (`read_last`): a record that is none, whoever wrote it, hides no
    epoch. The drivers of 0.1.0 count, too.
    """
    newest = None
    for role in (own_topic(stage), ROLE_BEFORE):
        for message in read_all(settings.kafka, settings.topic(role)):
            holder = Holder.read(message.value()) if message.key() == _key(settings, stage) else None
            if holder is not None and (newest is None or holder.epoch > newest.epoch):
                newest = holder
    return newest


class StageEpoch:
    """The epoch that this process has taken of one stage.

    number: grows with each driver. holder: how the records name this driver. Threads may share the object.
    """

    def __init__(self, settings: Settings, stage: Stage, *, above: int = 0) -> None:
        """Take the stage over from any other driver.

        above: the newest epoch that the stage's checkpoint knows. It counts where the topic was made anew.
        Raises FencedError if another driver takes the stage at the same moment, ServiceError if the broker
        refuses or does not answer.
        """
        self._settings = settings
        self._stage = stage
        self._id = f"{settings.query.name}.spark.{stage}"
        self._patience = clients.seconds(settings.kafka)
        self._fenced: FencedError | None = None
        self._open = self._aborting = False
        self._reason = ""
        self._written = self._unsure = False
        self.number = 0
        self._calls = BoundedCalls(f"epoch {stage}")
        self._bounded("taking over", self._take_over, patience=_RENEWAL * self._patience)
        # Only now: the driver before can add no record any more.
        newest = newest_holder(settings, stage)
        self.number = max(above, newest.epoch if newest is not None else 0) + 1
        self.holder = Holder(epoch=self.number, who=f"process {os.getpid()} on {socket.gethostname()}")
        self.check()
        if newest is not None:
            _LOG.info(
                "%s: the driver before was %s (epoch %s). If it is still at work, it ends now with status %s",
                self._id,
                newest.who,
                newest.epoch,
                FencedError.exit_code,
            )

    def check(self) -> None:
        """Raise FencedError if another driver has taken the stage.

        Raises ServiceError if the broker does not say within `kafka.request_timeout`.
        """
        for attempt in count():
            if self._bounded("checking", self._commit, patience=self._patience):
                self._written = True
                return
            # Before its first epoch is written, another driver may have read the same last one, and have
            # written the same next one.
            if not self._written or attempt == _MOST_RENEWALS:
                raise ServiceError(
                    f"the epoch {self._id} could not be written, its transaction was aborted: {self._reason}",
                    hint="start it again",
                )
            if attempt:
                time.sleep(_LOOK_SECONDS)
            self._bounded("taking over again", self._renew, patience=_RENEWAL * self._patience)

    def close(self) -> None:
        """Let the client go. The epoch stays this process's until another driver takes the stage."""
        self._calls.close()

    def _bounded(self, doing: str, call: Callable[[], _T], *, patience: float) -> _T:
        if self._fenced is not None:
            raise self._fenced  # once fenced, a client answers every call with other, misleading errors
        doing = f"{doing} the epoch {self._id}"
        try:
            return self._calls.call(call, timeout=patience + _STEP_SECONDS, doing=doing)
        except KafkaException as error:
            if error.args[0].code() in clients.FENCED:
                raise self._taken_over(error) from None
            raise clients.service_error(error, self._settings.kafka, doing) from None
        except ServiceError as error:
            raise self._taken_over(error) from None

    def _take_over(self) -> None:
        """Fence every other driver. Runs in the thread of `BoundedCalls`, as all that follows."""
        self._client = Transactional(
            self._settings.kafka,
            lambda: self._patience,
            transactional_id=self._id,
            transaction_timeout_ms=_TRANSACTION_TIMEOUT_MS,
            linger_ms=0,
        )

    def _renew(self) -> None:
        """Go on with a new client if a transaction was aborted, and if there is no newer driver.

        The new client fences every other one. So this looks for a newer driver before, and once more after,
        since one may have come meanwhile.
        """
        if self._client.spent:
            self._refuse_newer()
            self._unsure = True
            self._client.renew()
        if self._unsure:
            self._refuse_newer()
            self._unsure = False

    def _refuse_newer(self) -> None:
        holder = newest_holder(self._settings, self._stage)
        if holder is not None and holder.epoch > self.number:
            raise self._fenced_by(holder)

    def _commit(self) -> bool:
        """Commit the record of this epoch. False if another client has to do that."""
        deadline = time.monotonic() + self._patience
        # The answer to a commit that was given up may have come long ago, so it proves nothing now.
        resumed = self._open
        while not (self._client.spent or self._unsure):
            try:
                if self._aborting:
                    self._client.abort(_STEP_SECONDS)
                    self._aborting = self._open = False
                    continue
                if not self._open:
                    self._client.producer.begin_transaction()
                    self._open = self._aborting = True  # until it has its record: an empty one proves nothing
                    self._client.producer.produce(
                        self._settings.topic(own_topic(self._stage)),
                        key=_key(self._settings, self._stage),
                        value=self.holder.encode(),
                    )
                    self._aborting = False
                self._client.producer.commit_transaction(_STEP_SECONDS)
                self._open = False
                if not resumed:
                    return True
                resumed = False
            except KafkaException as error:
                if not self._passing(error.args[0]) or time.monotonic() >= deadline:
                    raise
                time.sleep(_PAUSE_SECONDS)
        return False

    def _passing(self, error: Any) -> bool:
        """Whether the error may pass."""
        if error.code() in clients.FENCED:
            return False
        if error.txn_requires_abort():
            self._aborting, self._reason = True, error.str()
            return True
        return bool(error.retriable())

    def _taken_over(self, error: Exception) -> Exception:
        """The error to raise: a FencedError if Kafka holds a newer epoch."""
        holder = self._newer(patient=isinstance(error, KafkaException))
        if holder is not None:
            return self._fenced_by(holder)
        if isinstance(error, ServiceError):
            return error
        return ServiceError(
            f"Kafka has ended the epoch {self._id}, and no newer driver has written its own yet: {error}",
            hint=(
                "either another driver is taking over, or this one stood still for longer than "
                f"{_TRANSACTION_TIMEOUT_MS / 1000:g} s: start it again if it is the only one"
            ),
        )

    def _fenced_by(self, holder: Holder) -> FencedError:
        self._fenced = FencedError(
            f"another driver has taken over {self._id}: {holder.who}, with epoch {holder.epoch}. This one"
            f" had epoch {self.number}",
            hint=(
                "the newer one goes on, and nothing is lost. Only one driver of a stage can work, so end"
                " one of the two for good (docs/operations/start-and-stop.md, 'Two drivers')"
            ),
        )
        return self._fenced

    def _newer(self, *, patient: bool) -> Holder | None:
        """The driver with a newer epoch, if there is one.

        patient: whether to wait a little for its record, which it writes soon after it has fenced this one.
        """
        deadline = time.monotonic() + (_STEP_SECONDS if patient else 0.0)
        while self.number:
            with suppress(ServiceError):
                holder = newest_holder(self._settings, self._stage)
                if holder is not None and holder.epoch > self.number:
                    return holder
            if time.monotonic() >= deadline:
                break
            time.sleep(_LOOK_SECONDS)
        return None


def _key(settings: Settings, stage: Stage) -> bytes:
    return f"spark/epoch/{settings.query.name}/{stage}".encode()
