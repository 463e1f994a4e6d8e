"""The sections by name. A new one is a module with these members and its line here."""

from __future__ import annotations

from types import ModuleType

from benchmarks.reproducing import group_ahead, paper_000, paper_001, paper_002, paper_003, paper_004

SECTIONS: dict[str, ModuleType] = {
    module.NAME: module for module in (paper_002, paper_000, paper_004, paper_001, group_ahead, paper_003)
}
"""Each has NAME, TITLE, CLAIMS, and the functions cells, measure, text, pictures;
measurable(cell) where a cell may need what is not installed."""
