"""Settings: one `evenflow.toml`, overridden by `EVENFLOW_*` variables, every field documented.

Admission rule: declarations of settings and their validation, and the pure translation of the neutral Kafka
fields into each client's names. Nothing in here connects to a broker or another service.
"""

from evenflow.grammar.aggregate_spec import AggregateSpec
from evenflow.settings.loading import load_settings, save_settings
from evenflow.settings.model import Settings
from evenflow.settings.sections.control import ControlSettings
from evenflow.settings.sections.input import InputSettings
from evenflow.settings.sections.kafka import KafkaSettings
from evenflow.settings.sections.partitioner import PartitionerSettings
from evenflow.settings.sections.query import Query
from evenflow.settings.sections.result_sinks import BUILT_IN_SINKS
from evenflow.settings.sections.results import ResultsSettings
from evenflow.settings.sections.spark import SparkSettings
from evenflow.settings.sections.web import WebSettings

__all__ = [
    "BUILT_IN_SINKS",
    "AggregateSpec",
    "ControlSettings",
    "InputSettings",
    "KafkaSettings",
    "PartitionerSettings",
    "Query",
    "ResultsSettings",
    "Settings",
    "SparkSettings",
    "WebSettings",
    "load_settings",
    "save_settings",
]
