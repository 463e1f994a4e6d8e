"""What the words of a demo become in the settings of its services."""

from __future__ import annotations

from pathlib import Path

import pytest

from workbench.demo.options import DemoOptions, prepare


@pytest.mark.parametrize("forwarding", ["on", "off"])
def test_a_demo_forwards_if_it_is_asked_to(tmp_path: Path, forwarding: str) -> None:
    file = tmp_path / "rows.csv"
    file.write_text("k,at\na,1000\nb,2000\n")
    options = DemoOptions(input=str(file), key="k", time="at", partitioner="hashing", forwarding=forwarding)
    settings, _ = prepare(options, tmp_path)
    assert settings.partitioner.forwarding == forwarding
    assert settings.buckets.forwarding_seed == (settings.partitioner.seed if forwarding == "on" else None)
    assert DemoOptions().forwarding == "off"
