"""`evenflow train partly`: what it refuses before it trains."""

import sys
from pathlib import Path

import pytest

from evenflow.commands.frame import missing
from evenflow.commands.train import _range, partly
from evenflow.errors import ConfigError
from evenflow.training.curve import Curve
from evenflow.training.learner import CURVE, Learner, Training


def test_a_range_has_two_ends_or_one_number() -> None:
    assert _range("--data-blocks", "2-32") == (2, 32)
    assert _range("--data-blocks", "24") == (24, 24)
    assert _range("--exponent", "0.5-1.5") == (0.5, 1.5)


@pytest.mark.parametrize("text", ["", "2-", "a", "2..4", "-1"])
def test_anything_else_is_no_range(text: str) -> None:
    with pytest.raises(ConfigError, match="--keys must be a number or a range like 2-32"):
        _range("--keys", text)


def test_numbers_that_no_law_can_draw_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="data_blocks from 0 to 0"):
        partly(tmp_path / "t", data_blocks="0")
    assert not (tmp_path / "t").exists()


def folder_of(training: Training, folder: Path) -> Path:
    """A folder with the beginning of this training."""
    (folder / CURVE).write_bytes(Curve(training=training.facts(), points=[]).to_bytes())
    return folder


def test_a_folder_with_a_training_is_not_overwritten(tmp_path: Path) -> None:
    folder = folder_of(Training(), tmp_path)
    with pytest.raises(ConfigError, match=r"holds a training already(.|\n)*--resume"):
        Learner(Training(), folder, resume=False)


def test_a_training_goes_on_with_its_own_settings_only(tmp_path: Path) -> None:
    folder = folder_of(Training(seed=7), tmp_path)
    with pytest.raises(ConfigError, match="holds a training with other settings"):
        Learner(Training(seed=8), folder, resume=True)


def test_without_the_extra_the_message_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ModuleNotFoundError) as raised:
        Learner(Training(), tmp_path, resume=False)
    assert raised.value.name == "torch"
    assert "pip install 'evenflow[rl]'" in str(missing("torch"))
