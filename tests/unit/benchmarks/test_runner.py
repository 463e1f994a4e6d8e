"""Which scenarios a run takes in, and what it says of where their figures come from."""

import json
from types import SimpleNamespace

import pytest

from benchmarks import runner
from benchmarks.runner import modules_by_id, run_all
from evenflow.errors import ConfigError
from evenflow.simulation.provenance import program


def test_a_scenario_that_a_smoke_run_leaves_out_names_one_that_it_does_not() -> None:
    modules = modules_by_id()
    left_out = {name: module.SMOKED_BY for name, module in modules.items() if hasattr(module, "SMOKED_BY")}
    assert set(left_out.values()) <= set(modules) - set(left_out)


def test_json_says_what_made_the_figures_as_simulate_does(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario = SimpleNamespace(ID="nothing-done", WHAT="nothing", SEED=3, run=lambda *, smoke: {"rate": 5})
    monkeypatch.setattr(runner, "chosen", lambda names: [scenario])
    run_all([], smoke=True, as_json=True)
    said = json.loads(capsys.readouterr().out)
    assert said["rate"] == 5
    own = {"stream": "nothing-done", "seed": 3, "options": '{"smoke": true}'}
    assert said["provenance"] == program() | own


def test_another_seed_goes_to_scenarios_that_take_one_and_is_refused_for_the_others(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    able = SimpleNamespace(
        ID="able", WHAT="nothing", SEED=3, run=lambda *, smoke, seed=3: {"rate": 5, "drawn": seed}
    )
    fixed = SimpleNamespace(ID="fixed", WHAT="nothing", SEED=3, run=lambda *, smoke: {"rate": 5})
    monkeypatch.setattr(runner, "chosen", lambda names: [able])
    run_all([], smoke=True, as_json=True, seed=8)
    said = json.loads(capsys.readouterr().out)
    assert (said["drawn"], said["provenance"]["seed"]) == (8, 8)
    monkeypatch.setattr(runner, "chosen", lambda names: [able, fixed])
    with pytest.raises(ConfigError, match="fixed: only the seed of its own"):
        run_all([], smoke=True, as_json=True, seed=8)


def test_every_scenario_says_its_seed() -> None:
    assert all(isinstance(module.SEED, int) for module in modules_by_id().values())
