"""A policy of one's own is named, made and refused as one of evenflow's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cli.main import app
from controller.decide import policy_of
from evenflow.elasticity import Bounds, create, describe, names, restore
from evenflow.elasticity.policies.fixed import Fixed
from evenflow.elasticity.simulated.arrivals import Poisson
from evenflow.elasticity.simulated.driving import drive
from evenflow.elasticity.simulated.environments import ElasticStage
from evenflow.errors import ConfigError
from evenflow.settings import Settings
from tests.outside import forgotten, module, package
from workbench.elastic import LoopOptions

OWN = '''
"""Keeps what is."""
from evenflow.elasticity import Decision, Policy
class Steady(Policy):
    """Keeps p and r."""
    def _decide(self, seen):
        return Decision(p=seen.p, r=seen.r, reason="as it is", cause="stable")
class Abstract(Policy):
    pass
class Clumsy(Steady):
    def __init__(self, **words):
        raise KeyError("colour")
'''


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder in Python's path that holds the module `own`."""
    monkeypatch.syspath_prepend(str(tmp_path))
    module(tmp_path, "own", OWN)
    with forgotten(tmp_path):
        yield tmp_path


def test_a_policy_is_made_by_its_module_or_as_a_class(folder: Path) -> None:
    policy = create("own:Steady", bounds=Bounds())
    assert policy.name == "own:Steady"
    assert create(type(policy), bounds=Bounds()).name == "own:Steady"
    assert create(Fixed, bounds=Bounds()).name == "fixed"
    assert restore(policy.snapshot(), like=policy).name == "own:Steady"


def test_a_package_offers_a_policy_that_stands_in_lists_with_the_package(folder: Path) -> None:
    package(folder, "their-package", "evenflow.policies", steady="own:Steady", broken="nowhere:Policy")
    assert names()[-2:] == ("broken", "steady")
    assert describe("steady").package == "their-package"
    assert "(their-package) Keeps p and r." in CliRunner().invoke(app, ["policies"]).output
    rows = CliRunner().invoke(app, ["policies", "--json"]).output.splitlines()
    broken, steady = (json.loads(row) for row in rows[-2:])
    assert steady["package"] == "their-package"
    assert broken["summary"].startswith("It cannot be used: the policy 'broken' is not there")
    assert "(their-package) Keeps p and r." in CliRunner().invoke(app, ["policies", "--markdown"]).output


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("own:create", "module own has no create"),
        ("own:Decision", "own:Decision is no policy: its class is not derived from Policy"),
        ("own:Abstract", "own:Abstract is no whole policy: it lacks _decide"),
        ("own:Clumsy", "no own:Clumsy can be made: KeyError: 'colour'"),
        ("fixed:p", "fixed: 'p' is no option"),
        ("treshold", "unknown policy 'treshold'; did you mean 'threshold'"),
    ],
)
def test_what_is_no_policy_is_refused_in_words(folder: Path, name: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        create(name, bounds=Bounds())


def test_options_behind_a_name_are_those_beside_it_and_in_both_places_they_are_refused() -> None:
    made = create("ds2:target=0.5", bounds=Bounds())
    assert made.name == "ds2"
    assert made.options == create("ds2", bounds=Bounds(), target=0.5).options
    with pytest.raises(ConfigError, match=r"has options behind its name \(target\)"):
        create("ds2:target=0.5", bounds=Bounds(), boundary=0.1)


def test_the_policy_of_the_example_runs_in_a_loop_of_the_demo_and_by_the_settings_of_a_controller(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[3] / "examples" / "plugin"))
    loops: list[LoopOptions] = []

    def show(loop: LoopOptions, *given: Any, **words: Any) -> None:
        loops.append(loop)
        raise ConfigError("no loop is run here")

    monkeypatch.setattr("workbench.elastic.show_loop", show)
    name = "turnstile.policy:Patient:patience=2"
    CliRunner().invoke(app, ["demo", "--control", name])
    (loop,) = loops
    environment = ElasticStage(arrivals=Poisson(100), kmax=32, start=1)
    policy = create(str(loop.policy), bounds=environment.bounds, **dict(loop.policy_options))
    assert policy.options == policy_of(Settings(control={"policy": name})).options
    played = drive(policy, environment, steps=120, seed=1)
    assert 1 < played.p[-1] < 32
    assert played.waiting[-1] < played.waiting.max()
