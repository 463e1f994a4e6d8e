"""Where the figures of a pipeline on this machine come from, in the fields of `simulate --json`."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from evenflow.settings import Settings
from evenflow.simulation.provenance import Origin, Provenance, program
from partitioner_service.kafka.learned_state import new_partitioner


def provenance_of_pipeline(settings: Settings, stream: str) -> dict[str, Any]:
    """The provenance as plain JSON. stream: the source as the user named it, whose words have its seed."""
    query, options = settings.query, settings.partitioner
    origin = Origin(stream=stream, key=query.key_name, time=query.time, cost=options.cost)
    effective = new_partitioner(settings).options.model_dump(mode="json")
    return Provenance(
        **program(),
        **asdict(origin),
        hash_seed=options.seed,
        sources=options.instances,
        window_ms=query.window,
        slide_ms=query.slide_ms,
        warmup_slides=None,
        batch=None,
        exchange_delay_ms=None,
        exchange_loss=None,
        options=json.dumps(effective, sort_keys=True),
    ).as_json()
