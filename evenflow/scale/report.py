"""A planned pipeline as one JSON object, with where its figures come from."""

from __future__ import annotations

import hashlib
from dataclasses import asdict
from typing import Any

from evenflow.scale.costs import by_place
from evenflow.scale.limits import breaks, over_budget, shortest_delay
from evenflow.scale.lines import overlay_lines, settings_lines
from evenflow.scale.measurements import MEASURED, measured
from evenflow.scale.runs import factor, runs
from evenflow.scale.sizes import Sizes
from evenflow.simulation.provenance import commit, cores, cpu_model, evenflow_version


def as_json(sizes: Sizes) -> dict[str, Any]:
    """The demand, the sizes, the settings' lines, what breaks first, how far the model is off,
    and the provenance.
    """
    measurements, machine = measured()
    shape = sizes.shape
    middle, largest = factor([run for run in runs(measurements) if not run.fitted])
    return {
        "demand": asdict(sizes.demand),
        "fits": not sizes.misfits,
        "misfits": list(sizes.misfits),
        "instances": shape.instances,
        "brokers": shape.brokers,
        "executors": sizes.executors,
        "input_partitions": shape.inputs,
        "buckets": shape.buckets,
        "combine_tasks": shape.tasks,
        "linger_seconds": shape.linger,
        "commit_seconds": shape.commit,
        "batch_seconds": shape.batch,
        "tuples_in_a_frame": shape.rate / shape.frames,
        "frames_a_micro_batch": sizes.frames_per_batch,
        "micro_batch_takes_seconds": sizes.batch_seconds,
        "memory_bytes": asdict(sizes.memory),
        "cores": by_place(sizes.bill),
        "busy": sizes.busy(),
        "over_budget": over_budget(sizes),
        "breaks": [asdict(place_break) for place_break in breaks(sizes)],
        "shortest_delay_seconds": shortest_delay(sizes),
        "settings": settings_lines(sizes),
        "overlay": overlay_lines(sizes),
        "model_over_measured": {"median_factor": middle, "largest_factor": largest},
        "provenance": {
            "version": evenflow_version(),
            "commit": commit(),
            "cpu": cpu_model(),
            "cores": cores(),
            "unit_costs": hashlib.sha256(MEASURED.read_bytes()).hexdigest(),
            "unit_costs_measured_on": machine,
        },
    }
