"""How a training went: one point for each scoring on held-out batches, as JSON and as a picture."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from evenflow.charts.axes import decades, linear
from evenflow.charts.emphasis import looks
from evenflow.charts.lines import Line, lines
from evenflow.charts.page import page, save
from evenflow.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class Point:
    """The policy after so many steps."""

    steps: int
    """Actions trained on."""
    episodes: int
    """Batches that were planned to their end."""
    cpu_s: float
    """CPU time of the training, s."""
    stage: int
    """The stage of actions in which it was trained."""
    cost: float
    """Mean cost of the policy's plans of the held-out batches (`held_out.Score`)."""
    splits: float
    """Split keys of such a batch (`held_out.Score`)."""
    better: float
    """Share of these batches that the policy plans at a lower cost than Prompt (`held_out.Score`)."""
    excess: float | None = None
    """Mean excess of the variance of task times (`held_out.Score`). None without prices."""
    by_times: bool = False
    """Whether rewards were by task times."""


@dataclass(frozen=True, kw_only=True)
class Curve:
    """How a training went."""

    training: Mapping[str, Any]
    """The settings of the training, as plain JSON."""
    points: list[Point]
    """A point for each scoring, in the order of the training."""

    @property
    def steps(self) -> int:
        """Actions trained on so far."""
        return self.points[-1].steps if self.points else 0

    @property
    def episodes(self) -> int:
        """Batches planned so far."""
        return self.points[-1].episodes if self.points else 0

    @property
    def best(self) -> Point | None:
        """The point of the least cost in the stage of the last point. None if there is no point yet.

        If rewards were by task times at last, that of the least excess since then.
        """
        if not self.points:
            return None
        end = self.points[-1]
        last = [point for point in self.points if (point.stage, point.by_times) == (end.stage, end.by_times)]
        return min(last, key=lambda point: (point.excess or 0.0, point.cost) if end.by_times else point.cost)

    def to_bytes(self) -> bytes:
        """As JSON. `read` reads it."""
        fields = {"training": self.training, "points": [asdict(point) for point in self.points]}
        return (json.dumps(fields, indent=1) + "\n").encode()

    @classmethod
    def read(cls, path: Path) -> Curve:
        """The curve in a file. ConfigError if there is none."""
        try:
            fields = json.loads(path.read_bytes())
            return cls(training=fields["training"], points=[Point(**point) for point in fields["points"]])
        except (OSError, ValueError, LookupError, TypeError) as error:
            raise ConfigError(f"{path} is no curve of a training: {error}") from None


def draw(curves: Mapping[str, Curve], path: Path, *, prompt: float) -> None:
    """Draw the cost over the steps of each training, beside Prompt's cost on the same batches.

    The ending of the path says in which format (.png, .svg, .html). ConfigError without a package that charts
    need.
    """
    drawn = {
        name: Line([point.steps for point in curve.points], [point.cost for point in curve.points])
        for name, curve in curves.items()
    }
    most = max(step for line in drawn.values() for step in line.x)
    drawn["Prompt"] = Line([0, most], [prompt, prompt])
    costs = [cost for line in drawn.values() for cost in line.y]
    x, y = linear("actions trained on", [0, most]), decades("mean cost of held-out batches", costs)
    hero = next(iter(curves))
    panel = lines(drawn, looks(drawn, hero=hero, named=list(drawn)), x=x, y=y, title="", width=420)
    save(page([panel], title="How a policy of partly learns to plan batches", columns=1), path)
