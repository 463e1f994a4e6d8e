"""How the demos cut micro-batches."""

from __future__ import annotations

from pathlib import Path

import pytest

from evenflow.errors import ConfigError
from workbench.demo.options import DemoOptions, prepare
from workbench.local.clocked_batches import clocked_batches


@pytest.mark.parametrize(("partitioner", "clock"), [("prompt", "processing"), ("evenflow", "event")])
def test_the_demo_cuts_the_batches_of_a_batch_partitioner_by_the_clock(
    tmp_path: Path, partitioner: str, clock: str
) -> None:
    file = tmp_path / "rows.csv"
    file.write_text("k,at\na,1000\nb,2000\n")
    options = DemoOptions(input=str(file), key="k", time="at", partitioner=partitioner)
    settings, _ = prepare(options, tmp_path)
    assert settings.partitioner.batch_clock == clock
    assert (settings.partitioner.batch_interval is not None) == (clock == "processing")


def test_an_unknown_partitioner_is_an_error() -> None:
    with pytest.raises(ConfigError, match="nobody"):
        clocked_batches("nobody", 500)
