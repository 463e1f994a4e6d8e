"""A Docker engine for the whole run; every test here needs it."""

from __future__ import annotations

from tests.ground.fixtures import docker_engine, java_base, kafka_image, product, python_base

__all__ = ["docker_engine", "java_base", "kafka_image", "product", "python_base"]
