"""The sections by name, in the order of the page. A new section is a module with the members below, named
here.
"""

from __future__ import annotations

from types import ModuleType

from papers import group_ahead, paper_000, paper_002, paper_003, paper_004, partly
from papers.paper_001 import blocks, queues

SECTIONS: dict[str, ModuleType] = {
    module.NAME: module
    for module in (paper_002, paper_000, paper_004, blocks, queues, group_ahead, partly, paper_003)
}
"""Each section has NAME, TITLE, CLAIMS, and the functions `cells`, `measure`, `text` and `pictures`. It also
has `measurable(cell)` if a cell may need something that is not installed."""
