"""Corrects a checkpoint that was moved or copied to another place.

Spark's files in a checkpoint name the schema of the state by its whole path. In a moved checkpoint, a query
would not find that schema. In a copied one, it would read the schema in the old place.
"""

from __future__ import annotations

import json
import logging

from pyspark.sql import SparkSession

from spark_consumers.checkpoints.folders import Folder

_LOG = logging.getLogger("evenflow.spark")
_VERSION = "v2"  # of Spark's operator metadata: the name of its folder and the first line of its files
_SCHEMA = "/_stateSchema/"
_DRAFT = "moved-"


def correct_paths(spark: SparkSession, location: str) -> None:
    """Make Spark's files in this checkpoint name the checkpoint's own place.

    Call this before the query starts.
    """
    for operator in Folder(spark, f"{location}/state").names():
        place = f"{location}/state/{operator}"
        qualified_place = Folder(spark, place).qualified()
        metadata = Folder(spark, f"{place}/_metadata")
        _finish(metadata)
        for batch in filter(str.isdecimal, metadata.names(_VERSION)):
            _correct_file(metadata, f"{_VERSION}/{batch}", qualified_place)


def _finish(metadata: Folder) -> None:
    """Finish a correction that was cut off.

    A store without an atomic rename deletes the old file first. A process that is killed at that moment
    leaves only the draft, which then becomes the file.
    """
    batches = set(metadata.names(_VERSION))
    for draft in metadata.names():
        batch = draft.removeprefix(_DRAFT)
        if draft.startswith(_DRAFT) and batch not in batches:
            metadata.replace(draft, f"{_VERSION}/{batch}")


def _correct_file(metadata: Folder, file: str, place: str) -> None:
    version, _, text = (metadata.read(file) or "").partition("\n")
    if version != _VERSION:
        return  # another format: leave the file to Spark
    record = json.loads(text)
    stores = record["stateStoreInfo"]
    before = [list(store["stateSchemaFilePaths"]) for store in stores]
    for store in stores:
        store["stateSchemaFilePaths"] = [_placed(path, place) for path in store["stateSchemaFilePaths"]]
    if before == [store["stateSchemaFilePaths"] for store in stores]:
        return
    _LOG.info("the checkpoint was moved to %s: its file %s is set right", place, file)
    draft = f"{_DRAFT}{file.rpartition('/')[2]}"
    metadata.write(draft, f"{version}\n{json.dumps(record, separators=(',', ':'))}")
    metadata.replace(draft, file)


def _placed(path: str, place: str) -> str:
    _, separator, name = path.partition(_SCHEMA)
    return f"{place}{_SCHEMA}{name}" if separator else path
