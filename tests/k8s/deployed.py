"""The overlay for one node, as it is, with what the test cluster lacks: images made here, volumes, no
registry.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.ground.containers.product import ROOT

SPACE = "evenflow"


def overlay(folder: Path, made: Mapping[str, str], *, settings: str, volumes: Path) -> Path:
    """A kustomization in `folder` that deploys k8s/overlays/local so. settings: the text of evenflow.toml."""
    (folder / "evenflow.toml").write_text(settings)
    (folder / "volumes.json").write_text(json.dumps(_list([volume(claim, volumes) for claim in CLAIMS])))
    (folder / "kustomization.yaml").write_text(json.dumps(_kustomization(folder, made)))
    return folder


CLAIMS = ("evenflow-checkpoint", "kafka")
# No images of theirs can be had without a registry; what they would be told is tested elsewhere.
_LEFT_OUT = ("prometheus", "grafana")


def _kustomization(folder: Path, made: Mapping[str, str]) -> dict[str, Any]:
    never = [{"op": "add", "path": "/spec/template/spec/containers/0/imagePullPolicy", "value": "Never"}]
    kinds = "StatefulSet|Deployment"
    gone = [
        {"patch": json.dumps(_named("apps/v1", "Deployment", name) | {"$patch": "delete"})}
        for name in _LEFT_OUT
    ]
    return {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "namespace": SPACE,
        "resources": [os.path.relpath(ROOT / "k8s/overlays/local", folder.resolve()), "volumes.json"],
        "images": [_renamed(theirs, ours) for theirs, ours in made.items()],
        "configMapGenerator": [
            {"name": "evenflow-settings", "behavior": "replace", "files": ["evenflow.toml"]}
        ],
        "patches": [{"patch": json.dumps(never), "target": {"kind": kinds}}, *gone],
    }


def _named(version: str, kind: str, name: str) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": SPACE}}


def _renamed(theirs: str, ours: str) -> dict[str, str]:
    name, _, tag = ours.rpartition(":")
    return {"name": theirs, "newName": name, "newTag": tag}


def _list(items: list[dict[str, Any]]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "List", "items": items}


def volume(claim: str, volumes: Path) -> dict[str, Any]:
    """A folder of the node that any user may write, as the provisioners of laptops' clusters give it."""
    place = volumes / claim
    place.mkdir(parents=True, exist_ok=True)
    place.chmod(0o777)
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"test-{claim}"},
        "spec": {
            "capacity": {"storage": "5Gi"},
            "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain",
            "hostPath": {"path": str(place)},
            "claimRef": {"namespace": SPACE, "name": claim},
        },
    }
