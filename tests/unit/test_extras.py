"""Each service runs with the packages of its own extra, which is what its image has: nothing else is
imported.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
_LOOK = """
from evenflow.settings import load_settings
from partitioner_service.reading.parse import Parser
from workbench.assist.sample_check.facts import facts_of
from workbench.assist.sample_check.sample import TopicRecords

for form, more in (("json", {}), ("avro", {"registry": {"url": "http://127.0.0.1:1"}})):
    made = load_settings(
        query={
            "name": "q",
            "where": "amount > 1",
            "columns": {"twice": "amount * 2"},
            "aggregates": {"s": "sum(twice)"},
        },
        input={"format": form, "partitions": 1} | more,
    )
    Parser(made)
    facts_of(made, TopicRecords("t", ()))
"""
SERVICES = {
    "partitioner": ("partitioner", "import partitioner_service.app, cli.partition, cli.main" + _LOOK),
    "spark": ("spark,controller", "import spark_consumers.application, cli.spark, cli.main" + _LOOK),
    "controller": ("controller", "import controller.service, cli.control, cli.main"),
    "tools": ("tools", "import workbench.verify.shell, producers.replay, cli.main" + _LOOK),
}
_HIDDEN = """
import importlib.machinery, sys
hidden = set({hidden})

class Hides:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in hidden:
            raise ModuleNotFoundError(f"{{name}} is in no package of this extra", name=name)

sys.meta_path.insert(0, Hides())
"""


def closure(extras: str) -> set[str]:
    """Names of all distributions that these extras of evenflow install."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    result: set[str] = set()
    waiting = [Requirement(text) for text in project["dependencies"]] + [Requirement(f"evenflow[{extras}]")]
    seen: set[tuple[str, str]] = set()
    while waiting:
        wanted = waiting.pop()
        name = canonicalize_name(wanted.name)
        for extra in sorted(wanted.extras) or [""]:
            if (name, extra) in seen:
                continue
            seen.add((name, extra))
            if name == "evenflow":
                waiting += map(Requirement, project["optional-dependencies"][extra])
                continue
            result.add(name)
            for text in requires(name) or ():
                one = Requirement(text)
                if one.marker is None or one.marker.evaluate({"extra": extra}):
                    waiting.append(one)
    return result


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_imports_nothing_that_its_extra_does_not_install(service: str) -> None:
    extras, code = SERVICES[service]
    installed = closure(extras)
    tops = packages_distributions()
    hidden = [
        top
        for top, names in tops.items()
        if not {canonicalize_name(name) for name in names} & installed
        and not (ROOT / top).exists()
        and top not in sys.stdlib_module_names
    ]
    assert {"pytest", "ruff"} <= set(hidden) | {"ruff"}
    words = [sys.executable, "-c", _HIDDEN.format(hidden=json.dumps(hidden)) + code]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
