"""Where the Delta table of the results is, and how the library deltalake reaches it."""

from __future__ import annotations

import os
from typing import NamedTuple

from evenflow.errors import ConfigError
from evenflow.settings.model import Settings
from evenflow.settings.places import local_folder

_S3A = "s3a://"
_OF_SPARK = "spark.hadoop.fs.s3a."


class DeltaPlace(NamedTuple):
    """The address of a Delta table."""

    uri: str
    """A path, or `s3a://bucket/path`."""
    options: dict[str, str]
    """The library's `storage_options`, empty for a path."""


def delta_place(settings: Settings) -> DeltaPlace:
    """The place of these settings' table, which need `results.path`. ConfigError for a file system that
    was not tried.
    """
    path = settings.results.path
    if path is None:
        raise ConfigError("results.sink = 'delta' needs results.path")
    folder = local_folder(path)
    if folder is not None:
        return DeltaPlace(os.path.abspath(folder), {})
    if not path.startswith(_S3A):
        raise ConfigError(
            f"results.path is {path}, and results.sink = 'delta' writes to folders and to {_S3A} alone",
            hint=(
                f"in an object store with the API of S3 write {_S3A}bucket/path;"
                " elsewhere take results.sink = 'parquet'"
            ),
        )
    return DeltaPlace(path.rstrip("/"), _options(settings.spark.conf))


def _options(conf: dict[str, str]) -> dict[str, str]:
    """What `[spark.conf]` says of the store, in the library's words. Credentials come from the
    environment.
    """
    # A commit is an object that must not be there yet. With this the store itself refuses the second of two.
    options = {"aws_conditional_put": "etag"}
    endpoint, region = (conf.get(f"{_OF_SPARK}{name}") for name in ("endpoint", "endpoint.region"))
    if endpoint:
        secure = conf.get(f"{_OF_SPARK}connection.ssl.enabled", "true").lower() != "false"
        if "://" not in endpoint:
            endpoint = f"{'https' if secure else 'http'}://{endpoint}"
        options["aws_endpoint_url"] = endpoint
        if endpoint.startswith("http://"):
            options["aws_allow_http"] = "true"
    if region:
        options["aws_region"] = region
    return options
