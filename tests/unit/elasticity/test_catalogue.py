"""`evenflow policies`, and the page made from it."""

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from evenflow.console import library_application
from evenflow.elasticity import names, options_type
from evenflow.elasticity.catalogue import policies_markdown
from evenflow.elasticity.papers import PAPERS
from evenflow.elasticity.registry import built_in


def shown(*words: str) -> str:
    done = CliRunner().invoke(library_application(), ["policies", *words])
    assert done.exit_code == 0
    return done.output


def test_every_policy_is_listed_with_its_options() -> None:
    text = shown()
    for name in names():
        assert f"\n{name} " in f"\n{text}"
        assert all(f" {option}: (default " in text for option in options_type(name).model_fields)


def test_every_policy_but_fixed_has_what_to_cite_and_the_bibliography_has_each_once() -> None:
    assert set(PAPERS) == set(built_in())
    assert [name for name, papers in PAPERS.items() if not papers] == ["fixed"]
    keys = re.findall(r"^@\w+\{([\w-]+),$", shown("--bibtex"), re.MULTILINE)
    assert sorted(keys) == sorted({paper.key for papers in PAPERS.values() for paper in papers})


def test_json_has_one_object_a_policy() -> None:
    said = [json.loads(line) for line in shown("--json").splitlines()]
    assert [policy["name"] for policy in said] == list(names())
    for policy in said:
        fields = options_type(policy["name"]).model_fields
        assert [option["name"] for option in policy["options"]] == list(fields)
        assert all(option["default"] == fields[option["name"]].default for option in policy["options"])
        assert all(option["meaning"] and "(default" not in option["meaning"] for option in policy["options"])


def test_json_says_the_unit_of_each_option_that_has_one() -> None:
    said = {policy["name"]: policy for policy in map(json.loads, shown("--json").splitlines())}
    units = {
        (name, option["name"]): option["unit"]
        for name, policy in said.items()
        for option in policy["options"]
    }
    assert units["mblinucb", "lmax_ms"] == "ms"
    assert units["mblinucb", "rate"] == "tuples/s"
    assert units["threshold", "up_percent"] == "%"
    assert units["ds2", "window_s"] == "s"
    assert units["fixed", "p"] == "workers"
    assert units["ds2", "target"] is None


def test_the_page_is_what_the_policies_say_of_themselves() -> None:
    page = Path(__file__).parents[3] / "docs" / "policies.md"
    assert page.read_text() == policies_markdown(), "run `make docs`"
    assert shown("--markdown") == policies_markdown()


@pytest.mark.parametrize("name", names())
def test_the_guide_names_every_policy(name: str) -> None:
    guide = Path(__file__).parents[3] / "docs" / "elasticity.md"
    assert f"`{name}`" in guide.read_text()
