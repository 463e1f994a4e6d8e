"""Keys and times in every form a user of the library may have them: one column, one worker; and what is
refused.
"""

from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.errors import ConfigError
from evenflow.keys import hash_keys
from evenflow.numeric.columns import key_column, time_column
from evenflow.partitioners import create
from evenflow.settings import load_settings
from partitioner_service.reading.parse import Parser
from tests.examples import examples

TEXTS = st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])), max_size=20)
NUMBERS = st.lists(st.integers(-(2**63), 2**63 - 1), max_size=20)
INSTANTS = st.lists(
    st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1)).map(lambda when: when.replace(tzinfo=UTC)),
    max_size=20,
)


def text_forms(keys: list[str]) -> list[Any]:
    """The same keys in every form that text and bytes come in."""
    coded = [key.encode() for key in keys]
    arrow = pa.array(keys, pa.string())
    return [
        keys,
        tuple(keys),
        coded,
        np.array(keys, object),
        np.array(keys, "U") if keys else np.array([], "U1"),
        np.array(keys, np.dtypes.StringDType()),
        np.array(coded, "S") if keys else np.array([], "S1"),
        pd.Series(keys, dtype=object),
        arrow,
        arrow.cast(pa.large_string()),
        arrow.cast(pa.string_view()),
        arrow.cast(pa.binary()),
        arrow.cast(pa.binary_view()),
        arrow.dictionary_encode(),
        pa.chunked_array([arrow, arrow.slice(0, 0)]),
    ]


def number_forms(keys: list[int]) -> list[Any]:
    """The same keys in every form that whole numbers come in."""
    array = np.array(keys, np.int64)
    return [
        keys,
        list(array),
        array,
        array.astype(">i8"),
        np.repeat(array, 2)[::2],
        array.astype(object),
        pd.Series(keys, dtype="int64"),
        pa.array(array),
        pa.array(array).dictionary_encode(),
        pa.chunked_array([pa.array(array)]),
    ]


def time_forms(times: list[datetime]) -> list[Any]:
    """The same times in every form that points in time come in; their unit is the microsecond."""
    naive = [when.replace(tzinfo=None) for when in times]
    stamps = pa.array(times, pa.timestamp("us", "UTC"))
    return [
        times,
        naive,
        [when.astimezone(timezone(timedelta(hours=2))) for when in times],
        np.array(naive, "M8[us]"),
        list(np.array(naive, "M8[us]")),
        np.array(naive, "M8[us]").astype("M8[ns]"),
        stamps,
        stamps.cast(pa.timestamp("ns", "Europe/Berlin")),
        pa.chunked_array([stamps]),
        pd.Series(pd.array(stamps.to_pandas())),
    ]


@given(TEXTS)
def test_text_and_bytes_hash_alike_in_every_form(keys: list[str]) -> None:
    expected = hash_keys(pa.array([key.encode() for key in keys], pa.binary())).tolist()
    for form in text_forms(keys):
        assert hash_keys(form).tolist() == expected, type(form)


@given(NUMBERS)
def test_whole_numbers_hash_as_their_decimal_text(keys: list[int]) -> None:
    expected = hash_keys(pa.array([str(key) for key in keys], pa.string())).tolist()
    for form in number_forms(keys):
        assert hash_keys(form).tolist() == expected, type(form)


def test_narrow_unsigned_and_very_large_numbers_are_keys_too() -> None:
    for kind in (np.uint8, np.int16, np.uint64):
        assert hash_keys(np.array([7, 8], kind)).tolist() == hash_keys(["7", "8"]).tolist()
    assert hash_keys([2**64 - 1, 10**30]).tolist() == hash_keys([str(2**64 - 1), str(10**30)]).tolist()


def test_nul_bytes_at_the_end_of_a_key_count_in_lists_and_arrow() -> None:
    assert (
        hash_keys([b"a\0"]).tolist() == hash_keys(pa.array([b"a\0"])).tolist() != hash_keys([b"a"]).tolist()
    )


@given(INSTANTS)
def test_points_in_time_are_milliseconds_rounded_down_in_every_form(times: list[datetime]) -> None:
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    expected = [(when - epoch) // timedelta(milliseconds=1) for when in times]
    for form in time_forms(times):
        result = time_column(form)
        assert (result.dtype, result.tolist()) == (np.int64, expected), type(form)


@given(NUMBERS)
def test_whole_numbers_are_milliseconds_already(times: list[int]) -> None:
    for form in number_forms(times)[:-2]:
        assert time_column(form).tolist() == times


def test_days_and_hours_are_times() -> None:
    day = 1_577_836_800_000
    for form in (
        [date(2020, 1, 1)],
        pa.array([date(2020, 1, 1)]),
        pa.array([date(2020, 1, 1)], pa.date64()),
        np.array(["2020-01-01"], "M8[D]"),
        np.array(["2020-01-01T00"], "M8[h]"),
        pa.array([day // 1000], pa.timestamp("s")),
    ):
        assert time_column(form).tolist() == [day]


@given(keys=TEXTS, numbers=NUMBERS)
@examples(25)
def test_assign_keys_is_assign_of_the_hashes_in_every_form(keys: list[str], numbers: list[int]) -> None:
    for column, forms in ((keys, text_forms(keys)), ([str(key) for key in numbers], number_forms(numbers))):
        times = np.arange(len(column)) * 10
        expected = create("pkg", workers=7).assign(hash_keys(column), times).tolist()
        for form in forms:
            assert create("pkg", workers=7).assign_keys(form, times).tolist() == expected


@given(times=INSTANTS)
@examples(25)
def test_assign_keys_takes_times_in_every_form(times: list[datetime]) -> None:
    keys = ["a", "b", "c"] * 7
    expected = create("cam", workers=7).assign(hash_keys(keys[: len(times)]), time_column(times)).tolist()
    for form in time_forms(times):
        assert create("cam", workers=7).assign_keys(keys[: len(times)], form).tolist() == expected


def test_without_times_a_tuples_number_in_the_stream_is_its_time() -> None:
    keys = [f"k{row * row % 89}" for row in range(900)]
    whole = create("cam", workers=9).assign(hash_keys(keys), np.arange(900)).tolist()
    one = create("cam", workers=9)
    cut = [worker for at in (0, 300, 600) for worker in one.assign_keys(keys[at : at + 300]).tolist()]
    assert cut == whole == create("cam", workers=9).assign_keys(keys).tolist()


def test_a_micro_batch_name_says_that_it_wants_batches() -> None:
    with pytest.raises(ConfigError, match="call assign_batch"):
        create("prompt", workers=2).assign_keys(["a"])


@pytest.mark.parametrize(
    ("keys", "error", "message"),
    [
        ("abc", TypeError, "must be a sequence with one of them per tuple, not str"),
        (b"abc", TypeError, "not bytes"),
        ({"a", "b"}, TypeError, "not set"),
        (7, TypeError, "not int"),
        (["a", 1], TypeError, r"row 0 is text \('a'\) and row 1 is whole number \(1\)"),
        (["a", "b", b"c"], TypeError, r"row 0 is text \('a'\) and row 2 is bytes"),
        ([1, True], TypeError, "row 1 is truth value"),
        ([1.5], TypeError, "not float"),
        ([True], TypeError, "not truth value"),
        ([["a"]], TypeError, "not list"),
        (np.array([1.5]), TypeError, "not float64"),
        (np.array([["a"]]), ValueError, "one dimension, not 2"),
        (np.array(["a", 1], object), TypeError, "must be of one kind"),
        (pd.Series(["a", np.nan], dtype=object), TypeError, "row 1 is float"),
        (pa.array([1.5]), TypeError, "not double"),
        (pa.array([True]), TypeError, "not bool"),
        (["a", None], ValueError, "1 of 2 are None"),
        (pa.array([1, None]), ValueError, "1 of 2 keys are null"),
        (pa.array([None]), ValueError, "1 of 1 keys are null"),
    ],
)  # fmt: skip
def test_what_is_no_column_of_keys_is_refused(keys: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        hash_keys(keys)


@pytest.mark.parametrize(
    ("times", "error", "message"),
    [
        ([1.5], TypeError, "not float"),
        (["2020-01-01"], TypeError, "not text"),
        (np.array([1.5]), TypeError, "not float64"),
        (pa.array(["2020"]), TypeError, "not string"),
        (np.array(["NaT"], "M8[ms]"), ValueError, "1 of 1 are NaT"),
        (pa.array([1, None]), ValueError, "1 of 2 are null"),
        ([1, None], ValueError, "1 of 2 are None"),
        ([1, datetime(2020, 1, 1)], TypeError, "must be of one kind"),
        (np.array([2**63], np.uint64), ValueError, "beyond int64"),
        (np.array([2**62], "M8[s]"), ValueError, "beyond int64"),
        (np.array([2**60], "M8[D]"), ValueError, "beyond int64"),
        (pa.array([2**62], pa.timestamp("s")), ValueError, "beyond int64"),
        ([date(2020, 1, 1), datetime(2020, 1, 1, 12)], TypeError, "must be of one kind"),
        ([np.datetime64(5, "ms"), datetime(2020, 1, 1)], TypeError, "must be of one kind"),
        ([2**63], ValueError, "beyond int64"),
        (5, TypeError, "not int"),
        ([1, 2], ValueError, "1 keys but 2 times"),
    ],
)  # fmt: skip
def test_what_is_no_column_of_times_is_refused(times: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        create("hashing", workers=2).assign_keys(["a"], times)


def test_arrow_columns_of_bytes_are_taken_as_they_are() -> None:
    column = pa.array([b"a", b"b"])
    assert key_column(column) is column


def test_a_library_user_and_the_pipeline_hash_a_number_alike() -> None:
    number = load_settings(query={"key": "k", "time": "t", "types": {"k": "int64"}})
    records = [b'{"k": %d, "t": %d}' % (key, row) for row, key in enumerate([8, -1, 2**63 - 1])]
    assert hash_keys(Parser(number).parse(records).keys).tolist() == hash_keys([8, -1, 2**63 - 1]).tolist()
