"""The targets of the Makefile are no files, and CONTRIBUTING.md names every suite."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
TARGETS = set(re.findall(r"^([a-z0-9-]+):.*## ", MAKEFILE, re.MULTILINE))


def test_every_target_that_help_lists_is_run_even_if_a_file_has_its_name() -> None:
    phony = {name for line in re.findall(r"^\.PHONY: (.+)$", MAKEFILE, re.MULTILINE) for name in line.split()}
    assert phony == TARGETS


def test_every_suite_stands_in_the_table_of_suites() -> None:
    suites = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("## The suites")[2]
    rows = [
        line.split("|")[1] for line in suites.partition("\n## ")[0].splitlines() if line.startswith("| `")
    ]
    named = {name for row in rows for name in re.findall(r"`make ([a-z0-9-]+)`", row)}
    assert named == {name for name in TARGETS if name.startswith("test")} | {"fuzz"}
