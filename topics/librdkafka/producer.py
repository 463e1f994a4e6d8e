"""A producer that takes records from arrays: a client of librdkafka's own, without confluent-kafka's object.

It has the settings of a confluent-kafka client, and the methods of one as far as evenflow needs them. Only
librdkafka's public functions are called. Nothing calls back: failures of records, errors of the client and
lines for the log come as events of one queue, which `poll` and `flush` read. librdkafka reports only records
that have failed, so Python has no work for a record that is delivered.

Whatever needs confluent-kafka's own callbacks (tokens of OAUTHBEARER, plugins, functions among the settings)
is refused with NotProvenError. Such a producer has to be confluent-kafka's.
"""

from __future__ import annotations

import ctypes
import logging
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException

from evenflow.numeric.arrays import Int32s, Int64s, UInt64s
from evenflow.settings import KafkaSettings
from topics.clients import producer_of
from topics.librdkafka.hand_over import Strings, arguments_of, hand_over, read_failures
from topics.librdkafka.loaded import (
    CODE,
    POINTER,
    SIZE,
    TEXT,
    NotProvenError,
    address_of,
    loaded_library,
    typed,
)

OnFailure = Callable[[int, int, KafkaError], None]
"""Called with a partition, a number of records, and why these records of it were not delivered."""

_PRODUCER = 0
"""librdkafka's number of the type of client."""
_DELIVERIES, _LOG, _ERROR = 0x1, 0x4, 0x8
"""librdkafka's numbers of events."""
_QUEUED, _IN_FLIGHT = 0x1, 0x2
"""Which records are given up."""
_FLUSH_STEP_MS = 50
"""So long librdkafka waits at most before its events are read."""
_LEVELS = (50, 50, 50, 40, 30, 20, 20, 10)
"""Python's levels of the log, by syslog's, as confluent-kafka has them."""
_FUNCTIONS: Mapping[str, tuple[Any, list[Any]]] = {
    "conf_new": (POINTER, []),
    "conf_set": (CODE, [POINTER, TEXT, TEXT, TEXT, SIZE]),
    "conf_set_events": (None, [POINTER, CODE]),
    "conf_destroy": (None, [POINTER]),
    "new": (POINTER, [CODE, POINTER, TEXT, SIZE]),
    "destroy": (None, [POINTER]),
    "name": (TEXT, [POINTER]),
    "set_log_queue": (CODE, [POINTER, POINTER]),
    "queue_get_main": (POINTER, [POINTER]),
    "queue_poll": (POINTER, [POINTER, CODE]),
    "queue_destroy": (None, [POINTER]),
    "topic_new": (POINTER, [POINTER, TEXT, POINTER]),
    "topic_destroy": (None, [POINTER]),
    "metadata": (CODE, [POINTER, CODE, POINTER, POINTER, CODE]),
    "metadata_destroy": (None, [POINTER]),
    "produceva": (POINTER, [POINTER, POINTER, SIZE]),
    "error_code": (CODE, [POINTER]),
    "error_destroy": (None, [POINTER]),
    "event_type": (CODE, [POINTER]),
    "event_destroy": (None, [POINTER]),
    "event_error": (CODE, [POINTER]),
    "event_error_string": (TEXT, [POINTER]),
    "event_error_is_fatal": (CODE, [POINTER]),
    "event_log": (CODE, [POINTER, POINTER, POINTER, POINTER]),
    "event_message_count": (SIZE, [POINTER]),
    "event_message_array": (SIZE, [POINTER, POINTER, SIZE]),
    "outq_len": (CODE, [POINTER]),
    "flush": (CODE, [POINTER, CODE]),
    "purge": (CODE, [POINTER, CODE]),
}
"""Functions of librdkafka's public header, without `rd_kafka_`: type of the result, types of arguments."""


class Handover(NamedTuple):
    """What became of some records."""

    accepted: int
    """How many of them, from the first one on, were taken."""
    refusal: KafkaError | None
    """Why the one behind these was not. None if all were taken."""


class ArrayProducer:
    """A producer of one topic, for one thread. config: as of a confluent-kafka client, with `error_cb` and
    `logger`.

    Raises NotProvenError where confluent-kafka is needed, KafkaException if librdkafka refuses a setting.
    failed: is called by `poll` and `flush` for records that were not delivered. What `error_cb` raises, they
    raise.
    """

    def __init__(self, config: Mapping[str, Any], *, topic: str, failed: OnFailure) -> None:
        settings = _settings(config)
        self._library = _Functions(loaded_library())
        self._tell: Callable[[KafkaError], None] = config.get("error_cb") or (lambda error: None)
        self._log: logging.Logger = config.get("logger") or logging.getLogger(__name__)
        self._failed = failed
        self._handle = _new_client(self._library, settings)
        self._queue = self._library.queue_get_main(self._handle)
        self._library.set_log_queue(self._handle, None)  # None: the main one
        self._topic = self._library.topic_new(self._handle, topic.encode(), None)
        if not self._topic:
            self._library.queue_destroy(self._queue)
            self._library.destroy(self._handle)
            raise KafkaException(KafkaError(KafkaError._INVALID_ARG, f"{topic!r} is no name of a topic"))
        self._close = weakref.finalize(self, _close, self._library, self._handle, self._queue, self._topic)
        self._close.atexit = False  # the process ends its threads
        self._name = self._library.name(self._handle).decode(errors="replace")
        self._produceva = np.uint64(address_of(self._library.produceva))
        self._arguments = arguments_of(self._topic)

    def list_topics(self, timeout: float) -> None:
        """Prove that a broker answers within `timeout` (s). Raises KafkaException if none does."""
        answer = POINTER()
        code = self._library.metadata(self._open(), 0, None, ctypes.byref(answer), _ms(timeout))
        if code:
            raise KafkaException(KafkaError(code))
        self._library.metadata_destroy(answer)

    def hand_over(
        self, values: pa.LargeBinaryArray, keys: pa.LargeBinaryArray, partitions: Int32s, times: Int64s
    ) -> Handover:
        """Hand n records over in order, up to the first that is refused. A null is a record without a value,
        or without a key.

        partitions, times (ms since 1970): shape (n,). A full queue is a refusal, `KafkaError._QUEUE_FULL`.
        Raises ValueError for columns of another type or of different lengths: the kernel checks no bounds.
        """
        if {values.type, keys.type} != {pa.large_binary()}:
            raise ValueError(f"values and keys are large_binary, not {values.type} and {keys.type}")
        if len({len(values), len(keys), len(partitions), len(times)}) != 1:
            raise ValueError("values, keys, partitions and times are of different lengths")
        flat, error = self._arguments.reshape(-1), np.zeros(1, np.uint64)
        count = hand_over(
            self._produceva,
            np.uint64(self._open()),
            flat,
            np.uint64(flat.ctypes.data),
            Strings.of(values),
            Strings.of(keys),
            _read_only(partitions, np.int32),
            _read_only(times, np.int64),
            error,
        )
        return Handover(int(count), self._refusal(int(error[0])))

    def hand_over_headers(self, partition: int, time: int, headers: Sequence[tuple[str, bytes]]) -> None:
        """Hand over one record that has headers, and neither a value nor a key. time: ms since 1970.

        Raises KafkaException if it is refused.
        """
        arguments = arguments_of(self._topic, more=len(headers))
        held = []
        arguments[2, 1], arguments[5, 1] = partition, time
        for row, (name, content) in enumerate(headers, start=6):
            held += [ctypes.create_string_buffer(name.encode()), ctypes.create_string_buffer(content)]
            arguments[row, 1:4] = ctypes.addressof(held[-2]), ctypes.addressof(held[-1]), len(content)
        error = self._library.produceva(self._open(), arguments.ctypes.data, len(arguments))
        refusal = self._refusal(error or 0)
        if refusal is not None:
            raise KafkaException(refusal)

    def poll(self, timeout: float) -> int:
        """Read what has happened, and wait up to `timeout` (s) for the first event. Returns the number of
        events.
        """
        self._open()
        count, event = 0, self._library.queue_poll(self._queue, _ms(timeout))
        while event:
            try:
                self._take(event)
            finally:
                self._library.event_destroy(event)
            count += 1
            event = self._library.queue_poll(self._queue, 0)
        return count

    def flush(self, timeout: float) -> int:
        """Wait up to `timeout` (s) until each record is delivered or failed. Returns how many are left."""
        deadline = time.monotonic() + timeout
        while True:
            self.poll(0)
            left = len(self)
            if not left or time.monotonic() >= deadline:
                return left
            # It reads no event by itself, as events are read from their queue.
            self._library.flush(self._open(), _FLUSH_STEP_MS)

    def purge(self) -> None:
        """Give all records up that are not delivered yet. They fail."""
        self._library.purge(self._open(), _QUEUED | _IN_FLIGHT)

    def close(self) -> None:
        """Let go of the client. Records that are not delivered are lost: call `flush` before. Any other call
        raises ValueError from then on.
        """
        self._close()

    def __len__(self) -> int:
        return int(self._library.outq_len(self._open()))

    def _open(self) -> int:
        """The client's handle. librdkafka would crash the process on one that is closed."""
        if not self._close.alive:
            raise ValueError("this producer is closed")
        return self._handle

    def _refusal(self, error: int) -> KafkaError | None:
        if not error:
            return None
        code = self._library.error_code(error)
        self._library.error_destroy(error)
        return KafkaError(code)

    def _take(self, event: int) -> None:
        kind = self._library.event_type(event)
        if kind == _DELIVERIES:
            self._take_failures(event)
        elif kind == _ERROR:
            code, text = self._library.event_error(event), self._library.event_error_string(event)
            fatal = bool(self._library.event_error_is_fatal(event))
            self._tell(KafkaError(code, (text or b"").decode(errors="replace"), fatal))
        elif kind == _LOG:
            where, line, level = TEXT(), TEXT(), CODE()
            self._library.event_log(event, *map(ctypes.byref, (where, line, level)))
            words = [(text or b"").decode(errors="replace") for text in (where.value, line.value)]
            self._log.log(_LEVELS[level.value & 7], "%s [%s] %s", words[0], self._name, words[1])

    def _take_failures(self, event: int) -> None:
        messages: UInt64s = np.zeros(self._library.event_message_count(event), np.uint64)
        count = self._library.event_message_array(event, messages.ctypes.data, len(messages))
        codes, partitions = np.zeros(count, np.int32), np.zeros(count, np.int32)
        read_failures(messages[:count], codes, partitions)
        failures = np.stack([codes, partitions])[:, codes != 0]
        kinds, counts = np.unique(failures, axis=1, return_counts=True)
        for (code, partition), number in zip(kinds.T.tolist(), counts.tolist(), strict=True):
            self._failed(partition, number, KafkaError(code))


def array_producer(kafka: KafkaSettings, topic: str, *, failed: OnFailure, **config: Any) -> ArrayProducer:
    """An idempotent producer of one topic that has reached its broker.

    failed, config: as of `ArrayProducer` and `topics.clients.producer`. Raises what these raise.
    """
    client: ArrayProducer = producer_of(kafka, partial(ArrayProducer, topic=topic, failed=failed), **config)
    return client


class _Functions:
    """librdkafka's functions as attributes, without `rd_kafka_` in their names."""

    def __init__(self, library: Any) -> None:
        for name, (result, arguments) in _FUNCTIONS.items():
            setattr(self, name, typed(library, f"rd_kafka_{name}", result, *arguments))

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"rd_kafka_{name} is not among the functions of this module")


def _settings(config: Mapping[str, Any]) -> dict[str, str]:
    """The settings as texts. Raises NotProvenError for what only confluent-kafka can do."""
    settings = {}
    for name, value in config.items():
        if name in ("error_cb", "logger"):
            continue
        token = name in ("sasl.mechanism", "sasl.mechanisms") and str(value).upper() == "OAUTHBEARER"
        if token or name == "plugin.library.paths" or not isinstance(value, str | int | float):
            raise NotProvenError(f"{name} needs confluent-kafka's own client")
        settings[name] = str(value).lower() if isinstance(value, bool) else str(value)
    return settings | {"delivery.report.only.error": "true", "log.queue": "true"}


def _new_client(library: _Functions, settings: Mapping[str, str]) -> int:
    """The handle of a new producer. Raises KafkaException if librdkafka refuses a setting."""
    words = ctypes.create_string_buffer(512)
    config = library.conf_new()
    try:
        for name, value in settings.items():
            if library.conf_set(config, name.encode(), value.encode(), words, len(words)):
                raise KafkaException(_refused_setting(words))
        library.conf_set_events(config, _DELIVERIES | _LOG | _ERROR)
        handle = library.new(_PRODUCER, config, words, len(words))
        if not handle:
            raise KafkaException(_refused_setting(words))
    except KafkaException:
        library.conf_destroy(config)  # a client that was made owns it
        raise
    return int(handle)


def _refused_setting(words: Any) -> KafkaError:
    return KafkaError(KafkaError._INVALID_ARG, words.value.decode(errors="replace"))


def _close(library: _Functions, handle: int, queue: int, topic: int) -> None:
    library.topic_destroy(topic)
    library.queue_destroy(queue)
    library.destroy(handle)


def _ms(seconds: float) -> int:
    return max(0, round(seconds * 1000))


def _read_only(numbers: Any, kind: type[np.generic]) -> Any:
    """The numbers as kernels are compiled for them, without a copy where they have this type."""
    view = np.ascontiguousarray(numbers, kind).view()
    view.flags.writeable = False
    return view
