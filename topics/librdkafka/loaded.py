"""The shared library of librdkafka that confluent-kafka brings, and the versions that were proven.

evenflow calls librdkafka's public functions, and its kernels read and write structures of its public header.
Both are used only with versions for which tests have shown that they do what is expected here.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import confluent_kafka

PROVEN: Mapping[tuple[str, str], int] = {("2.16.1", "2.16.0"): 176}
"""Versions of confluent-kafka and of its librdkafka -> the size (bytes) of confluent-kafka's consumer object.

A version that is added here is proven by the tests of `producers/writers.py`, `topics/librdkafka` and
`partitioner_service/fetch`, together with the pipeline tests that use `either_reading` or `either_sending`.
"""
TEXT, POINTER, CODE, SIZE = ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t
"""Types of what librdkafka's functions take and return."""


class NotProvenError(Exception):
    """It is not certain that librdkafka would do what is expected. The text says why."""


def loaded_library() -> Any:
    """The library, in which no function has a type yet. Raises NotProvenError unless its version was proven
    on a machine and a Python such as these.
    """
    version, own = str(confluent_kafka.__version__), confluent_kafka.libversion()[0]
    if (version, own) not in PROVEN:
        raise NotProvenError(f"confluent-kafka {version} with librdkafka {own} was not proven for it")
    pointer = ctypes.sizeof(POINTER)
    if sys.implementation.name != "cpython" or sys.byteorder != "little" or pointer != 8:
        raise NotProvenError("this Python or this machine is of another kind than those that were proven")
    library: Any = ctypes.CDLL(str(library_path()))
    loaded = typed(library, "rd_kafka_version_str", TEXT)().decode()
    if loaded != own:
        raise NotProvenError(f"the library beside confluent-kafka is librdkafka {loaded}")
    return library


def typed(library: Any, name: str, result: Any, *arguments: Any) -> Any:
    """The function of this name, with the types of its result and of its arguments."""
    function = getattr(library, name)
    function.restype, function.argtypes = result, list(arguments)
    return function


def address_of(function: Any) -> int:
    """Where the function begins, for a kernel to call."""
    return ctypes.cast(function, POINTER).value or 0


def library_path() -> Path:
    """The librdkafka that the wheel of confluent-kafka brings. Raises NotProvenError if it brings none."""
    package = Path(confluent_kafka.__file__).parent
    libraries: Sequence[Path] = [
        *package.parent.glob("confluent_kafka.libs/librdkafka*.so*"),
        *package.glob(".dylibs/librdkafka*.dylib"),
    ]
    if len(libraries) != 1:
        raise NotProvenError("confluent-kafka was not installed from its wheel")
    return libraries[0]
