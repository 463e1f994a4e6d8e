"""Settings: one `evenflow.toml`, overridden by `EVENFLOW_*` variables, every field documented.

Admission rule: declarations and their validation, and the pure translation of the neutral Kafka
fields into each client's names. Nothing in here connects to anything.
"""

from evenflow.settings.input import InputSettings
from evenflow.settings.loading import load_settings, save_settings
from evenflow.settings.model import (
    KafkaSettings,
    PartitionerSettings,
    ResultSinkName,
    ResultsSettings,
    Settings,
    SparkSettings,
)
from evenflow.settings.query import AggregateSpec, Query

__all__ = [
    "AggregateSpec",
    "InputSettings",
    "KafkaSettings",
    "PartitionerSettings",
    "Query",
    "ResultSinkName",
    "ResultsSettings",
    "Settings",
    "SparkSettings",
    "load_settings",
    "save_settings",
]
