"""Changes of settings: put together, applied, and written as lines for evenflow.toml."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from evenflow.expressions.parser import read as expression
from evenflow.grammar.paths import toml_name
from evenflow.settings import AggregateSpec, Query, Settings
from workbench.assist.findings import Changes, Finding

Comments = Mapping[tuple[str, str], str]
"""(section, field) -> the comment behind its line."""
_SECTIONS = ("query", "input", "partitioner", "kafka")


def merged(findings: Iterable[Finding], onto: Changes | None = None) -> dict[str, dict[str, Any]]:
    """All changes of these findings together, on top of `onto`.
    Of two values for one setting the first stays.
    """
    changes = {section: dict(fields) for section, fields in (onto or {}).items()}
    for finding in findings:
        for section, fields in finding.settings.items():
            for name, value in fields.items():
                section_changes = changes.setdefault(section, {})
                section_changes[name] = (
                    value | section_changes.get(name, {})
                    if isinstance(value, dict)
                    else section_changes.get(name, value)
                )
    return changes


def applied(settings: Settings, changes: Changes) -> Settings:
    """The settings with these changes. Raises ValueError if the result is not valid."""
    update = {section: _changed(settings, section, fields) for section, fields in changes.items()}
    mended = settings.model_copy(update=update)
    if mended.input.format == "csv" and not set(mended.needed_columns) <= set(mended.input.columns):
        raise ValueError("input.columns lacks what the query reads")
    return mended.with_any_columns(settings.query.begun_any_columns)


def _changed(settings: Settings, section: str, fields: Mapping[str, Any]) -> Any:
    return type(getattr(settings, section))(**_merged_fields(settings, section, fields))


def _merged_fields(settings: Settings, section: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    merged_fields: dict[str, Any] = getattr(settings, section).model_dump(exclude_unset=True)
    for name, value in fields.items():
        merged_fields[name] = merged_fields.get(name, {}) | value if isinstance(value, dict) else value
    if section == "query":
        _drop_unread_types(merged_fields)
    return merged_fields


def _drop_unread_types(query: dict[str, Any]) -> None:
    """Remove the types of columns that are no longer read, because settings refuse such types."""
    written = [query.get("aggregates", {})]
    written += [dict(view)["aggregates"] for view in query.get("views", {}).values()]
    specs = (
        AggregateSpec.model_validate(AggregateSpec.parse(spec_text))
        for ones in written
        for spec_text in ones.values()
    )
    key = query.get("key", Query.model_fields["key"].default)
    read = {*([key] if isinstance(key, str) else key), *(spec.column for spec in specs)}
    for text in [*query.get("columns", {}).values(), query.get("where")]:
        read |= set() if text is None else set(expression(text, "query").columns)
    if "types" in query:
        query["types"] = {column: kind for column, kind in query["types"].items() if column in read}


def as_toml(settings: Settings, changes: Changes, comments: Comments | None = None) -> str:
    """The lines of evenflow.toml that make these changes.
    `types` stands there in full, because it is one table.
    """
    tables = []
    types = _merged_fields(settings, "query", changes.get("query", {})).get("types", {})
    for section, fields in sorted(changes.items(), key=lambda entry: _SECTIONS.index(entry[0])):
        # `aggregates` is a table of its own below: TOML would count any value behind its heading to it.
        plain = {name: value for name, value in fields.items() if name != "aggregates"}
        if section == "query" and types != settings.query.types:
            plain["types"] = types
        if plain:
            tables.append(_table(section, plain, comments or {}))
        if "aggregates" in fields:
            tables.append(_table(f"{section}.aggregates", fields["aggregates"], comments or {}))
    return "\n".join(tables)


def _table(section: str, fields: Mapping[str, Any], comments: Comments) -> str:
    lines = [f"[{section}]"]
    for name, value in fields.items():
        comment = comments.get((section, name))
        lines.append(f"{toml_name(name)} = {toml_value(value)}" + (f"  # {comment}" if comment else ""))
    return "\n".join([*lines, ""])


def toml_value(value: Any) -> str:
    """The value as TOML writes it."""
    if isinstance(value, dict):
        return (
            "{ "
            + ", ".join(f"{toml_name(name)} = {toml_value(inner)}" for name, inner in value.items())
            + " }"
        )
    # TOML writes strings, numbers, truth values and lists as JSON does.
    return json.dumps(value, ensure_ascii=False)
