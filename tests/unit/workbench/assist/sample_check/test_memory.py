"""A look takes little memory, whatever the records hold. Each is in a process of its own, because the largest
memory of a process never falls.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

_CODE = """
import itertools, resource
from tests.unit.workbench.assist.sample_check.samples import look, order, sample
settings = {settings}
look(sample([order(n) for n in range(300)]), **settings)  # what compiles and imports counts before
numbers = itertools.count()
records = sample([{value} for _ in range(12)])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
look(records, **settings)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


@pytest.mark.parametrize(
    ("value", "settings"),
    [
        pytest.param(
            """b'{"user": "a", "at": 1800000000000, "amount": 1, "x": [' + b'[],' * 700_000 + b'[]]}'""",
            "{}",
            id="lists",
        ),
        pytest.param(
            """b'{"user": "a", "at": 1800000000000, "amount": "' + b'1,' * 40_000 + b'1"}'""",
            """{"query": {"explode": "split(amount, ',')", "aggregates": {"n": "count"}}}""",
            id="elements",
        ),
        pytest.param(
            """(
                b'{"user": "' + b'a' * 60_000 + b'", "at": 1800000000000, "amount": "' + b'1,' * 500 + b'1"}'
            )""",
            """{"query": {"explode": "split(amount, ',')", "aggregates": {"n": "count"}}}""",
            id="repeated keys",
        ),
        pytest.param(
            """b'{"user": "%s", "at": 1800000000000, "x": [%s]}' % (
                b'a' * 30_000, b','.join(b'"%d"' % n for n in range(1_000))
            )""",
            """{"query": {
                "key": ["user", "x"], "explode": "x", "aggregates": {"n": "count"}, "types": {"x": "string"}
            }}""",
            id="keys of elements",
        ),
        pytest.param(
            """b'{"user": "a", "at": 1800000000000, "amount": [%s], %s}' % (
                b','.join([b'1'] * 100), b','.join(b'"c%d": "%s"' % (n, b't' * 1_001) for n in range(900))
            )""",
            """{"query": {"explode": "amount", "aggregates": {"n": "count"}}}""",
            id="long texts beside elements",
        ),
        pytest.param(
            """b'{"user": "a", "at": 1800000000000, "amount": 1, "x": {%s}}' % b','.join(
                b'"%d-%d": 1' % (next(numbers), n) for n in range(100_000)
            )""",
            "{}",
            id="names",
        ),
        pytest.param(
            """b'{"user": "a", "at": 1800000000000, "amount": [%s], %s}' % (
                b','.join([b'1'] * 100), b','.join(b'"c%d": 1' % n for n in range(50_000))
            )""",
            """{"query": {"explode": "amount", "aggregates": {"n": "count"}}}""",
            id="wide records taken apart",
        ),
    ],
)
def test_a_look_takes_little_memory(value: str, settings: str) -> None:
    code = _CODE.format(value=value, settings=settings)
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(child.stdout) < 150, "MiB"
