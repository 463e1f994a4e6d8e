"""Keys: XXH64 against published vectors, and the laws of the candidate family."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.keys import Buckets, bucket_of, candidate, hash_keys, salts

MASK = 2**64 - 1
P1, P2, P3, P4, P5 = (
    0x9E3779B185EBCA87,
    0xC2B2AE3D27D4EB4F,
    0x165667B19E3779F9,
    0x85EBCA77C2B2AE63,
    0x27D4EB2F165667C5,
)


def rotate(x: int, r: int) -> int:
    return ((x << r) | (x >> (64 - r))) & MASK


def step(acc: int, lane: int) -> int:
    return rotate((acc + lane * P2) & MASK, 31) * P1 & MASK


def reference_xxh64(data: bytes) -> int:
    """XXH64 with seed 0, written from the specification in plain Python integers."""
    at = 0
    if len(data) >= 32:
        v = [(P1 + P2) & MASK, P2, 0, -P1 & MASK]
        while at + 32 <= len(data):
            for j in range(4):
                v[j] = step(v[j], int.from_bytes(data[at + 8 * j : at + 8 * j + 8], "little"))
            at += 32
        acc = (rotate(v[0], 1) + rotate(v[1], 7) + rotate(v[2], 12) + rotate(v[3], 18)) & MASK
        for lane in v:
            acc = ((acc ^ step(0, lane)) * P1 + P4) & MASK
    else:
        acc = P5
    acc = (acc + len(data)) & MASK
    while at + 8 <= len(data):
        acc = (rotate(acc ^ step(0, int.from_bytes(data[at : at + 8], "little")), 27) * P1 + P4) & MASK
        at += 8
    if at + 4 <= len(data):
        acc = (rotate(acc ^ (int.from_bytes(data[at : at + 4], "little") * P1 & MASK), 23) * P2 + P3) & MASK
        at += 4
    for byte in data[at:]:
        acc = rotate(acc ^ (byte * P5 & MASK), 11) * P1 & MASK
    acc = (acc ^ (acc >> 33)) * P2 & MASK
    acc = (acc ^ (acc >> 29)) * P3 & MASK
    return acc ^ (acc >> 32)


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (b"", 0xEF46DB3751D8E999),
        (b"a", 0xD24EC4F1A98C6E5B),
        (b"abc", 0x44BC2CF5AD770999),
        (b"Nobody inspects the spammish repetition", 0xFBCEA83C8A378BF1),
    ],
)
def test_hashes_equal_the_published_xxh64_vectors(key: bytes, expected: int) -> None:
    assert int(hash_keys(pa.array([key], pa.binary()))[0]) == expected


@given(st.lists(st.binary(max_size=100), max_size=20))
def test_hashes_equal_the_specification_at_every_length(keys: list[bytes]) -> None:
    assert hash_keys(pa.array(keys, pa.binary())).tolist() == [reference_xxh64(key) for key in keys]


@given(st.lists(st.text(max_size=20), max_size=20), st.integers(0, 20), st.integers(0, 20))
def test_every_arrow_form_of_the_same_keys_hashes_alike(keys: list[str], start: int, length: int) -> None:
    raw = [key.encode() for key in keys]
    expected = hash_keys(pa.array(raw, pa.binary()))
    forms = [
        pa.array(raw, pa.large_binary()),
        pa.array(keys, pa.string()),
        pa.array(keys, pa.large_string()),
        pa.array(keys, pa.string()).dictionary_encode(),
        pa.chunked_array([pa.array(keys[:3], pa.string()), pa.array(keys[3:], pa.string())]),
    ]
    for form in forms:
        assert hash_keys(form).tolist() == expected.tolist()
        assert hash_keys(form.slice(start, length)).tolist() == expected[start : start + length].tolist()


def test_a_one_megabyte_key_hashes() -> None:
    key = bytes(range(256)) * 4096
    assert int(hash_keys(pa.array([key], pa.binary()))[0]) == reference_xxh64(key)


@pytest.mark.parametrize("keys", [pa.array([b"a", None]), pa.array(["a", None]).dictionary_encode()])
def test_a_null_key_is_refused(keys: pa.Array) -> None:
    with pytest.raises(ValueError, match="1 of 2 keys are null"):
        hash_keys(keys)


@given(st.integers(1, 2000), st.integers(1, 50), st.integers(-(2**63), 2**64 - 1))
def test_candidates_are_in_range_and_equal_the_formula(n: int, i: int, seed: int) -> None:
    def mix(x: int) -> int:
        x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & MASK
        x = (x ^ (x >> 27)) * 0x94D049BB133111EB & MASK
        return x ^ (x >> 31)

    golden = 0x9E3779B97F4A7C15
    salt = mix((mix((seed + golden) & MASK) + i * golden) & MASK)
    hashes = np.array([0, 1, 2**63, 2**64 - 1, 12345678901234567890], np.uint64)
    assert candidate(hashes, i, n, seed).tolist() == [mix(int(h) ^ salt) % n for h in hashes]
    assert int(salts(seed, 1, first=i)[0]) == salt


def chi_square(cells: np.ndarray) -> float:
    return float(((cells - cells.mean()) ** 2).sum() / cells.mean())


@pytest.mark.parametrize("n", [2, 7, 64])
def test_candidates_and_buckets_are_uniform_and_independent(n: int) -> None:
    hashes = np.arange(200_000, dtype=np.uint64)
    draws = [candidate(hashes, i, n, 7) for i in (1, 2, 3)] + [
        bucket_of(hashes, n),
        candidate(hashes, 1, n, 8),
    ]
    for a in range(len(draws)):
        for b in range(a):
            cells = np.bincount(draws[a].astype(np.int64) * n + draws[b], minlength=n * n)
            dof = n * n - 1
            assert chi_square(cells) < dof + 6 * np.sqrt(2 * dof)


def test_impossible_candidates_and_buckets_are_refused() -> None:
    hashes = np.zeros(1, np.uint64)
    for bad in (
        lambda: candidate(hashes, 0, 4, 7),
        lambda: candidate(hashes, 1, 0, 7),
        lambda: bucket_of(hashes, 0),
    ):
        with pytest.raises(ValueError, match=r"at least 1|from 1"):
            bad()


GOLDEN_F1 = [32, 2, 31, 58, 63]
GOLDEN_BUCKETS = [53, 28, 27, 20, 13]


def test_buckets_and_candidates_never_change_between_releases() -> None:
    hashes = hash_keys(pa.array([b"AA", b"UA", b"DL", b"", b"N12345"], pa.binary()))
    assert candidate(hashes, 1, 64, 7).tolist() == GOLDEN_F1
    assert bucket_of(hashes, 64).tolist() == GOLDEN_BUCKETS


@pytest.mark.parametrize(("workers", "buckets"), [(8, 8), (8, 4), (12, 3), (1, 1)])
def test_with_forwarding_a_worker_is_the_home_of_the_keys_of_one_bucket(workers: int, buckets: int) -> None:
    hashes = np.arange(10_000, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    homes = candidate(hashes, 1, workers, 7)
    assert bucket_of(hashes, buckets, forwarding_seed=7).tolist() == (homes % buckets).tolist()
    assert Buckets(buckets, 7).of(hashes).tolist() == (homes % buckets).tolist()
    assert Buckets(buckets).of(hashes).tolist() == bucket_of(hashes, buckets).tolist()


def test_kernels_run_when_no_cache_folder_is_writable(tmp_path: Path) -> None:
    """A container with a read-only root and no home: importing must not fail."""
    blocked = tmp_path / "file"
    blocked.write_text("")
    env = os.environ | {"NUMBA_CACHE_DIR": str(blocked / "x"), "XDG_CACHE_HOME": str(blocked / "y")}
    script = (
        "from numba.core import caching\n"
        "caching.CacheImpl._locator_classes = [caching.UserProvidedCacheLocator]\n"
        "from evenflow.keys import candidate\n"
        "import numpy as np\n"
        "print(int(candidate(np.zeros(1, np.uint64), 1, 1, 7)[0]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], env=env, capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "0", done.stderr
