"""A look takes little memory, whatever the records hold. Each is in a process of its own, because the largest
memory of a process never falls.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

_CODE = """
import itertools
from tests.peak_memory import peak
from tests.unit.workbench.assist.sample_check.samples import look, order, sample
settings = {settings}

look(sample([order(n) for n in range(300)]), **settings)  # what compiles and imports counts before
numbers = itertools.count()
records = sample([{value} for _ in range({count})])
before = peak()
look(records, **settings)
print((peak() - before) // 1024)
"""


@pytest.mark.family
@pytest.mark.parametrize(
    ("value", "settings", "count", "most"),
    [
        pytest.param(
            """b'{"user": "a", "at": 1800000000000, "amount": 1, "x": [' + b'[],' * 700_000 + b'[]]}'""",
            "{}",
            12,
            150,
            id="lists",
        ),
        pytest.param(
            """b'{"user": "a", "at": 1800000000000, "amount": "' + b'1,' * 40_000 + b'1"}'""",
            """{"query": {"explode": "split(amount, ',')", "aggregates": {"n": "count"}}}""",
            12,
            150,
            id="elements",
        ),
        pytest.param(
            """(
                b'{"user": "' + b'a' * 60_000 + b'", "at": 1800000000000, "amount": "' + b'1,' * 500 + b'1"}'
            )""",
            """{"query": {"explode": "split(amount, ',')", "aggregates": {"n": "count"}}}""",
            12,
            450,  # as a block that is parsed
            id="repeated keys",
        ),
        pytest.param(
            """b'{"user": "%s", "at": 1800000000000, "x": [%s]}' % (
                b'a' * 30_000, b','.join(b'"%d"' % n for n in range(1_000))
            )""",
            """{"query": {
                "key": ["user", "x"], "explode": "x", "aggregates": {"n": "count"}, "types": {"x": "string"}
            }}""",
            12,
            250,  # as a block that is parsed
            id="keys of elements",
        ),
        pytest.param(
            """b'{"user": "a", "at": 1800000000000, "amount": [%s], %s}' % (
                b','.join([b'1'] * 100), b','.join(b'"c%d": "%s"' % (n, b't' * 1_001) for n in range(900))
            )""",
            """{"query": {"explode": "amount", "aggregates": {"n": "count"}}}""",
            12,
            150,
            id="long texts beside elements",
        ),
        pytest.param(
            """b'{"user": "a", "at": 1800000000000, "amount": 1, "x": {%s}}' % b','.join(
                b'"%d-%d": 1' % (next(numbers), n) for n in range(100_000)
            )""",
            "{}",
            12,
            150,
            id="names",
        ),
        pytest.param(
            """b'{"user": "a", "at": 1800000000000, "amount": [%s], %s}' % (
                b','.join([b'1'] * 100), b','.join(b'"c%d": 1' % n for n in range(50_000))
            )""",
            """{"query": {"explode": "amount", "aggregates": {"n": "count"}}}""",
            12,
            150,
            id="wide records taken apart",
        ),
        pytest.param(
            """b'{"user": "a", "at": 1800000000000, "%s": {%s}}' % (
                b'x' * 1_000_000, b','.join(b'"%d": 1' % n for n in range(990))
            )""",
            "{}",
            12,
            150,
            id="fields within a long name",
        ),
        pytest.param(
            """b'{"user": "a", "at": 1800000000000, "%d-%s": {%s}}' % (
                next(numbers), b'x' * 60_000, b','.join(b'"%d": 1' % n for n in range(900))
            )""",
            "{}",
            12,
            150,
            id="fields within many names",
        ),
        pytest.param(
            """(
                '{"user": "a", "at": 1800000000000, "x": "%d\U0001f600%s"}' % (next(numbers), 'x' * 900)
            ).encode()""",
            "{}",
            40_000,
            150,
            id="texts of wide letters",
        ),
        pytest.param(
            """b'{"user": "a", "at": 1800000000000, %s}' % b','.join(b'"c%d": []' % n for n in range(900))""",
            "{}",
            1_200,
            150,
            id="nested values",
        ),
    ],
)
def test_a_look_takes_little_memory(value: str, settings: str, count: int, most: int) -> None:
    code = _CODE.format(value=value, settings=settings, count=count)
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(child.stdout) < most, "MiB"
