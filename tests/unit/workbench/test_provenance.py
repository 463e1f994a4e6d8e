"""The figures of a pipeline on this machine say what made them, as those of a simulation do."""

from __future__ import annotations

import json
from dataclasses import fields

from evenflow.settings import load_settings
from evenflow.simulation.provenance import Provenance, program
from workbench.provenance import provenance_of_pipeline


def test_a_demo_has_the_fields_of_a_simulation_with_the_options_that_the_service_makes() -> None:
    settings = load_settings(
        query={"key": "carrier", "time": "time_hour", "window": "60s", "slide": "20s"},
        partitioner={"name": "d-choices", "seed": 3, "instances": 2},
    )
    said = provenance_of_pipeline(settings, "flights")
    assert list(said) == [field.name for field in fields(Provenance) if field.name != "cost"]
    assert program().items() <= said.items()
    known = {
        name: said[name]
        for name in ("stream", "key", "time", "hash_seed", "sources", "window_ms", "slide_ms")
    }
    assert list(known.values()) == ["flights", "carrier", "time_hour", 3, 2, 60_000, 20_000]
    assert json.loads(said["options"])["window_ms"] == 60_000, "the service gives it the query's window"
