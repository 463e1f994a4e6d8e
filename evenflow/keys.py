"""Keys: one 64-bit hash per key (XXH64), and the family F_1, F_2, ... of candidates made from it.

This file decides what must agree across processes, machines and releases: which worker a key goes to, and
which reduce bucket merges it. Python's `hash()` is salted per process, so it is never used.

    h      = XXH64(key bytes, seed 0)
    m_i    = mix64(mix64(seed + G) + i * G)        salt i of the family of `seed` (G: golden ratio)
    F_i(h) = mix64(h ^ m_i) mod n                  unsigned modulo, i = 1, 2, ...

All partitioners share the family, so their candidates nest: hashing is F_1, pkg chooses from F_1 and F_2, and
d-choices from F_1..F_d. F_i(h) = F_j(h) happens with probability 1/n. Such candidates are kept, as the
papers' analyses assume. `bucket_of` takes salt 0 of the family of seed 0, so it is independent of every
partitioner's candidates. With forwarding it takes F_1 of the partitioner's seed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from evenflow.numeric.arrays import Int32s, Int64s, UInt8s, UInt64s, Whole, viewed
from evenflow.numeric.columns import Keys, key_column
from evenflow.numeric.kernels import inlined, kernel
from evenflow.numeric.words import mix64, read64, rotate

# The five primes of XXH64, from its specification.
_P1 = np.uint64(0x9E3779B185EBCA87)
_P2 = np.uint64(0xC2B2AE3D27D4EB4F)
_P3 = np.uint64(0x165667B19E3779F9)
_P4 = np.uint64(0x85EBCA77C2B2AE63)
_P5 = np.uint64(0x27D4EB2F165667C5)
_HALF = np.uint64(32)
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
"""2^64 / the golden ratio, made odd. Its multiples are spread evenly over the 64-bit words."""


@kernel
def _read32(data: UInt8s, at: Whole) -> np.uint64:
    word = np.uint64(0)
    for byte in range(4):
        word |= np.uint64(data[at + byte]) << np.uint64(8 * byte)
    return word


@inlined
def _round(acc: np.uint64, lane: np.uint64) -> np.uint64:
    return rotate(acc + lane * _P2, 31) * _P1


@inlined
def _merge(acc: np.uint64, lane: np.uint64) -> np.uint64:
    return (acc ^ _round(np.uint64(0), lane)) * _P1 + _P4


@kernel
def _xxh64(data: UInt8s, start: Whole, end: Whole) -> np.uint64:
    """XXH64 with seed 0 of the bytes start..end-1, after its specification."""
    at = start
    length = np.uint64(end - start)
    if end - start >= 32:
        v1, v2, v3, v4 = _P1 + _P2, _P2, np.uint64(0), np.uint64(0) - _P1
        while at + 32 <= end:
            v1 = _round(v1, read64(data, at))
            v2 = _round(v2, read64(data, at + 8))
            v3 = _round(v3, read64(data, at + 16))
            v4 = _round(v4, read64(data, at + 24))
            at += 32
        acc = rotate(v1, 1) + rotate(v2, 7) + rotate(v3, 12) + rotate(v4, 18)
        acc = _merge(_merge(_merge(_merge(acc, v1), v2), v3), v4)
    else:
        acc = _P5
    acc += length
    # What is left of the key: words of 8 bytes, then one of 4, then single bytes.
    while at + 8 <= end:
        acc = rotate(acc ^ _round(np.uint64(0), read64(data, at)), 27) * _P1 + _P4
        at += 8
    if at + 4 <= end:
        acc = rotate(acc ^ (_read32(data, at) * _P1), 23) * _P2 + _P3
        at += 4
    while at < end:
        acc = rotate(acc ^ (np.uint64(data[at]) * _P5), 11) * _P1
        at += 1
    acc ^= acc >> np.uint64(33)
    acc *= _P2
    acc ^= acc >> np.uint64(29)
    acc *= _P3
    return acc ^ (acc >> np.uint64(32))


@kernel
def _hash_all(offsets: Int64s, data: UInt8s, out: UInt64s) -> None:
    for row in range(out.shape[0]):
        out[row] = _xxh64(data, np.int64(offsets[row]), np.int64(offsets[row + 1]))


def hash_keys(keys: Keys) -> UInt64s:
    """XXH64 (seed 0) of the bytes of each key, shape (n,). `Partitioner.assign` takes these hashes.

    keys: text, bytes or whole numbers, as a list, a numpy or Arrow array (also chunked or dictionary-encoded)
    or a pandas series. As in the pipeline, text hashes as its UTF-8 bytes and a whole number as its decimal
    text. So 8, "8" and b"8" are one key, and library and pipeline send it to the same worker. (numpy drops
    NUL bytes at the end of its S and U strings, so give such keys as a list.) Raises ValueError for a null
    key, TypeError for other types and for mixtures.

    >>> hash_keys(["a", "b"])
    array([15154266338359012955,  8666379929374662555], dtype=uint64)
    >>> hash_keys([8]) == hash_keys(["8"])
    array([ True])
    """
    keys = key_column(keys)
    if keys.null_count:
        raise ValueError(f"{keys.null_count} of {len(keys)} keys are null: a tuple without key has no worker")
    if isinstance(keys, pa.ChunkedArray):
        parts = [hash_keys(chunk) for chunk in keys.chunks]
        return np.concatenate(parts) if parts else np.empty(0, np.uint64)
    if isinstance(keys, pa.DictionaryArray):
        if keys.dictionary.null_count:
            # A null of the dictionary may never be used. Only the decoded keys show it.
            return hash_keys(keys.dictionary_decode())
        return hash_keys(keys.dictionary)[keys.indices.to_numpy(zero_copy_only=False)]
    wide = pa.types.is_large_binary(keys.type) or pa.types.is_large_string(keys.type)
    if not (wide or pa.types.is_binary(keys.type) or pa.types.is_string(keys.type)):
        raise TypeError(f"keys must be text, bytes or whole numbers, not {keys.type}")
    out = np.empty(len(keys), np.uint64)
    if len(keys) == 0:
        return out
    # The kernel reads Arrow's buffers without a copy. A sliced array starts at `keys.offset` within them.
    _, offset_buffer, data_buffer = keys.buffers()
    data = viewed(data_buffer, np.uint8, 0, data_buffer.size if data_buffer is not None else 0)
    offsets = viewed(offset_buffer, np.int64 if wide else np.int32, keys.offset, len(keys) + 1)
    _hash_all(offsets, data, out)
    return out


@inlined
def first_slot(key: np.uint64, mask: np.int64) -> np.int64:
    """The slot at which probing for a key begins, in a hash table of mask + 1 slots. That is a power of
    two up to 2^32.
    """
    return np.int64((key * GOLDEN) >> _HALF) & mask


@inlined
def salt_kernel(seed: np.uint64, i: np.uint64) -> np.uint64:
    """Salt m_i of the family of `seed` (both uint64). For use inside kernels."""
    return mix64(mix64(seed + GOLDEN) + i * GOLDEN)


@inlined
def candidate_kernel(key: np.uint64, salt: np.uint64, workers: np.uint64) -> np.int64:
    """F_i(key) by its salt m_i. All arguments uint64. For use inside kernels."""
    return np.int64(mix64(key ^ salt) % workers)


@kernel
def _salts(seed: np.uint64, first: int, out: UInt64s) -> None:
    for j in range(out.shape[0]):
        out[j] = salt_kernel(seed, np.uint64(first + j))


@kernel
def _candidates(keys: UInt64s, salt: np.uint64, workers: np.uint64, out: Int32s) -> None:
    for row in range(keys.shape[0]):
        out[row] = candidate_kernel(keys[row], salt, workers)


# Salts in use: 0 for reduce buckets, 1, 2, ... for candidates and Count-Min, from 2^32 on for generators
# (`draws`), from 2^40 on for the cells of `evenflow`, from 2^41 on for rings of consistent hashing.
def salts(seed: int, count: int, *, first: int = 1) -> UInt64s:
    """The salts m_first, m_first+1, ..., shape (count,). Kernels pass them to `candidate_kernel`."""
    out = np.empty(count, np.uint64)
    _salts(np.uint64(seed % 2**64), first, out)
    return out


@kernel
def same_bytes(data: UInt8s, start: Whole, others: UInt8s, other: Whole, length: Whole) -> bool:
    """Whether `length` bytes are equal: those of `data` from `start` on,
    and those of `others` from `other` on.
    """
    at = np.int64(0)
    while at < length and data[start + at] == others[other + at]:
        at += 1
    return at == length


class Candidates(NamedTuple):
    """The functions F_1, F_2, ... over so many workers: what kernels take as one argument."""

    family: UInt64s
    """The salts of the functions."""
    workers: np.uint64
    """Candidates are the workers 0 .. workers-1."""


def candidates(seed: int, count: int, workers: int) -> Candidates:
    """F_1 .. F_count over `workers` workers, for kernels."""
    return Candidates(salts(seed, count), np.uint64(workers))


def candidate(hashes: UInt64s, i: int, n: int, seed: int) -> Int32s:
    """F_i of every hash, in 0..n-1, shape (m,). i = 1, 2, .... ValueError for i or n below 1."""
    if i < 1 or n < 1:
        raise ValueError(f"F_{i} over {n} workers: candidates are counted from 1 and need a worker")
    out = np.empty(len(hashes), np.int32)
    _candidates(hashes, salts(seed, 1, first=i)[0], np.uint64(n), out)
    return out


def workers_of(key: int, among: Candidates) -> list[int]:
    """F_1(key), F_2(key), ... of the family, in this order. A worker may occur twice."""
    hashes, out = np.array([key], np.uint64), np.empty((len(among.family), 1), np.int32)
    for salt, row in zip(among.family, out, strict=True):
        _candidates(hashes, salt, among.workers, row)
    workers: list[int] = out[:, 0].tolist()
    return workers


def bucket_of(hashes: UInt64s, buckets: int, *, forwarding_seed: int | None = None) -> Int32s:
    """The reduce bucket of every hash, in 0..buckets-1, shape (m,).
    It is independent of every F_i of every seed.

    forwarding_seed: take F_1 of the family of this seed instead, over the buckets. Where the number of
    workers is a multiple of the number of buckets, the keys whose F_1 is worker w are in bucket
    w mod `buckets`.
    ValueError for less than one bucket.
    """
    if buckets < 1:
        raise ValueError(f"{buckets} reduce buckets: at least 1 is needed")
    if forwarding_seed is not None:
        return candidate(hashes, 1, buckets, forwarding_seed)
    out = np.empty(len(hashes), np.int32)
    _candidates(hashes, salts(0, 1, first=0)[0], np.uint64(buckets), out)
    return out


class Buckets(NamedTuple):
    """The reduce buckets of a query, and how keys are divided among them."""

    number: int
    """How many there are."""
    forwarding_seed: int | None = None
    """With forwarding, the seed of the family whose F_1 is the bucket. None: a hash of its own."""

    def of(self, hashes: UInt64s) -> Int32s:
        """The bucket of every hash, as `bucket_of` gives it, shape (m,)."""
        return bucket_of(hashes, self.number, forwarding_seed=self.forwarding_seed)
