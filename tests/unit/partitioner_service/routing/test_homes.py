"""Forwarding needs homes that are F_1, and an instance says so if its partitioner has others."""

from __future__ import annotations

from typing import Any

import pytest

from evenflow.settings import Settings
from partitioner_service.kafka.learned_state import new_partitioner
from partitioner_service.plane.opening import warn_of_homes


def warned(caplog: pytest.LogCaptureFixture, **partitioner: Any) -> list[str]:
    """What is said at the start with this partitioner."""
    caplog.clear()
    settings = Settings(query={"name": "q"}, partitioner={"forwarding": "on", **partitioner})
    warn_of_homes(settings, new_partitioner(settings))
    return [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]


@pytest.mark.parametrize(
    "how",
    [
        {"name": "prompt", "batch_interval": 100},
        {"name": "pkg"},
        {"name": "evenflow"},
        {"name": "evenflow", "options": {"tail": "hash", "weights": [1.0] * 7 + [0.5]}, "workers": 8},
    ],
)
def test_an_instance_whose_homes_of_keys_are_its_own_says_that_forwarding_brings_little(
    how: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    (said,) = warned(caplog, **how)
    assert f"brings little with {how['name']}" in said
    assert warned(caplog, **how, forwarding="off") == []


@pytest.mark.parametrize(
    "how",
    [
        {"name": "hashing"},
        {"name": "dalton"},
        {"name": "evenflow", "options": {"tail": "hash"}},
        {"name": "evenflow", "instances": 2},
    ],
)
def test_an_instance_whose_homes_are_f1_says_nothing(
    how: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    assert warned(caplog, **how) == []
