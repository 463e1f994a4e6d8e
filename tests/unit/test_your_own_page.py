"""The Python of docs/your-own.md runs as it stands, each block as a module of one's own."""

import importlib
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

import evenflow.elasticity.checking
import evenflow.partitioners.checking
import evenflow.sources.checking
import evenflow.sources.query_checking
from evenflow.contracts import Law
from evenflow.testing import check_partitioner, check_policy, check_query, check_source
from tests.outside import forgotten, module

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "your-own.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    with forgotten(tmp_path):
        yield tmp_path


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_a_block_of_the_page_runs(folder: Path, number: int) -> None:
    module(folder, "own", BLOCKS[number])
    importlib.invalidate_caches()
    importlib.import_module("own")


def test_the_source_and_the_query_of_the_page_keep_every_law(folder: Path) -> None:
    module(folder, "own", "".join(block for block in BLOCKS if "open_letters" in block))
    importlib.invalidate_caches()
    check_source("own:open_letters:hello")
    check_query("own:LETTERS")


@pytest.mark.parametrize(
    "contract",
    [
        evenflow.partitioners.checking,
        evenflow.elasticity.checking,
        evenflow.sources.checking,
        evenflow.sources.query_checking,
    ],
    ids=lambda contract: contract.__name__,
)
def test_the_page_has_the_words_of_every_law(contract: ModuleType) -> None:
    groups = (value if isinstance(value, tuple) else (value,) for value in vars(contract).values())
    laws = [law for group in groups for law in group if isinstance(law, Law)]
    page = " ".join(PAGE.lower().replace("`", "").split())
    assert len(laws) >= 5
    assert [law.words for law in laws if law.words.lower().replace("`", "") not in page] == []


@pytest.mark.more
def test_the_partitioner_and_the_policy_of_the_page_keep_every_law(folder: Path) -> None:
    (mine,) = (block for block in BLOCKS if "class Mine(" in block)
    (eager,) = (block for block in BLOCKS if "class Eager(" in block)
    module(folder, "own", mine + eager.split("policy = create")[0])
    importlib.invalidate_caches()
    check_partitioner("own:Mine", turns=3)
    check_policy("own:Eager")
    assert "own" in sys.modules
