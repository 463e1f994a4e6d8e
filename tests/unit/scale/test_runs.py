"""The model beside measured runs."""

from evenflow.scale import measured
from evenflow.scale.runs import factor, runs


def test_the_model_is_near_what_was_measured_as_a_whole() -> None:
    compared = runs(measured()[0])
    apart = [run for run in compared if not run.fitted]
    assert len({run.setting for run in apart}) >= 10
    middle, largest = factor(apart)
    assert middle < 1.5, "docs/scale.md says so"
    assert largest < 5, "docs/scale.md says so"
    assert factor([run for run in compared if run.fitted])[1] < 1.1
