"""What is logged without any option."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from evenflow.commands.logs import configure
from partitioner_service.app import _Consumer, _Reader


@pytest.fixture
def loggers() -> Iterator[None]:
    before = logging.getLogger().handlers[:], logging.getLogger().level
    configure(quiet=False, verbose=False, as_json=False)
    yield
    logging.basicConfig(handlers=before[0], level=before[1], force=True)


@pytest.mark.usefixtures("loggers")
def test_each_later_try_of_a_start_is_heard() -> None:
    assert logging.getLogger("evenflow.start").isEnabledFor(logging.INFO)


@pytest.mark.usefixtures("loggers")
@pytest.mark.parametrize("kind", [_Consumer, _Reader])
def test_what_faust_says_of_its_consumer_is_not(kind: type) -> None:
    assert not kind.logger.isEnabledFor(logging.WARNING)
