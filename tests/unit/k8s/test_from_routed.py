"""The commands of docs/operations/data-loss.md for `--from-routed` in a cluster fit the manifests."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/operations/data-loss.md").read_text()
COMMANDS = PAGE[PAGE.index("    before=$(kubectl") : PAGE.index("**Before a long stop.**")]


def manifest(file: str, kind: str) -> dict[str, Any]:
    (result,) = [
        one for one in yaml.safe_load_all((ROOT / "k8s/base" / file).read_text()) if one["kind"] == kind
    ]
    return dict(result)


def patched(whole: Any, patch: list[dict[str, Any]]) -> None:
    """Apply a JSON patch of `add` behind the last entry and of `remove`. Raises KeyError for what is not
    there.
    """
    for one in patch:
        *path, last = one["path"].strip("/").split("/")
        place = whole
        for name in path:
            place = place[int(name)] if isinstance(place, list) else place[name]
        if one["op"] == "add":
            assert last == "-"
            place.append(one["value"])
        else:
            assert one["op"] == "remove"
            del place[last]


def test_the_patch_makes_one_start_with_the_word_and_without_the_probes_that_kill() -> None:
    partitioner = manifest("partitioner.yaml", "StatefulSet")
    (text,) = re.findall(r"--type=json -p \\\n\s*'(.*?)'\n", COMMANDS, re.DOTALL)
    patched(partitioner, json.loads(text))
    (container,) = partitioner["spec"]["template"]["spec"]["containers"]
    assert container["args"][-2:] == ["partition", "--from-routed"]
    assert not {"startupProbe", "livenessProbe"} & container.keys()


def test_the_replicas_of_before_are_set_again_because_no_manifest_says_how_many_there_are() -> None:
    assert "replicas" not in manifest("partitioner.yaml", "StatefulSet")["spec"]
    scales = re.findall(r"scale statefulset evenflow-partitioner --replicas=(\S+)", COMMANDS)
    assert scales == ["0", "1", '"$before"']
    assert COMMANDS.index("before=") < COMMANDS.index("--replicas=0")
    assert COMMANDS.rindex("scale statefulset") > COMMANDS.index("apply -k"), "the arguments first"


def test_the_controller_rests_meanwhile_and_its_manifest_brings_it_back() -> None:
    assert "scale deployment evenflow-controller --replicas=0" in COMMANDS
    assert manifest("controller.yaml", "Deployment")["spec"]["replicas"] > 0


@pytest.mark.parametrize(
    ("kind", "file"), [("StatefulSet", "partitioner.yaml"), ("Deployment", "controller.yaml")]
)
def test_the_commands_name_what_the_manifests_name(kind: str, file: str) -> None:
    one = manifest(file, kind)
    assert re.findall(rf"{kind.lower()} (evenflow-\w+)", COMMANDS)[0] == one["metadata"]["name"]
    if kind == "StatefulSet":
        labels = one["spec"]["template"]["metadata"]["labels"]
        assert f"-l app.kubernetes.io/component={labels['app.kubernetes.io/component']}" in COMMANDS
