"""What a batch grows into is known without growing it."""

from __future__ import annotations

import gzip
import tracemalloc

import cramjam
import pytest
from aiokafka.codec import snappy_encode
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from hypothesis import given
from hypothesis import strategies as st

from evenflow.settings import load_settings
from topics.bombs import bomb_in, most_grown
from topics.raw_batches import RawBatch, RawFetch, batches_of

CODECS = {"gzip": 1, "snappy": 2, "lz4": 3}
MOST = 1_000_000
texts = st.binary(max_size=200) | st.builds(
    lambda byte, n: byte * n, st.binary(max_size=3), st.integers(0, 5_000)
)


def grown(codec: str, data: bytes, most: int) -> bool:
    """Whether a batch of this compressed data counts as a bomb."""
    return bomb_in(RawBatch(7, 9, codec, bytes(61) + data), most) is not None


def compressed(codec: str, data: bytes) -> bytes:
    if codec == "gzip":
        return gzip.compress(data)
    return snappy_encode(data) if codec == "snappy" else bytes(cramjam.lz4.compress(data))


def built(codec: int, values: list[bytes], *, first: int = 0) -> bytes:
    """A batch as a producer makes it."""
    builder = DefaultRecordBatchBuilder(
        magic=2, compression_type=codec, is_transactional=0, producer_id=-1, producer_epoch=-1, base_sequence=-1,
        batch_size=10**9,
    )  # fmt: skip
    for at, value in enumerate(values):
        builder.append(at, timestamp=1_000 + at, key=None, value=value, headers=[])
    batch = builder.build()
    batch[:8] = first.to_bytes(8, "big")  # as a broker does it; the checksum leaves it out
    return bytes(batch)


@pytest.mark.parametrize("codec", CODECS)
def test_data_that_fits_is_no_bomb_and_data_that_does_not_is_one(codec: str) -> None:
    rows = b"".join(b'{"k": "key%d", "v": %d}' % (n % 97, n) for n in range(40_000))
    assert not grown(codec, compressed(codec, rows), 2 * len(rows))
    assert grown(codec, compressed(codec, rows), len(rows) - 1)


@given(st.sampled_from(["gzip", "snappy"]), texts, st.integers(0, 20_000))
def test_the_size_is_exact_for_gzip_and_snappy(codec: str, data: bytes, most: int) -> None:
    assert grown(codec, compressed(codec, data), most) == (len(data) > most)


@given(texts, st.integers(0, 20_000))
def test_no_lz4_bomb_is_missed(data: bytes, most: int) -> None:
    if len(data) > most:
        assert grown("lz4", compressed("lz4", data), most)


@pytest.mark.parametrize("codec", CODECS)
def test_a_bomb_is_known_within_little_memory(codec: str) -> None:
    bomb = compressed(codec, bytes(100 * MOST))
    tracemalloc.start()
    try:
        assert grown(codec, bomb, MOST)
        assert tracemalloc.get_traced_memory()[1] < len(bomb) * 3 + 5_000_000
    finally:
        tracemalloc.stop()


def test_it_says_what_it_is() -> None:
    (batch,) = batches_of(built(1, [bytes(200_000)] * 10, first=40))
    bomb = bomb_in(batch, MOST)
    assert bomb is not None
    assert (bomb.first, bomb.last, bomb.codec) == (40, 49, "gzip")
    assert f"a batch of {bomb.compressed:,} bytes grows into more than 1,000,000" in bomb.why


@pytest.mark.parametrize("codec", [None, "zstd"])
def test_what_the_client_bounds_itself_is_left_to_it(codec: str | None) -> None:
    assert bomb_in(RawBatch(0, 0, codec, bytes(61) + bytes(2 * MOST)), MOST) is None


def test_the_bound_is_that_of_the_client() -> None:
    assert most_grown(load_settings().kafka) == 134_217_728
    extras = {"librdkafka": {"receive.message.max.bytes": 300_000_000}}
    assert most_grown(load_settings(kafka={"extras": extras}).kafka) == 300_000_000


@given(st.sampled_from(sorted(CODECS)), st.binary(max_size=300))
def test_any_bytes_have_some_size(codec: str, data: bytes) -> None:
    for front in (b"", b"\x82SNAPPY\x00", b"\x1f\x8b\x08\x00", b"\x04\x22\x4d\x18"):
        grown(codec, front + data, MOST)


@given(st.binary(max_size=400))
def test_any_bytes_are_some_batches(data: bytes) -> None:
    whole = built(0, [b"x"])
    assert [batch.data for batch in batches_of(whole + data)][:1] == [whole]


@pytest.mark.parametrize("codec", [0, 1, 2, 3])
def test_batches_have_their_offsets_and_records_and_a_cut_one_is_left_out(codec: int) -> None:
    data = built(codec, [b"a" * 50, b"b" * 50], first=10) + built(codec, [b"c" * 50], first=12)
    batches = list(batches_of(data + data[:-1]))
    assert [(batch.first, batch.last) for batch in batches] == [(10, 11), (12, 12), (10, 11)]
    records = list(RawFetch(batches, ()).records(batches[0], "topic", 3))
    assert [(record.offset, record.value, record.timestamp) for record in records] == [
        (10, b"a" * 50, 1_000),
        (11, b"b" * 50, 1_001),
    ]
