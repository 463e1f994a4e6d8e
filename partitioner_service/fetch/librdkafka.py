"""The librdkafka that confluent-kafka has loaded, and the handle of a consumer in it.

confluent-kafka does not hand out the handle. It is the first field behind the header of the Python object,
which no documentation promises. So it is used only with versions for which this was proven (`PROVEN`), and
only if librdkafka itself says that the handle is a consumer with the name of this client.
"""

from __future__ import annotations

import ctypes
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import confluent_kafka
import numpy as np
from confluent_kafka import Consumer

from partitioner_service.fetch.gather import Functions

PROVEN = frozenset({("2.16.1", "2.16.0", 176)})
"""Versions of confluent-kafka and of its librdkafka, and the size (bytes) of its consumer object.

The tests of this room prove a version that is added here, together with the pipeline tests that use
`either_reading`.
"""
_HEADER = 16
"""Bytes of the header of a Python object, which are more where the interpreter has no global lock
or counts references.
"""
_CONSUMER = 1
"""librdkafka's number of the type of client."""


class NotProvenError(Exception):
    """The handle of a consumer is not known for certain. The text says why."""


class Librdkafka:
    """Calls functions of the loaded librdkafka for one consumer. functions: addresses for kernels.

    Raises NotProvenError if it is not certain that they would be called for this consumer. client_id: of this
    consumer.
    """

    def __init__(self, consumer: Consumer, client_id: str) -> None:
        _check_versions(consumer)
        self._library = library = ctypes.CDLL(str(_path()))
        text, handle, code = ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int
        for name, result, arguments in (
            ("rd_kafka_version_str", text, []),
            ("rd_kafka_name", text, [handle]),
            ("rd_kafka_type", code, [handle]),
            ("rd_kafka_queue_new", handle, [handle]),
            ("rd_kafka_queue_get_partition", handle, [handle, text, ctypes.c_int32]),
            ("rd_kafka_queue_forward", None, [handle, handle]),
            ("rd_kafka_queue_destroy", None, [handle]),
            ("rd_kafka_message_errstr", text, [handle]),
            ("rd_kafka_consume_batch_queue", ctypes.c_ssize_t, [handle, code, handle, ctypes.c_size_t]),
        ):
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
        self._handle = self._proven(consumer, client_id)
        self.functions = Functions(
            *(
                np.uint64(ctypes.cast(getattr(library, f"rd_kafka_{name}"), handle).value or 0)
                for name in ("message_timestamp", "message_headers", "header_get_all", "message_destroy")
            )
        )

    def _proven(self, consumer: Consumer, client_id: str) -> int:
        loaded = self._library.rd_kafka_version_str().decode()
        if loaded != confluent_kafka.libversion()[0]:
            raise NotProvenError(f"the library beside confluent-kafka is librdkafka {loaded}")
        handle = ctypes.c_void_p.from_address(id(consumer) + _HEADER).value
        if handle is None or self._library.rd_kafka_type(handle) != _CONSUMER:
            raise NotProvenError("there is no consumer behind the header of its object")
        name = self._library.rd_kafka_name(handle).decode(errors="replace")
        if not re.fullmatch(re.escape(client_id) + r"#consumer-\d+", name):
            raise NotProvenError(f"the consumer behind the header is {name}")
        return handle

    def queue(self) -> int:
        """A new queue."""
        return self._library.rd_kafka_queue_new(self._handle)

    def queue_of(self, topic: str, partition: int) -> int:
        """A reference to the queue of a partition.
        It outlives assignments, and must be let go before the consumer.
        """
        return self._library.rd_kafka_queue_get_partition(self._handle, topic.encode(), partition)

    def forward(self, queue: int, to: int | None) -> None:
        """What the first queue holds, and what comes to it from now on, goes to the second one.
        None: it stays.
        """
        self._library.rd_kafka_queue_forward(queue, to)

    def let_go(self, queue: int) -> None:
        """Give a reference to a queue back."""
        self._library.rd_kafka_queue_destroy(queue)

    def take(self, queue: int, messages: Any, timeout: float) -> int:
        """Fill the array with messages of this queue, and wait up to `timeout` (s) until it is full. Returns
        how many came.

        messages: uint64, pointers to the messages, which have to be destroyed.
        """
        count = self._library.rd_kafka_consume_batch_queue(
            queue, round(timeout * 1000), messages.ctypes.data, len(messages)
        )
        return max(0, int(count))

    def words_of(self, message: int) -> str:
        """What librdkafka says of a message that is an error."""
        text = self._library.rd_kafka_message_errstr(message)
        return "" if text is None else text.decode(errors="replace")


def _check_versions(consumer: Consumer) -> None:
    """Raise NotProvenError unless objects of this type were proven to have their handle
    where it is looked for.
    """
    if type(consumer) is not Consumer:
        raise NotProvenError("the consumer is not confluent-kafka's")
    versions = str(confluent_kafka.__version__), confluent_kafka.libversion()[0], Consumer.__basicsize__
    if versions not in PROVEN:
        raise NotProvenError(
            f"confluent-kafka {versions[0]} with librdkafka {versions[1]} was not proven for it"
        )
    pointer = ctypes.sizeof(ctypes.c_void_p)
    if sys.implementation.name != "cpython" or object.__basicsize__ != _HEADER or pointer != 8:
        raise NotProvenError("this Python lays its objects out in another way")


def _path() -> Path:
    """The librdkafka that the wheel of confluent-kafka brings. Raises NotProvenError if it brings none."""
    package = Path(confluent_kafka.__file__).parent
    libraries: Sequence[Path] = [
        *package.parent.glob("confluent_kafka.libs/librdkafka*.so*"),
        *package.glob(".dylibs/librdkafka*.dylib"),
    ]
    if len(libraries) != 1:
        raise NotProvenError("confluent-kafka was not installed from its wheel")
    return libraries[0]
