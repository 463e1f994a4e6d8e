"""A partition that is held back for long is named once, with the one it waits for."""

from __future__ import annotations

import logging

import pytest

from partitioner_service.pace import HeldBack


def test_a_partition_held_back_for_a_minute_is_named_once_until_it_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = iter([0, 30, 59, 60, 90, 500, 600, 650, 661])
    now = 0.0
    held = HeldBack(lambda: now)

    def hold_back(times: int) -> None:
        nonlocal now
        for _ in range(times):
            now = float(next(clock))
            held.now([2], 1)

    with caplog.at_level(logging.WARNING):
        hold_back(3)
        assert caplog.messages == []
        hold_back(3)
        assert len(caplog.messages) == 1
        assert "input partition 2 has waited 60 s for partition 1" in caplog.messages[0]
        held.now([], 1)
        hold_back(3)
    assert len(caplog.messages) == 2
