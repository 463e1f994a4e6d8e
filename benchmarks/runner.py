"""Knows all scenarios, runs them, and prints their figures."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from importlib import import_module
from inspect import signature
from typing import Any

from benchmarks.measuring.machine import machine
from evenflow.errors import ConfigError
from evenflow.simulation.provenance import program

SCENARIOS = {
    "topics-roundtrip": "topics_roundtrip",
    "service-partitioner-hashing": "service.partitioner_hashing",
    "service-partitioner-d-choices": "service.partitioner_d_choices",
    "service-partitioner-evenflow": "service.partitioner_evenflow",
    "service-combiner": "pipeline.combiner",
    "service-reducer": "pipeline.reducer",
    "service-end-to-end-fused": "pipeline.end_to_end_fused",
    "service-end-to-end-split": "pipeline.end_to_end_split",
    "service-results": "pipeline.results",
    "service-peers": "pipeline.peers",
    "service-costly-peers": "spark.costly_peers",
    "service-costly-live": "spark.costly_live",
    "tuple-profile": "pipeline.tuple_profile",
    "service-start": "service.start",
    "service-instances": "service.instances",
    "service-shift": "service.shift",
    "service-soak": "soak.scenario",
    "service-batches": "service.batches",
    "service-batch-queries": "service.batch_queries",
    "service-bad-records": "service.bad_records",
    "service-expressions": "service.expressions",
    "service-formats": "service.formats",
    "service-replay": "service.replay",
    "service-metrics": "pipeline.metrics",
    "service-metrics-partitioner": "pipeline.metrics_partitioner",
    "service-metrics-spark": "pipeline.metrics_spark",
    "partitioners-speed": "partitioners.speed",
    "partitioners-growth-workers": "partitioners.growth_workers",
    "partitioners-growth-keys": "partitioners.growth_keys",
    "partitioners-statistics": "partitioners.statistics",
    "partitioners-hot-keys": "partitioners.hot_keys",
    "partitioners-prompt-plan": "partitioners.prompt_plan",
    "partitioners-partly-quality": "partitioners.partly_quality",
    "partitioners-partly-plan": "partitioners.partly_plan",
    "growth-lanes": "cores.growth_lanes",
    "growth-panes": "cores.growth_panes",
    "growth-keys": "cores.growth_keys",
    "growth-service": "service.growth",
    "reducer-emit": "cores.reducer_emit",
    "reduce-prompt": "cores.reduce_prompt",
    "forwarding": "cores.forwarding",
    "stage-costs": "cores.stage_costs",
    "large-state": "cores.large_state",
    "spark-batches-a-trigger": "spark.batches_a_trigger",
    "spark-reduce-prompt": "spark.reduce_prompt",
    "spark-forwarding": "spark.forwarding",
    "spark-travel": "spark.travel",
    "spark-task-times": "spark.task_times",
    "spark-costly-work": "spark.costly_work",
    "elasticity-spike": "elasticity.spike",
    "elasticity-staircase": "elasticity.staircase",
    "elasticity-sine": "elasticity.sine",
    "elasticity-flash-crowd": "elasticity.flash_crowd",
    "elasticity-batches": "elasticity.batches",
    "elasticity-reserve": "elasticity.reserve",
    "scale": "scale",
}
"""Modules below `benchmarks` with one scenario each, by its id, in the order in which they run."""

README_SCENARIOS = (
    "service-costly-peers",
    "service-peers",
    "service-partitioner-hashing",
    "service-partitioner-d-choices",
    "service-partitioner-evenflow",
    "service-combiner",
    "service-replay",
    "service-end-to-end-fused",
    "growth-service",
    "service-results",
    "service-start",
    "partitioners-speed",
    "tuple-profile",
)
"""Scenarios whose figures README and docs/profile.md have. They run one after the other, for 90 minutes."""

GROUPS = {
    group: tuple(name for name in SCENARIOS if name.startswith(f"{group}-"))
    for group in ("service", "partitioners", "growth", "elasticity")
} | {"readme": README_SCENARIOS}
"""Names for several scenarios at once."""


def modules_by_id() -> dict[str, Any]:
    """Scenario modules by their id."""
    return {name: import_module(f"benchmarks.{module}") for name, module in SCENARIOS.items()}


def chosen(names: Sequence[str]) -> list[Any]:
    """Modules of these ids and groups, each module once. All modules if `names` is empty.

    ConfigError for an unknown name.
    """
    modules = modules_by_id()
    groups = {group: [modules[name] for name in names] for group, names in GROUPS.items()}
    unknown = sorted(set(names) - set(modules) - set(groups))
    if unknown:
        raise ConfigError(
            f"unknown benchmark {', '.join(unknown)}", hint=f"there are {', '.join([*modules, *groups])}"
        )
    selection = [module for name in names for module in (groups.get(name) or [modules[name]])]
    # Each module once, in the order of the names.
    return list(dict.fromkeys(selection or modules.values()))


def run_all(names: Sequence[str], *, smoke: bool, as_json: bool, seed: int | None = None) -> None:
    """Run these scenarios. Each prints a table on standard error and, with `as_json`, a line on standard
    output.

    A smoke run of all scenarios leaves out those whose code another one runs (their `SMOKED_BY`).

    seed: in place of their own. ConfigError if one of them takes none.
    """
    modules = chosen(names)
    if seed is not None and (
        fixed := [one.ID for one in modules if "seed" not in signature(one.run).parameters]
    ):
        raise ConfigError(
            f"{', '.join(fixed)}: only the seed of its own is possible",
            hint="leave out --seed, or name others",
        )
    seeds = {} if seed is None else {"seed": seed}
    for module in modules:
        if smoke and not names and hasattr(module, "SMOKED_BY"):
            continue
        # Before the scenario runs, because it puts load on the machine itself.
        facts = machine()
        print(f"{module.ID}: {module.WHAT}", file=sys.stderr, flush=True)
        started = time.perf_counter()
        figures = module.run(smoke=smoke, **seeds)
        seconds = round(time.perf_counter() - started, 2)
        record = {
            "id": module.ID,
            "smoke": smoke,
            **figures,
            "wall_seconds": seconds,
            "machine": facts,
            "provenance": provenance(module, smoke=smoke) | seeds,
        }
        print(table(figures), file=sys.stderr, flush=True)
        if as_json:
            print(json.dumps(record), flush=True)


def provenance(module: Any, *, smoke: bool) -> dict[str, Any]:
    """What makes the figures of a scenario: the fields of `simulate --json` that every scenario has.

    The rest of what it does follows from its id, which never changes its meaning.
    """
    options = json.dumps({"smoke": smoke})
    return {**program(), "stream": module.ID, "seed": module.SEED, "options": options}


def table(figures: dict[str, Any], indent: str = "  ") -> str:
    """The figures as text for people: one a line, spreads as min / median / max."""
    lines = []
    for name, value in figures.items():
        label = f"{indent}{name.replace('_', ' '):<42}"
        if isinstance(value, dict) and set(value) == {"min", "median", "max"}:
            lines.append(label + " / ".join(_shown(value[part]) for part in ("min", "median", "max")))
        elif isinstance(value, dict) and name.startswith("cpu_seconds_per"):
            lines.append(label + "  ".join(f"{k}={_shown(v)}" for k, v in value.items()))
        elif isinstance(value, dict):
            lines += [label.rstrip(), table(value, indent + "  ")]
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            lines += [label.rstrip()]
            lines += [indent + "  " + "  ".join(f"{k}={_shown(v)}" for k, v in row.items()) for row in value]
        else:
            lines.append(label + _shown(value))
    return "\n".join(lines)


def _shown(value: Any) -> str:
    # Before `int`: a bool is an int.
    if isinstance(value, bool) or value is None:
        return "-" if value is None else str(value).lower()
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3f}"
    return str(value)
