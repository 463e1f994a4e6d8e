"""The partitioner scenarios run small, take in every registered name, and leave their chart."""

from pathlib import Path

import pytest

from benchmarks.runner import GROUPS, chosen, modules_by_id, table
from evenflow.partitioners import names


@pytest.mark.family
@pytest.mark.more
@pytest.mark.parametrize("scenario", GROUPS["partitioners"])
def test_every_scenario_takes_in_every_name(
    scenario: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = modules_by_id()[scenario]
    monkeypatch.setattr(module, "PLOTS", tmp_path, raising=False)
    result = module.run(smoke=True)
    assert table(result)
    if "partitioners" in result:
        assert set(names()) <= {row["partitioner"] for row in result["partitioners"]}
        assert all(row["ns"] > 0 for row in result["partitioners"])
    if "plot" in result:
        assert Path(result["plot"]).parent == tmp_path
        assert Path(result["plot"]).read_text().startswith("<svg")
    if scenario == "partitioners-growth-keys":
        assert all(0 <= row["state_bytes"] <= row["state_bound"] for row in result["partitioners"])
        assert len({row["state_bound"] for row in result["partitioners"] if row["partitioner"] == "cam"}) == 2


def test_the_group_names_its_scenarios() -> None:
    assert [module.ID for module in chosen(["partitioners"])] == [
        "partitioners-speed",
        "partitioners-growth-workers",
        "partitioners-growth-keys",
        "partitioners-statistics",
        "partitioners-hot-keys",
        "partitioners-prompt-plan",
        "partitioners-partly-quality",
        "partitioners-partly-plan",
    ]
