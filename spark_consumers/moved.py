"""A checkpoint that was moved: Spark's files of it name the state's schema by its whole path, which is set right here.

Otherwise a query would not find it, or read it in the place that it was copied from.
"""

from __future__ import annotations

import json
import logging

from pyspark.sql import SparkSession

from spark_consumers.folders import Folder

_LOG = logging.getLogger("evenflow.spark")
_VERSION = "v2"
_SCHEMA = "/_stateSchema/"
_DRAFT = "moved-"


def settle_in(spark: SparkSession, location: str) -> None:
    """Let what Spark wrote into this checkpoint name its own place. To be called before its query starts."""
    for operator in Folder(spark, f"{location}/state").names():
        place = f"{location}/state/{operator}"
        here = Folder(spark, place).qualified()
        metadata = Folder(spark, f"{place}/_metadata")
        _finish(metadata)
        for batch in filter(str.isdecimal, metadata.names(_VERSION)):
            _settle(metadata, f"{_VERSION}/{batch}", here)


def _finish(metadata: Folder) -> None:
    """A store without a rename deletes the file first: whoever is killed then leaves its draft only."""
    there = set(metadata.names(_VERSION))
    for draft in metadata.names():
        batch = draft.removeprefix(_DRAFT)
        if draft.startswith(_DRAFT) and batch not in there:
            metadata.replace(draft, f"{_VERSION}/{batch}")


def _settle(metadata: Folder, file: str, here: str) -> None:
    version, _, text = (metadata.read(file) or "").partition("\n")
    if version != _VERSION:
        return
    record = json.loads(text)
    stores = record["stateStoreInfo"]
    before = [list(store["stateSchemaFilePaths"]) for store in stores]
    for store in stores:
        store["stateSchemaFilePaths"] = [_placed(path, here) for path in store["stateSchemaFilePaths"]]
    if before == [store["stateSchemaFilePaths"] for store in stores]:
        return
    _LOG.info("the checkpoint was moved to %s: its file %s is set right", here, file)
    draft = f"{_DRAFT}{file.rpartition('/')[2]}"
    metadata.write(draft, f"{version}\n{json.dumps(record, separators=(',', ':'))}")
    metadata.replace(draft, file)


def _placed(path: str, here: str) -> str:
    _, found, name = path.partition(_SCHEMA)
    return f"{here}{_SCHEMA}{name}" if found else path
