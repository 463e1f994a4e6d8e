"""Everything in the package keeps the laws of its contract: `python -m pytest tests` in this folder."""

import pytest
from turnstile.partitioner import Turnstile
from turnstile.policy import Patient
from turnstile.sink import SINK

from evenflow.testing import check_aggregate, check_partitioner, check_policy, check_sink


@pytest.mark.parametrize("options", [{}, {"turns": 1}, {"window_ms": 250}])
def test_the_partitioner_keeps_every_law(options: dict) -> None:
    check_partitioner(Turnstile, **options)


def test_the_policy_keeps_every_law() -> None:
    check_policy(Patient)
    check_policy(Patient, patience=1)


@pytest.mark.parametrize("form", ["Spread", "Spread(x, 100)", "GeometricMean"])
def test_the_aggregates_keep_every_law(form: str) -> None:
    check_aggregate(f"turnstile.aggregates:{form}")


def test_the_sink_keeps_every_law() -> None:
    check_sink(SINK)
