"""Which scenarios a run takes in."""

from benchmarks.runner import known


def test_a_scenario_that_a_smoke_run_leaves_out_names_one_that_it_does_not() -> None:
    modules = known()
    left_out = {name: module.SMOKED_BY for name, module in modules.items() if hasattr(module, "SMOKED_BY")}
    assert set(left_out.values()) <= set(modules) - set(left_out)
