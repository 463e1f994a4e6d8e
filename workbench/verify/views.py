"""A query and its views, verified one after the other and reported together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from evenflow.settings import Settings
from evenflow.settings.views import queries
from workbench.verify.report import Report
from workbench.verify.shell import verify


@dataclass(frozen=True)
class Reports:
    """The reports of a query and its views."""

    by_query: Mapping[str, Report]
    """Name -> report: that of the query first, then that of each view."""

    @property
    def differences(self) -> int:
        """Differences of all reports together."""
        return sum(report.differences for report in self.by_query.values())

    @property
    def exact(self) -> bool:
        """Whether all reports are exact."""
        return all(report.exact for report in self.by_query.values())

    @property
    def ended(self) -> bool:
        """Whether the input, which all share, has ended."""
        return all(report.ended for report in self.by_query.values())

    def as_json(self) -> dict[str, Any]:
        """One object.

        For a query without views this is its report. Otherwise it holds the total, and a report for the query
        and each view, with its name as `query`.
        """
        if len(self.by_query) == 1:
            return asdict(next(iter(self.by_query.values())))
        each = [{"query": name, **asdict(report)} for name, report in self.by_query.items()]
        return {"differences": self.differences, "exact": self.exact, "queries": each}

    def text(self) -> str:
        """The report of the query, then one line for each view, then the total. A view that is not exact
        has its report.
        """
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
            f"{total} difference{'' if total == 1 else 's'} in the query and {number}"
            f" view{'' if number == 1 else 's'}"
        )
        return "\n".join(lines)


def verify_all(
    settings: Settings, *, on_query: Callable[[str], None] = lambda name: None, **how: Any
) -> Reports:
    """Call `verify` for the query and then for each view.

    on_query: called with the name before each. how: keyword arguments of `verify`. Each check is independent:
    the input is read, judged and aggregated anew.
    """
    reports: dict[str, Report] = {}
    for query_settings in queries(settings):
        on_query(query_settings.query.name)
        reports[query_settings.query.name] = verify(query_settings, **how)
    return Reports(reports)
