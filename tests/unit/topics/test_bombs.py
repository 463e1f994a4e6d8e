"""What a batch grows into is known without growing it, and its records are read as a client reads them."""

from __future__ import annotations

import gzip
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Self

import cramjam
import pytest
from aiokafka.codec import snappy_encode
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.util import calc_crc32c
from confluent_kafka import TIMESTAMP_CREATE_TIME, TIMESTAMP_LOG_APPEND_TIME
from hypothesis import given
from hypothesis import strategies as st

from evenflow.settings import load_settings
from topics.batches.bombs import Suspect, bomb_in, bombs_ahead, most_grown
from topics.batches.raw_batches import DamagedBatchError, RawBatch, RawFetch, RawRecord, batches_of

CODECS = {"gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
MOST = 1_000_000
each = pytest.mark.parametrize("codec", CODECS)
texts = st.binary(max_size=200) | st.builds(
    lambda byte, n: byte * n, st.binary(max_size=3), st.integers(0, 5_000)
)


def grown(codec: str, data: bytes, most: int) -> bool:
    """Whether a batch of this compressed data counts as a bomb."""
    batch = RawBatch(7, 9, signed(bytearray(built(CODECS[codec], [b"x"])[:61] + data), codec=CODECS[codec]))
    return bomb_in(batch, most) is not None


def compressed(codec: str, data: bytes) -> bytes:
    if codec == "gzip":
        return gzip.compress(data)
    if codec == "snappy":
        return snappy_encode(data)
    return bytes(getattr(cramjam, codec).compress(data))


def signed(data: bytearray, *, codec: int | None = None, attributes: int = 0) -> bytes:
    """The batch with these attributes, and the checksum that fits."""
    if codec is not None:
        data[21:23] = (codec | attributes).to_bytes(2, "big")
    data[17:21] = calc_crc32c(bytes(data[21:])).to_bytes(4, "big")
    return bytes(data)


def built(codec: int, values: Sequence[bytes | None], *, first: int = 0) -> bytes:
    """A batch as a producer makes it."""
    builder = DefaultRecordBatchBuilder(
        magic=2, compression_type=codec, is_transactional=0, producer_id=-1, producer_epoch=-1,
        base_sequence=-1,
        batch_size=10**9,
    )  # fmt: skip
    for at, value in enumerate(values):
        builder.append(at, timestamp=1_000 + at, key=None, value=value, headers=[])
    batch = builder.build()
    batch[:8] = first.to_bytes(8, "big")  # as a broker does it; the checksum leaves it out
    return bytes(batch)


def records(data: bytes, *, aborted: Sequence[tuple[int, int]] = ()) -> list[RawRecord]:
    ((batch, transaction),) = RawFetch(list(batches_of(data)), aborted, 0, 0).verdicts
    return list(batch.records(MOST, aborted=transaction))


@each
def test_data_that_fits_is_no_bomb_and_data_that_does_not_is_one(codec: str) -> None:
    rows = b"".join(b'{"k": "key%d", "v": %d}' % (n % 97, n) for n in range(40_000))
    assert not grown(codec, compressed(codec, rows), len(rows))
    assert grown(codec, compressed(codec, rows), len(rows) - 1)


@given(st.sampled_from(sorted(CODECS)), texts, st.integers(0, 20_000))
def test_the_size_is_exact(codec: str, data: bytes, most: int) -> None:
    assert grown(codec, compressed(codec, data), most) == (len(data) > most)


@pytest.mark.parametrize("codec", ["gzip", "lz4", "zstd"])
def test_a_bomb_is_known_within_little_memory(codec: str) -> None:
    """In a process of its own, because the largest memory of a process never falls."""
    code = f"""
import pyarrow as pa
from topics.batches.bombs import bomb_in
from topics.batches.raw_batches import batches_of
from tests.peak_memory import peak
from tests.unit.topics.test_bombs import built, signed
sink = pa.BufferOutputStream()
with pa.CompressedOutputStream(sink, {codec!r}) as out:
    for _ in range(400):
        out.write(bytes(1_000_000))
data = bytearray(built({CODECS[codec]}, [b"x"])[:61] + sink.getvalue().to_pybytes())
data[8:12] = (len(data) - 12).to_bytes(4, "big")
(batch,) = batches_of(signed(data, codec={CODECS[codec]}))
before = peak()
assert bomb_in(batch, 128_000_000) is not None
print(peak() - before)
"""
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(made.stdout) < 50_000, "KiB"


def test_many_empty_members_of_gzip_are_counted_at_once() -> None:
    assert not grown("gzip", gzip.compress(b"") * 200_000, MOST)


def test_what_stands_behind_the_first_member_of_gzip_is_left_alone_as_by_librdkafka() -> None:
    assert not grown("gzip", gzip.compress(b"a" * 500) + b"garbage", 500)
    assert not grown("gzip", gzip.compress(b"a" * 500) + gzip.compress(bytes(10_000)), 500)


def test_it_says_what_it_is() -> None:
    (batch,) = batches_of(built(1, [bytes(200_000)] * 10, first=40))
    bomb = bomb_in(batch, MOST)
    assert bomb is not None
    assert (bomb.first, bomb.last, bomb.codec) == (40, 49, "gzip")
    assert f"a batch of {bomb.compressed:,} bytes grows into more than 1,000,000" in bomb.why


def test_what_is_not_compressed_is_no_bomb() -> None:
    (batch,) = batches_of(built(0, [bytes(2 * MOST)]))
    assert bomb_in(batch, MOST) is None


def test_the_bound_is_that_of_the_client() -> None:
    assert most_grown(load_settings().kafka) == 134_217_728
    extras = {"librdkafka": {"receive.message.max.bytes": 300_000_000}}
    assert most_grown(load_settings(kafka={"extras": extras}).kafka) == 300_000_000


@pytest.mark.parametrize("codec", range(5))
def test_batches_have_their_offsets_and_records_and_a_cut_one_is_left_out(codec: int) -> None:
    data = built(codec, [b"a" * 50, None], first=10) + built(codec, [b"c" * 50], first=12)
    batches = list(batches_of(data + data[:-1]))
    assert [(batch.first, batch.last) for batch in batches] == [(10, 11), (12, 12), (10, 11)]
    assert list(batches[0].records(MOST)) == [
        RawRecord(10, (TIMESTAMP_CREATE_TIME, 1_000), None, b"a" * 50, []),
        RawRecord(11, (TIMESTAMP_CREATE_TIME, 1_001), None, None, []),
    ]


def test_keys_and_headers_are_read_and_a_name_that_is_no_utf_8_is_no_damage() -> None:
    builder = DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, 10**6)
    builder.append(0, timestamp=5, key=b"", value=b"v", headers=[("name", None), ("name", b"x")])
    assert records(bytes(builder.build())) == [
        RawRecord(0, (TIMESTAMP_CREATE_TIME, 5), b"", b"v", [("name", None), ("name", b"x")])
    ]
    damaged = bytearray(builder.build())
    damaged[damaged.index(b"name")] = 0xFF
    ((_, (first, _)),) = [(one.offset, one.headers) for one in records(signed(damaged))]
    assert first == ("\ufffdame", None)


def test_of_a_topic_with_append_time_each_record_has_the_time_of_its_batch() -> None:
    data = signed(bytearray(built(0, [b"a", b"b"])), codec=0, attributes=0x08)
    assert [one.stamp for one in records(data)] == [(TIMESTAMP_LOG_APPEND_TIME, 1_001)] * 2


def test_a_timestamp_beyond_64_bits_begins_again_at_the_other_end_as_in_librdkafka() -> None:
    data = bytearray(built(0, [b"a", b"b"]))
    data[27:35] = ((1 << 63) - 1).to_bytes(8, "big")
    assert [one.stamp[1] for one in records(signed(data))] == [(1 << 63) - 1, -(1 << 63)]


def test_an_offset_behind_the_end_of_its_batch_is_damage() -> None:
    data = bytearray(built(0, [b"a", b"b"]))
    data[23:27] = (0).to_bytes(4, "big")
    assert refused(signed(data)) == "an offset is out of its order or range"


def test_aborted_records_and_ends_of_transactions_are_left_out() -> None:
    data = bytearray(built(0, [b"a"], first=30))
    data[43:51] = (7).to_bytes(8, "big")
    transactional = signed(data, codec=0, attributes=0x10)
    assert len(records(transactional, aborted=[(8, 5), (7, 31)])) == 1
    assert records(transactional, aborted=[(7, 30)]) == []
    assert records(signed(data, codec=0, attributes=0x30)) == []


def refused(data: bytes) -> str:
    with pytest.raises(DamagedBatchError) as raised:
        records(data)
    return str(raised.value)


def test_a_batch_that_nobody_can_read_says_why() -> None:
    data = bytearray(built(1, [b"a" * 100] * 5))
    data[-1] ^= 0xFF
    assert refused(bytes(data)) == "its checksum is wrong"
    assert refused(signed(data)).startswith("gzip: ")
    assert refused(signed(bytearray(built(0, [b"a"])), codec=5)) == "compressed in an unknown way (5)"
    assert "grows into more than 1,000,000 bytes" in refused(built(1, [bytes(2 * MOST)]))
    cut = bytearray(built(0, [b"a" * 100])[:-50])
    cut[8:12] = (len(cut) - 12).to_bytes(4, "big")
    assert refused(signed(cut)) == "it ends within a record"
    data[16] = 1
    assert refused(bytes(data)) == "written in a format of before Kafka 0.11"


def test_a_record_with_more_headers_than_any_client_takes_is_damaged() -> None:
    for number, readable in ((100_000, True), (100_001, False)):
        builder = DefaultRecordBatchBuilder(
            magic=2, compression_type=1, is_transactional=0, producer_id=-1, producer_epoch=-1,
            base_sequence=-1, batch_size=10**9,
        )  # fmt: skip
        builder.append(0, timestamp=1_000, key=None, value=b"x", headers=[("", b"")] * number)
        data = bytes(builder.build())
        if readable:
            assert len(records(data)[0].headers) == number
        else:
            with pytest.raises(DamagedBatchError, match="100,001 headers"):
                records(data)


class Partitions:
    """Batches of partitions in place of a broker."""

    def __init__(self, batches: Mapping[int, Sequence[bytes]]) -> None:
        self._batches = {
            p: [batch for data in each for batch in batches_of(data)] for p, each in batches.items()
        }

    def __call__(self, *_: object, **__: object) -> Self:
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def ends(self, *_: object, **__: object) -> dict[int, int]:
        return {partition: batches[-1].last + 1 for partition, batches in self._batches.items()}

    def fetch(self, partition: int, offset: int, *, most: int) -> RawFetch:
        """One batch, whatever `most` says."""
        ahead = [batch for batch in self._batches[partition] if batch.last >= offset]
        return RawFetch(ahead[:1], (), self.ends()[partition], self.ends()[partition])


BOMB = built(1, [bytes(200_000_000)], first=6)


def test_where_runs_ended_again_and_again_the_next_batches_are_suspects_unless_there_is_a_bomb(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    partitions = Partitions(
        {
            0: [built(0, [b"x"], first=5), built(1, [bytes(90_000)], first=6), built(0, [b"x"], first=7)],
            4: [built(0, [b"x"], first=at) for at in range(5, 9)],
            1: [built(1, [b"x"] * 300, first=5)],
            2: [built(1, [b"x"], first=5), BOMB],
            3: [built(1, [b"x"], first=5)],
        }
    )
    monkeypatch.setattr("topics.batches.bombs.RawReader", partitions)
    monkeypatch.setattr("topics.batches.bombs.log_ends", partitions.ends)
    kafka = load_settings().kafka
    look = bombs_ahead(kafka, "t", dict.fromkeys(range(5), 5), repeated={0, 1, 2, 4})
    assert look.suspects == {0: Suspect(5, 6), 1: Suspect(5, 304)}, "up to the last heavy batch"
    assert list(look.bombs) == [2]
    assert bombs_ahead(kafka, "t", {1: 305}, repeated={1}).suspects == {}, "nothing lies ahead"


def test_an_empty_answer_before_the_end_of_a_log_does_not_hide_a_bomb(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A broker with a quota answers like that, however often it is asked."""

    class Throttled(Partitions):
        silent = 100

        def fetch(self, partition: int, offset: int, *, most: int) -> RawFetch:
            fetched = super().fetch(partition, offset, most=most)
            if self.silent == 0:
                return fetched
            self.silent -= 1
            return fetched._replace(batches=[])

    partitions = Throttled({0: [built(1, [b"x"], first=5), BOMB]})
    monkeypatch.setattr("topics.batches.bombs.RawReader", partitions)
    monkeypatch.setattr("topics.batches.bombs.log_ends", partitions.ends)
    assert list(bombs_ahead(load_settings().kafka, "t", {0: 5}).bombs) == [0]
    partitions.silent = 100
    moments = iter([0.0, 30.0, 60.0])
    look = bombs_ahead(load_settings().kafka, "t", {0: 5}, clock=lambda: next(moments))
    assert (look.bombs, look.unfinished) == ({}, {0: 5})


def test_partitions_for_which_there_was_no_time_are_suspects_up_to_where_nobody_has_looked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else batches that take long, and are no bombs, would hide a bomb in another partition for good."""
    slow = [built(0, [b"x"], first=at) for at in range(5, 9)]
    partitions = Partitions({0: slow, 1: slow, 2: [built(1, [b"x"], first=5), BOMB]})
    monkeypatch.setattr("topics.batches.bombs.RawReader", partitions)
    monkeypatch.setattr("topics.batches.bombs.log_ends", partitions.ends)
    moments = iter([0.0, *[20.0 * at for at in range(9)]])
    look = bombs_ahead(load_settings().kafka, "t", dict.fromkeys(range(3), 5), clock=lambda: next(moments))
    assert look.bombs == {}
    assert look.unfinished == {0: 6, 1: 6, 2: 6}
    assert look.suspects == {partition: Suspect(5, 6) for partition in range(3)}
