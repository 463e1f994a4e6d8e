"""The product's own images, as its Dockerfile makes them on base images of this machine."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests.ground.containers.bases import java_base, python_base
from tests.ground.containers.building import build
from tests.ground.containers.engine import Engine
from tests.ground.containers.kafka import kafka_image

ROOT = Path(__file__).parents[3]
REPOSITORY = "evenflow-test"
TARGETS = ("partitioner", "controller", "spark", "tools")
TAG = "0.1.0"


def product_images(engine: Engine) -> dict[str, str]:
    """Build every target of the Dockerfile; target -> name of its image."""
    return {target: _image(engine, target) for target in TARGETS}


def images(engine: Engine) -> dict[str, str]:
    """The product's images and Kafka's: image of the manifests -> image of the engine."""
    made = {f"evenflow/{target}": image for target, image in product_images(engine).items()}
    return {"apache/kafka": kafka_image(engine), **made}


def other_version(engine: Engine, image: str) -> str:
    """`image`, as if it were of a later evenflow that reads and writes other formats; returns its name."""
    recipe = Path(__file__).parents[1] / "images" / "other" / "Dockerfile"
    name = f"{image.partition(':')[0]}-other:local"
    return build(engine, recipe.parent, name, dockerfile=recipe, arguments={"BASE": image})


def own_images(engine: Engine, product: Mapping[str, str]) -> dict[str, str]:
    """The product's images with the package examples/plugin in each, by its Dockerfile; target -> name of
    its image.
    """
    folder = ROOT / "examples" / "plugin"
    return {
        target: build(
            engine,
            folder,
            f"{image.partition(':')[0]}-own:local",
            arguments={"PREFIX": REPOSITORY, "PART": target, "VERSION": TAG},
        )
        for target, image in product.items()
    }


def _image(engine: Engine, target: str) -> str:
    base = java_base(engine) if target == "spark" else python_base(engine)
    return build(engine, ROOT, f"{REPOSITORY}/{target}:{TAG}", target=target, arguments={"BASE": base})
