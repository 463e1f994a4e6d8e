"""Partitioners as a person writes them."""

import pytest

from evenflow.errors import ConfigError
from evenflow.partitioners import create, restore
from evenflow.text.options import name_of, parse_choice


@pytest.mark.parametrize(
    ("text", "name", "options"),
    [
        ("pkg", "pkg", {}),
        ("pkg:", "pkg", {}),
        ("pkg:d=3", "pkg", {"d": 3}),
        (" pkg : d = 3 , window = sliding ,", "pkg", {"d": 3, "window": "sliding"}),
        ("d-choices:theta=1e-3,distinct=TRUE,warm-up=5", "d-choices", None),
        ("d-choices:theta=none", "d-choices", {"theta": None}),
        ("evenflow:weights=1;2;0.5,watch=9", "evenflow", {"weights": [1, 2, 0.5], "watch": 9}),
        ("cg:capacities= 1 ; 2.5 ", "cg", {"capacities": [1, 2.5]}),
        ("cg:capacities=3;", "cg", {"capacities": [3]}),
        ("am:cardinality=hll", "am", {"cardinality": "hll"}),
    ],
)
def test_name_and_options_are_taken_apart(text: str, name: str, options: dict | None) -> None:
    expected = {"theta": 0.001, "distinct": True, "warm_up": 5} if options is None else options
    assert parse_choice(text) == (name, expected)
    assert name_of(text) == name


@pytest.mark.parametrize(
    ("text", "name", "options"),
    [
        ("own:Mine", "own:Mine", {}),
        ("own:Mine:", "own:Mine", {}),
        ("package.own:Mine.Inner:d=3,e=x", "package.own:Mine.Inner", {"d": 3, "e": "x"}),
        (" own : Mine : d = 3", "own:Mine", {"d": 3}),
        ("partly:file=/a:b", "partly", {"file": "/a:b"}),
    ],
)
def test_a_class_in_a_module_is_a_name_too(text: str, name: str, options: dict) -> None:
    assert parse_choice(text) == (name, options)
    assert name_of(text) == name


@pytest.mark.parametrize("text", ["d-choices:head", "pkg:=3", "pkg:d=3,windowed", "own:Mine:d"])
def test_what_is_no_option_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="is no option"):
        parse_choice(text)


@pytest.mark.parametrize("text", ["evenflow:weights=1;two", "evenflow:weights=1;;2", "evenflow:weights=;"])
def test_what_is_no_list_of_numbers_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="is no list of numbers"):
        parse_choice(text)


@pytest.mark.parametrize("text", ["evenflow:weights=1;2;0.5", "evenflow:weights=2;", "cg:capacities=1;2.5"])
def test_a_written_list_of_numbers_makes_a_partitioner(text: str) -> None:
    name, options = parse_choice(text)
    made = create(name, workers=3, **options)
    (option,) = options
    assert list(getattr(made.options, option)) == options[option]
    assert restore(made.snapshot()).options == made.options


def test_an_option_given_twice_is_refused() -> None:
    with pytest.raises(ConfigError, match="pkg: the option 'd' is given twice"):
        parse_choice("pkg:d=3,d=4")
