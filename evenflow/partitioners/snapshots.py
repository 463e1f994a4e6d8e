"""How a partitioner's state is stored: named arrays and a header,
as an Arrow IPC stream of one row and its SHA-256.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evenflow.errors import IncompatibleStateError
from evenflow.numeric.arrays import State
from evenflow.text.strict_json import read_object

VERSION = 1
OTHER_TYPES = (LookupError, TypeError, ValueError, AttributeError, OverflowError)
"""The errors that come up when a header lacks fields or has fields of other types than ours."""
_DIGEST_BYTES = 32
_METADATA_KEY = b"evenflow-partitioner"
_MOST_HEADER_BYTES = 1_000_000


def pack(header: Mapping[str, Any], state: State) -> bytes:
    """The header and the arrays as bytes: an Arrow stream, followed by its SHA-256.

    The digest is checked before Arrow reads the stream, because Arrow's reader crashes the process on some
    damaged streams.
    """
    columns = []
    # One row: each array is one flat list, whatever its shape. The shapes are in the header.
    for array in state.values():
        flat = pa.array(np.ascontiguousarray(array).ravel())
        columns.append(pa.LargeListArray.from_arrays(pa.array([0, len(flat)], pa.int64()), flat))
    shapes = {name: array.shape for name, array in state.items()}
    body = {**header, "shapes": shapes}
    batch = pa.record_batch(columns, names=list(state))
    batch = batch.replace_schema_metadata({_METADATA_KEY: json.dumps(body, sort_keys=True).encode()})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    stream = sink.getvalue().to_pybytes()
    return stream + hashlib.sha256(stream).digest()


def unpack(snapshot: bytes) -> tuple[dict[str, Any], State]:
    """Header and state of a snapshot. IncompatibleStateError says why a snapshot cannot be used."""
    stream, digest = snapshot[:-_DIGEST_BYTES], snapshot[-_DIGEST_BYTES:]
    if hashlib.sha256(stream).digest() != digest:
        raise IncompatibleStateError("this is no partitioner snapshot, or a damaged one: its digest is wrong")
    try:
        with pa.ipc.open_stream(stream) as reader:
            header = read_object(
                reader.schema.metadata[_METADATA_KEY], most_bytes=_MOST_HEADER_BYTES, depth=8
            ).fields
            batch = reader.read_next_batch()
        version = header["version"]
        if version == VERSION:
            return header, {name: _array(batch, name, shape) for name, shape in header["shapes"].items()}
    except (pa.ArrowException, *OTHER_TYPES, StopIteration) as error:
        raise IncompatibleStateError(f"this is no partitioner snapshot: {error!r}") from None
    raise IncompatibleStateError(
        f"the snapshot has format {version}; this evenflow reads format {VERSION}",
        hint="restore it with the evenflow that wrote it, or start from an empty state",
    )


def _array(batch: pa.RecordBatch, name: str, shape: list[int]) -> npt.NDArray[Any]:
    values = batch.column(name)[0].values.to_numpy(zero_copy_only=False)
    array: npt.NDArray[Any] = values.reshape(shape).copy()
    return array


def misfit(name: str, problem: str) -> IncompatibleStateError:
    """The error of a snapshot that does not fit the partitioner of this name."""
    return IncompatibleStateError(
        f"the snapshot does not fit the {name} of this evenflow: {problem}",
        hint="restore it with the evenflow that wrote it, or start from an empty state",
    )


def check_arrays(name: str, arrays: State, expected: State, variable: Mapping[str, tuple[str, ...]]) -> None:
    """IncompatibleStateError unless the arrays are as this version writes them,
    because kernels do not check bounds.

    `variable`: for each array whose size depends on the stream, a word for each dimension. Dimensions with
    the same word must have the same length. A dimension without a word must have the length that it has in
    `expected`.
    """
    if arrays.keys() != expected.keys():
        differing = sorted(arrays.keys() ^ expected.keys())
        raise misfit(name, f"it differs in the arrays {', '.join(differing)}")
    lengths: dict[str, int] = {}
    for field, mine in expected.items():
        array = arrays[field]
        if array.dtype != mine.dtype:
            raise misfit(name, f"array {field} is of {array.dtype}, not {mine.dtype}")
        words = variable.get(field, ("",) * mine.ndim)
        sizes = mine.shape
        if array.ndim == mine.ndim:
            # The first array with a word sets the length that all later ones must have.
            pairs = zip(words, array.shape, mine.shape, strict=True)
            sizes = tuple(lengths.setdefault(w, length) if w else own for w, length, own in pairs)
        if array.shape != sizes:
            raise misfit(name, f"array {field} has the shape {array.shape}, not {sizes}")
