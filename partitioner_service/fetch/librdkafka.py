"""The handle of a consumer in the librdkafka that confluent-kafka has loaded.

confluent-kafka does not hand out the handle. It is the first field behind the header of the Python object,
which no documentation promises. So it is used only with versions for which this was proven
(`topics.librdkafka.loaded.PROVEN`), and only if librdkafka itself says that the handle is a consumer with the
name of this client.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterable

import confluent_kafka
import numpy as np
from confluent_kafka import Consumer

from partitioner_service.fetch.gather import Functions
from topics.librdkafka.loaded import (
    CODE,
    POINTER,
    PROVEN,
    TEXT,
    NotProvenError,
    address_of,
    loaded_library,
    typed,
)

_HEADER = 16
"""Bytes of the header of a Python object, which are more where the interpreter has no global lock
or counts references.
"""
_FUNCTIONS = (
    "message_timestamp",
    "message_headers",
    "header_get_all",
    "message_destroy",
    "consume_batch_queue",
)
"""As of `Functions`."""
_CONSUMER = 1
"""librdkafka's number of the type of client."""


class Librdkafka:
    """Calls functions of the loaded librdkafka for one consumer. functions: addresses for kernels.

    Raises NotProvenError if it is not certain that they would be called for this consumer. client_id: of this
    consumer.
    """

    def __init__(self, consumer: Consumer, client_id: str) -> None:
        _check_object(consumer)
        self._library = library = loaded_library()
        for name, result, arguments in (
            ("rd_kafka_name", TEXT, [POINTER]),
            ("rd_kafka_type", CODE, [POINTER]),
            ("rd_kafka_queue_new", POINTER, [POINTER]),
            ("rd_kafka_queue_get_partition", POINTER, [POINTER, TEXT, ctypes.c_int32]),
            ("rd_kafka_queue_forward", None, [POINTER, POINTER]),
            ("rd_kafka_queue_destroy", None, [POINTER]),
            ("rd_kafka_message_errstr", TEXT, [POINTER]),
        ):
            typed(library, name, result, *arguments)
        self._handle = self._proven(consumer, client_id)
        self.functions = Functions(
            *(np.uint64(address_of(getattr(library, f"rd_kafka_{name}"))) for name in _FUNCTIONS)
        )

    def _proven(self, consumer: Consumer, client_id: str) -> int:
        handle = POINTER.from_address(id(consumer) + _HEADER).value
        if handle is None or self._library.rd_kafka_type(handle) != _CONSUMER:
            raise NotProvenError("there is no consumer behind the header of its object")
        name = self._library.rd_kafka_name(handle).decode(errors="replace")
        if not re.fullmatch(re.escape(client_id) + r"#consumer-\d+", name):
            raise NotProvenError(f"the consumer behind the header is {name}")
        return handle

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

    def drop(self, queues: Iterable[int]) -> None:
        """Throw away what these queues hold."""
        sink = self._library.rd_kafka_queue_new(self._handle)
        for queue in queues:
            self.forward(queue, sink)
            self.forward(queue, None)
        self.let_go(sink)

    def words_of(self, message: int) -> str:
        """What librdkafka says of a message that is an error."""
        text = self._library.rd_kafka_message_errstr(message)
        return "" if text is None else text.decode(errors="replace")


def _check_object(consumer: Consumer) -> None:
    """Raise NotProvenError unless objects of this type were proven to have their handle
    where it is looked for.
    """
    if type(consumer) is not Consumer:
        raise NotProvenError("the consumer is not confluent-kafka's")
    versions = str(confluent_kafka.__version__), confluent_kafka.libversion()[0]
    if PROVEN.get(versions, Consumer.__basicsize__) != Consumer.__basicsize__:
        raise NotProvenError("confluent-kafka's consumer object has another size")
    if object.__basicsize__ != _HEADER:
        raise NotProvenError("this Python lays its objects out in another way")
