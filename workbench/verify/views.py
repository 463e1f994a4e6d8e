"""A query and its views verified one after the other, and said together."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from evenflow.settings import Settings
from evenflow.settings.views import queries
from workbench.verify.report import Report
from workbench.verify.shell import verify


@dataclass(frozen=True)
class Reports:
    """What verify found, by name: the query first, then each view."""

    by_query: Mapping[str, Report]

    @property
    def differences(self) -> int:
        """Of all together."""
        return sum(report.differences for report in self.by_query.values())

    @property
    def exact(self) -> bool:
        """All of them are."""
        return all(report.exact for report in self.by_query.values())

    @property
    def ended(self) -> bool:
        """Their input is one: all of it was read and has ended."""
        return all(report.ended for report in self.by_query.values())

    def json(self) -> str:
        """One line: the report of a query without views, else the total and a report for each, with its name as `query`."""
        if len(self.by_query) == 1:
            return next(iter(self.by_query.values())).json()
        each = [{"query": name, **asdict(report)} for name, report in self.by_query.items()]
        return json.dumps({"differences": self.differences, "exact": self.exact, "queries": each})

    def text(self) -> str:
        """The report of the query. Then a line a view, or its report where it is not exact. Then the total."""
        whole, *views = self.by_query.items()
        if not views:
            return whole[1].text()
        lines = [f"query {whole[0]}:", whole[1].text()]
        for name, report in views:
            if report.exact:
                lines.append(
                    f"view {name}: {report.windows} windows, {report.rows} rows compared, 0 differences"
                )
            else:
                lines += [f"view {name}:", report.text()]
        total, number = self.differences, len(views)
        lines.append(
            f"{total} difference{'' if total == 1 else 's'} in the query and {number} view{'' if number == 1 else 's'}"
        )
        return "\n".join(lines)


def verify_all(settings: Settings, *, told: Callable[[str], None] = lambda name: None, **how: Any) -> Reports:
    """`verify` for the query and then for each view. how: its words. told: called with the name before each.

    Each is a check of its own: the input is read, judged and aggregated anew.
    """
    found: dict[str, Report] = {}
    for one in queries(settings):
        told(one.query.name)
        found[one.query.name] = verify(one, **how)
    return Reports(found)
