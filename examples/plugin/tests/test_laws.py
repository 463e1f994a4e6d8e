"""The partitioner and the policy keep every law of their contracts: `python -m pytest tests` in this folder."""

import pytest
from turnstile.partitioner import Turnstile
from turnstile.policy import Patient

from evenflow.testing import check_partitioner, check_policy


@pytest.mark.parametrize("options", [{}, {"turns": 1}, {"window_ms": 250}])
def test_the_partitioner_keeps_every_law(options: dict) -> None:
    check_partitioner(Turnstile, **options)


def test_the_policy_keeps_every_law() -> None:
    check_policy(Patient)
    check_policy(Patient, patience=1)
