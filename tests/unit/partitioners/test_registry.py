"""Names and options: what `create` refuses and why, and what every name says of itself."""

import doctest
import inspect
import json
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from evenflow import partitioners
from evenflow.errors import ConfigError
from evenflow.keys import candidate, hash_keys
from evenflow.partitioners import built_in, create, describe, names, registry
from evenflow.partitioners.catalogue import algorithms_markdown, bibtex
from tests.unit.partitioners.cases import run
from tests.unit.partitioners.streams import zipf


def test_an_unknown_name_lists_the_known_and_suggests_the_nearest() -> None:
    with pytest.raises(
        ConfigError, match=r"unknown partitioner 'd_choice'; did you mean 'd-choices'"
    ) as caught:
        create("d_choice", workers=4)
    for name in names():
        assert name in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"thetta": 0.1}, "unknown option 'thetta' of d-choices; did you mean 'theta'"),
        ({"theta": -1}, "option 'theta' of d-choices: .*greater than or equal to 0, not -1"),
        ({"eps": float("nan")}, "option 'eps' of d-choices: .*finite"),
        ({"counters": 1.5}, "option 'counters' of d-choices"),
        ({"window": "weekly"}, "option 'window' of d-choices: .*'cumulative', 'sliding' or 'tumbling'"),
        ({"window": "sliding", "window_ms": 1500, "slide_ms": 1000}, "must be a multiple of slide_ms"),
    ],
)
def test_bad_options_say_what_is_wrong(options: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        create("d-choices", workers=4, **options)


def test_an_option_of_a_scheme_without_options_is_refused() -> None:
    with pytest.raises(ConfigError, match="hashing has no options"):
        create("hashing", workers=4, d=3)


@pytest.mark.parametrize("workers", [0, -1, 2.5, True, "4", 2**31])
def test_an_impossible_number_of_workers_is_refused(workers: object) -> None:
    with pytest.raises(ConfigError, match="workers must be"):
        create("hashing", workers=workers)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="workers must be"):
        create("hashing", workers=4).rescale(workers)  # type: ignore[arg-type]


def test_a_source_outside_the_sources_is_refused() -> None:
    with pytest.raises(ConfigError, match="source must be between 0 and 1, not 2"):
        create("shuffle", workers=4, source=2, sources=2)


@pytest.mark.parametrize("name", names())
def test_every_name_describes_itself_and_its_options(name: str) -> None:
    shown = describe(name)
    assert shown.summary.endswith(".")
    assert all(len(text) > 20 for text in shown.options.values())


@pytest.mark.parametrize("name", built_in())
def test_every_name_states_its_idea_cost_and_state(name: str) -> None:
    text = describe(name).text
    for part in ("Idea", "Cost", "State"):
        assert part in text, f"the module of {name} does not say its {part.lower()}"


@pytest.mark.parametrize("name", names())
def test_every_name_does_with_keys_what_it_says(name: str) -> None:
    keys, times = zipf(20_000, z=1.5)
    out = run(create(name, workers=8, seed=7), (keys, times))
    said = describe(name).key_policy
    copies = np.unique(np.stack([keys, out.astype(np.uint64)]), axis=1).shape[1]
    assert (copies > len(np.unique(keys))) == (said == "splitting")
    assert (out.tolist() == candidate(keys, 1, 8, 7).tolist()) == (said == "hashing")


def test_the_page_of_algorithms_is_current() -> None:
    page = Path(__file__).parents[3] / "docs" / "algorithms.md"
    assert page.read_text() == algorithms_markdown(), "run `make docs`"


def test_the_example_in_the_docstring_is_true() -> None:
    assert doctest.testmod(partitioners).failed == 0


@pytest.mark.parametrize("name", built_in())
def test_every_algorithm_shows_itself_on_six_tuples(name: str) -> None:
    module = inspect.getmodule(registry._ENTRIES[name].algorithm)
    keys = hash_keys(pa.array(list("aabaca")).cast(pa.large_binary()))
    given = {"create": partitioners.create, "keys": keys, "times": np.arange(6)}
    shown = doctest.testmod(module, extraglobs=given)
    assert shown.attempted
    assert not shown.failed


@pytest.mark.parametrize("name", names())
def test_a_partitioner_shows_the_options_that_are_in_effect(name: str) -> None:
    partitioner = create(name, workers=8, seed=3)
    shown = repr(partitioner)
    options = partitioner.options
    pairs = [f"{option}={getattr(options, option)!r}" for option in type(options).model_fields]
    expected = ", ".join(["workers=8", "seed=3", *pairs])
    assert shown == f"{type(partitioner).__name__}({expected})"


def test_a_partitioner_shows_its_source_and_disorder_where_they_are_set() -> None:
    shown = repr(create("pk5", workers=4, source=1, sources=3, max_disorder_ms=500, window="sliding"))
    assert shown.startswith("Pkg(workers=4, seed=7, source=1, sources=3, max_disorder_ms=500, ")
    assert "d=5" in shown
    assert "window='sliding'" in shown


@pytest.mark.parametrize("name", names())
def test_what_a_name_says_of_itself_is_plain_json(name: str) -> None:
    said = json.loads(json.dumps(describe(name).as_json()))
    assert said["name"] == name
    assert said["decides_on"] in ("tuples", "micro-batches")
    assert [option["name"] for option in said["options"]] == list(describe(name).options)
    assert all(not option["meaning"].startswith("(default") for option in said["options"])
    assert {option["unit"] for option in said["options"] if option["name"].endswith("_ms")} <= {"ms"}


def test_every_name_but_evenflows_own_has_a_paper_to_cite() -> None:
    assert [name for name in built_in() if not describe(name).papers] == ["evenflow"]


def test_a_bibliography_has_each_paper_once() -> None:
    keys = re.findall(r"^@\w+\{([\w]+),$", bibtex(), re.MULTILINE)
    cited = {paper.key for name in names() for paper in describe(name).papers}
    assert sorted(keys) == sorted(cited)
    assert bibtex().count("{") == bibtex().count("}")
