"""A second `aggregate` of a query that cannot serve its pages ends before it touches what the first one
uses.
"""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

from evenflow.errors import ConfigError
from evenflow.settings import Settings
from spark_consumers import application


def test_a_busy_port_ends_a_second_driver_before_it_replaces_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_far(*given: Any, **words: Any) -> None:
        pytest.fail("it went on to Spark although its port is taken")

    for name in ("wait_for_room", "refuse_changed_notes", "TopicWatch", "LogLines", "_watched", "_topics"):
        monkeypatch.setattr(application, name, lambda *given, **words: {})
    monkeypatch.setattr(application, "admitted", lambda settings: settings)
    for name in (
        "_session",
        "RunningStage",
    ):  # a stage takes the epoch of its query, which ends a driver of an earlier one
        monkeypatch.setattr(application, name, too_far)
    with socket.create_server(("127.0.0.1", 0)) as first:
        port = first.getsockname()[1]
        settings = Settings(
            input={"partitions": 1}, spark={"web_port": port, "checkpoint": str(tmp_path / "checkpoint")}
        )
        with pytest.raises(ConfigError, match=r"spark\.web_port"):
            application.run(settings)
    assert list(tmp_path.iterdir()) == []
