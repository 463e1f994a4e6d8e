"""A start is looked at before it takes the stage over from a driver that may be at work meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from evenflow.errors import IncompatibleStateError
from spark_consumers.admission import Admission
from spark_consumers.checkpoints.notes import Checkpoint


class Judged(Admission):
    """Refuses every checkpoint that has no note, as if somebody else's results lay there."""

    def __init__(self) -> None:
        self.judged: list[str] = []

    def _judge(self, checkpoint: Checkpoint, *, noting: bool) -> str:
        assert not noting
        self.judged.append(checkpoint.location)
        if checkpoint.run is None:
            raise IncompatibleStateError("results of another checkpoint")
        return "earliest"


def checkpoints(*runs: tuple[str, str | None]) -> Callable[[], Checkpoint]:
    """The newest checkpoint at each call: its folder and its note. The last one stays."""
    left = list(runs)

    def newest() -> Any:
        location, run = left.pop(0) if len(left) > 1 else left[0]
        return SimpleNamespace(location=location, run=run, planned=None)

    return newest


def test_a_refusal_counts_only_if_no_other_driver_began_the_stage_meanwhile() -> None:
    admission = Judged()
    admission.look(checkpoints(("stage", None), ("stage/run-000001", "its note")))
    assert admission.judged == ["stage", "stage/run-000001"]


def test_a_refusal_counts_if_the_last_run_is_the_same_before_and_after() -> None:
    admission = Judged()
    with pytest.raises(IncompatibleStateError, match="results of another checkpoint"):
        admission.look(checkpoints(("stage", None)))
    assert admission.judged == ["stage"]
