"""A record that would become too many elements is rejected without being taken apart. Each is in a process of
its own, because the largest memory of a process never falls.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

from evenflow.grammar.explosion import MOST_ELEMENTS

MEBIBYTES = 24
_CODE = """
import resource
from evenflow.settings import Settings
from partitioner_service.reading.parse import Parser
query = {{"window": 10, "key": "value", "time": "@timestamp", "explode": {explode!r}}}
parser = Parser(Settings(query=query, input={{"partitions": 1, "format": "text"}}))
parser.parse([b"a, b"], timestamps=[7])  # what compiles and imports counts before
record = {part!r} * ({mebibytes} * 2**20 // {length})
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
parsed = parser.parse([record], timestamps=[7])
print(dict(parsed.bad)[0])
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


@pytest.mark.parametrize(
    ("explode", "part", "elements"),
    [
        pytest.param("split(value, ',')", b",", MEBIBYTES * 2**20 + 1, id="commas"),
        pytest.param("split(value, ', ')", b", ", MEBIBYTES * 2**19 + 1, id="commas and blanks"),
        pytest.param("words(value)", b"a ", MEBIBYTES * 2**19, id="words"),
    ],
)
def test_a_record_of_too_many_parts_takes_little_more_than_its_own_size(
    explode: str, part: bytes, elements: int
) -> None:
    code = _CODE.format(explode=explode, part=part, mebibytes=MEBIBYTES, length=len(part))
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    why, taken = child.stdout.splitlines()
    assert why == f"column 'value' has {elements} elements, more than {MOST_ELEMENTS:,}"
    assert int(taken) < 5 * MEBIBYTES, "MiB"
