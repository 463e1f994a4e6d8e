"""What needs a program that is not on the path says what to install, and installs nothing without root."""

from __future__ import annotations

from pathlib import Path

import pytest

from evenflow.errors import ServiceError
from tests.ground import debian
from workbench.local.prometheus import Prometheus


def test_without_a_prometheus_on_the_path_it_is_said_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ServiceError, match="no program prometheus") as refused, Prometheus(tmp_path, {}):
        pass
    assert "apt-get install --no-install-recommends prometheus" in (refused.value.hint or "")


def test_without_root_a_package_is_not_installed_but_named_with_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(debian.os, "geteuid", lambda: 1_000)
    with pytest.raises(
        ServiceError, match="package postgresql is not installed: you are not root"
    ) as refused:
        debian.install({"postgresql": "pg_ctlcluster", "nothing": "/bin/sh"})
    assert (refused.value.hint or "").endswith("--no-install-recommends postgresql")
