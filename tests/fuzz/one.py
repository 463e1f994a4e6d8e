"""`python -m tests.fuzz.one TARGET FOLDER SECONDS`: fuzz one target with libFuzzer, which ends the
process.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import FunctionType, ModuleType

import atheris

from tests.fuzz.targets import try_input
from tests.unit.test_hostile_bytes import DECODERS

_INSTRUMENTED = [
    "evenflow.elasticity.groups",
    "evenflow.elasticity.policy",
    "evenflow.wire.markers",
    "evenflow.partitioners.snapshots",
    "evenflow.plans",
    "evenflow.text.strict_json",
    "evenflow.telemetry",
    "evenflow.wire.envelope",
    "evenflow.wire.result_frames",
    "partitioner_service.begin.run_note",
    "partitioner_service.fetch.messages",
    "partitioner_service.reading.registered.avro_schema",
    "spark_consumers.checkpoints.epoch",
    "spark_consumers.checkpoints.result_files",
    "spark_consumers.sinks.avro",
    "spark_consumers.sinks.base",
    "topics.query.record",
    "topics.query.skip_orders",
    "workbench.registered.avro",
    "workbench.registered.avro_schema",
    "workbench.registered.avro_walk",
    "workbench.registered.protobuf",
    "workbench.registered.records",
    "workbench.verify.input.markers",
    "workbench.verify.input.messages",
    "workbench.verify.input.strict_reader",
]
"""Modules whose branches are counted. None has a compiled kernel: numba does not compile instrumented code.

Their functions are instrumented one by one, as atheris can do it for whole packages only.
"""


def _functions(module: ModuleType) -> Iterator[FunctionType]:
    """The functions and methods that this module defines."""
    owners = [vars(module), *(vars(one) for one in vars(module).values() if isinstance(one, type))]
    for owner in owners:
        for one in owner.values():
            result = getattr(one, "__func__", getattr(one, "fget", one))
            if isinstance(result, FunctionType) and result.__module__ == module.__name__:
                yield result


def main() -> None:
    """Fuzz until the seconds have passed. Exit status 77 if an input raised."""
    target, folder, seconds = sys.argv[1:4]
    for name in _INSTRUMENTED:
        for function in _functions(import_module(name)):
            atheris.instrument_func(function)
    Path(folder).mkdir(parents=True, exist_ok=True)
    (Path(folder) / "valid").write_bytes(DECODERS[target].valid)
    options = [f"-max_total_time={seconds}", "-max_len=4096", "-timeout=20", f"-artifact_prefix={folder}/"]
    atheris.Setup([sys.argv[0], folder, *options], lambda data: try_input(target, data))
    atheris.Fuzz()


if __name__ == "__main__":
    main()
