"""What a training leaves behind: its curve, as JSON and as a picture."""

from pathlib import Path

import pytest

from evenflow.errors import ConfigError
from evenflow.training.curve import Curve, Point, draw


def point(steps: int, stage: int, cost: float) -> Point:
    return Point(steps=steps, episodes=steps // 80, cpu_s=1.0, stage=stage, cost=cost, splits=2.0, better=0.9)


CURVE = Curve(training={"seed": 7}, points=[point(100, 1, 0.01), point(200, 2, 0.3), point(300, 2, 0.2)])


def test_a_curve_comes_back_from_its_file(tmp_path: Path) -> None:
    path = tmp_path / "curve.json"
    path.write_bytes(CURVE.to_bytes())
    assert Curve.read(path) == CURVE


def test_the_best_point_is_one_of_the_last_stage() -> None:
    assert CURVE.best == CURVE.points[2]
    assert Curve(training={}, points=[]).best is None


@pytest.mark.parametrize("content", [b"", b"[]", b'{"training": {}, "points": [{}]}'])
def test_a_file_that_is_no_curve_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "curve.json"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match="is no curve of a training"):
        Curve.read(path)


def test_curves_are_drawn_beside_prompt(tmp_path: Path) -> None:
    path = tmp_path / "curve.svg"
    draw({"with": CURVE, "without": CURVE}, path, prompt=0.25)
    assert "Prompt" in path.read_text()
