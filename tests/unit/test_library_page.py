"""The Python of docs/library.md runs as it stands."""

import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "library.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("block", BLOCKS)
def test_a_block_of_the_page_runs(block: str) -> None:
    exec(compile(block, "docs/library.md", "exec"), {})
