"""A partitioner, a source and a query of one's own run through the real pipeline, found by module and
name.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

from workbench.local.processes import ChildProcess

pytestmark = [pytest.mark.pipeline, pytest.mark.more]
PACKAGE = Path(__file__).parents[3] / "examples" / "plugin" / "turnstile"
OWN = '''
import pyarrow as pa
from evenflow.queries import BuiltInQuery
from evenflow.sources.source import bounded

def open_letters(rest, options):
    """Each letter is a record, ten a second, and most are the first letter."""
    letters = [rest[0] if number % 3 else rest[number % len(rest)] for number in range(3_000)]
    table = pa.table({"letter": letters, "time": [100 * number for number in range(3_000)]})
    return bounded("letters", table, options, key="letter", time="time")

LETTERS = BuiltInQuery(
    name="letters", what="how often each letter comes", source="own:open_letters:evenflow", data="3,000 letters",
    fields={"key": "letter", "time": "time", "window": "20s", "slide": "5s", "aggregates": {"times": "count"}},
)
'''


def test_a_partitioner_a_source_and_a_query_of_ones_own_end_with_0_differences(tmp_path: Path) -> None:
    shutil.copytree(PACKAGE, tmp_path / "turnstile")
    (tmp_path / "own.py").write_text(OWN)
    words = [
        "demo",
        "--query",
        "own:LETTERS",
        "--partitioner",
        "turnstile.partitioner:Turnstile:turns=3",
        "--json",
    ]
    child = ChildProcess([sys.executable, "-m", "cli.main", *words], log=tmp_path / "demo.log", cwd=tmp_path)
    assert child.wait(250) == 0, child.tail(40)
    output = child.output()
    assert output.count("turnstile.partitioner:Turnstile: plain Python") == 1
    figures = json.loads(output.splitlines()[-1])
    assert figures["differences"] == 0
    assert figures["routed"] == 3_000
    assert "turnstile.partitioner:Turnstile" in output
