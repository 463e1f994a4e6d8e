"""What the verdict of `service-soak` is made of."""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path

import pytest

from benchmarks.measuring.pipelines import printed_object
from benchmarks.soak import scenario
from benchmarks.soak.__main__ import PAGE, ROWS
from benchmarks.soak.along import Comparison, ReadingAlong, comparison_of, gaps
from benchmarks.soak.course import Soak, of_topics, verdict
from benchmarks.soak.retention import fullest_partitions, topic_settings
from benchmarks.soak.sizes import of_folder, of_process, thirds_after_start
from benchmarks.soak.tables import into, sizes_table
from evenflow.errors import ServiceError
from evenflow.settings import load_settings
from evenflow.settings.views import TopicRole
from workbench.local.processes import ChildProcess


def test_what_grows_is_seen_and_how_it_began_is_left_out() -> None:
    steady = [900.0] * 3 + [100.0] * 9
    grows = [10.0 * number for number in range(12)]
    assert thirds_after_start(steady) == (100.0, 100.0)
    assert thirds_after_start(grows) == (40.0, 100.0)
    assert sizes_table({"steady": steady, "grows": grows}).splitlines()[2:] == [
        "| steady | 100 | 100 | 1.00 |",
        "| grows | 40 | 100 | 2.50 |",
    ]
    with pytest.raises(ValueError, match="11 looks are too few"):
        thirds_after_start([1.0] * 11)


def test_a_process_and_a_folder_have_the_sizes_that_they_have(tmp_path: Path) -> None:
    memory, files, threads = of_process(os.getpid())
    with (tmp_path / "a").open("wb"):
        assert of_process(os.getpid())[1] == files + 1
    assert memory > 10
    assert threads >= 1
    _write(tmp_path / "a", 2**20)
    assert of_folder(tmp_path) == (1, 1.0)


def test_a_file_that_is_longer_than_what_is_in_it_takes_no_more_than_that(tmp_path: Path) -> None:
    with (tmp_path / "index").open("wb") as index:
        index.truncate(10 * 2**20)
    assert of_folder(tmp_path) == (1, 0.0)


def _comparison(
    since: int | None, until: int | None, *, ended: bool = False, doubtful: int = 0
) -> Comparison:
    return Comparison(since, until, ended, read=0, rows=0, differences=0, doubtful=doubtful, seconds=1.0)


LAST = _comparison(None, None, ended=True)


def _gaps(*comparisons: Comparison, begin: int = 3_000) -> list[str]:
    return gaps(comparisons, begin=begin, window=10_000, slide=2_000)


def test_windows_between_two_runs_of_verify_are_noticed() -> None:
    earlier = _comparison(None, 30_000)  # its last window began at 20,000
    assert _gaps(earlier, _comparison(22_000, 60_000), LAST) == []
    assert _gaps(earlier, _comparison(22_001, 60_000), LAST) == [
        "windows that begin from 22000 on, before 22001, were not compared"
    ]
    assert _gaps(earlier, _comparison(None, 60_000), LAST) == []


def test_windows_before_the_first_run_and_after_the_last_are_noticed() -> None:
    assert _gaps(_comparison(2_000, 30_000), LAST) == []
    assert _gaps(_comparison(2_001, 30_000), LAST) == [
        "windows that begin from 2000 on, before 2001, were not compared"
    ]
    assert _gaps(_comparison(None, 30_000)) == ["windows that begin from 22000 on were not compared"]
    assert _gaps() == ["windows that begin from 2000 on were not compared"]


def test_where_no_window_was_due_yet_the_next_run_must_have_all_of_them() -> None:
    nothing = _comparison(None, None)
    assert _gaps(nothing, _comparison(2_000, 60_000), LAST) == []
    assert _gaps(nothing, _comparison(12_000, 60_000), LAST) != []


def test_after_a_run_that_saw_the_end_of_the_input_nothing_is_left() -> None:
    ended = _comparison(2_000, None, ended=True)
    assert _gaps(ended, _comparison(40_000, None, ended=True)) == []


def test_a_soak_must_have_deleted_something_and_compared_all_rows() -> None:
    assert verdict([_comparison(2_000, 30_000), LAST], begin=3_000) == []
    assert verdict([_comparison(None, 30_000), LAST], begin=3_000) == [
        "retention has deleted nothing of the input"
    ]
    assert verdict([_comparison(2_000, 30_000, doubtful=3), LAST], begin=3_000) == [
        "3 rows were not compared, because retention had deleted results"
    ]


def _run(tmp_path: Path, code: str) -> ReadingAlong:
    along = ReadingAlong(
        lambda: ChildProcess([sys.executable, "-c", code], log=tmp_path / "verify.log"), period=0.0
    )
    along.once()
    return along


_REPORT = {
    "compared_from": 4,
    "mark": 9,
    "ended": False,
    "counters": [{"committed_read": 20}, {"committed_read": 3}],
    "rows": 7,
    "differences": 0,
    "doubtful_rows": 1,
}


def test_what_a_run_of_verify_has_compared_is_read_from_its_report(tmp_path: Path) -> None:
    expected = Comparison(4, 9, False, read=23, rows=7, differences=0, doubtful=1, seconds=2.0)
    assert comparison_of(_REPORT, 2.04) == expected
    along = _run(tmp_path, f"print('a warning'); print({json.dumps(_REPORT)!r})")
    assert [each._replace(seconds=2.0) for each in along.comparisons] == [expected]
    assert (along.interruptions, along.failures) == (0, [])


def test_a_run_with_differences_is_a_failure_and_so_is_one_that_breaks_off(tmp_path: Path) -> None:
    along = _run(tmp_path, f"print({json.dumps(_REPORT)!r}); raise SystemExit(1)")
    assert len(along.comparisons) == len(along.failures) == 1
    for error in ("the broker does not answer", "soak.input[2] was truncated: its last records are gone"):
        along = _run(tmp_path, f"raise SystemExit({error!r})")
        assert (along.comparisons, along.interruptions) == ([], 0)
        assert error in along.failures[0]
    assert len(_run(tmp_path, "print('no report')").failures) == 1


@pytest.mark.parametrize(
    "error",
    ["soak.input[2]: offsets 5 to 8 are gone", "soak.input[2]: the offset to read is gone: out of range"],
)
def test_a_run_whose_records_were_deleted_meanwhile_is_counted_and_is_no_failure(
    tmp_path: Path, error: str
) -> None:
    along = _run(tmp_path, f"raise SystemExit({error!r})")
    assert (along.comparisons, along.interruptions, along.failures) == ([], 1, [])


def test_runs_follow_each_other_until_the_end_and_the_last_one_comes_to_its_end(tmp_path: Path) -> None:
    code = f"print({json.dumps(_REPORT)!r})"
    starts = iter(range(1000))
    with ReadingAlong(
        lambda: ChildProcess([sys.executable, "-c", code], log=tmp_path / f"{next(starts)}.log"), period=0.0
    ) as along:
        while len(along.comparisons) < 2 and not along.failures:
            threading.Event().wait(0.01)
    assert len(along.comparisons) == next(starts)


def test_what_goes_wrong_beside_is_a_failure(tmp_path: Path) -> None:
    with ReadingAlong(lambda: ChildProcess([], log=tmp_path / "verify.log"), period=0.0) as along:
        pass
    assert "IndexError" in along.failures[0]


def test_an_error_does_not_wait_for_the_run_under_way(tmp_path: Path) -> None:
    code = "import time; print('begun', flush=True); time.sleep(300)"
    log = tmp_path / "verify.log"

    def begin_and_fail() -> None:
        with ReadingAlong(lambda: ChildProcess([sys.executable, "-c", code], log=log), period=0.0):
            while not log.exists() or "begun" not in log.read_text(encoding="utf-8"):
                threading.Event().wait(0.01)
            raise ServiceError("a service has ended")

    with pytest.raises(ServiceError):
        begin_and_fail()


def test_topics_keep_what_lasts_so_long_at_the_rate() -> None:
    each: dict[TopicRole, float] = {"input": 30.0, "routed": 10.0, "results": 0.0}
    settings = topic_settings(each, 1_000_000)
    assert settings["input"] == {"retention.bytes": 9_000_000_000, "segment.bytes": 1_125_000_000}
    assert topic_settings(each, 1_000_000, scale=0.5)["routed"]["retention.bytes"] == 500_000_000
    assert settings["results"] == {"retention.bytes": 2**20, "segment.bytes": 2**20}


def test_topics_are_looked_at_by_what_they_are_for(tmp_path: Path) -> None:
    settings = load_settings(query={"name": "soak"})
    partitions: tuple[tuple[TopicRole, int, int], ...] = (
        ("input", 0, 4096),
        ("input", 1, 8192),
        ("routed", 0, 4096),
        ("results", 0, 4096),
        ("telemetry", 0, 12288),
    )
    for role, number, size in partitions:
        folder = tmp_path / f"{settings.topic(role)}-{number}"
        folder.mkdir()
        _write(folder / "0.log", size)
    (tmp_path / "meta.properties").touch()
    block = 4096 / 2**20
    assert of_topics(settings, tmp_path) == {
        "input topic": (2, 3 * block),
        "routed topic": (1, block),
        "results topic": (1, block),
        "other topics": (1, 3 * block),
    }
    assert fullest_partitions(settings, tmp_path) == {"input": 8192, "routed": 4096, "results": 4096}


def _write(file: Path, size: int) -> None:
    """Write so many bytes, and have them on the disk."""
    with file.open("wb") as opened:
        opened.write(b"x" * size)
        opened.flush()
        os.fsync(opened.fileno())


def test_the_summary_of_a_replay_is_in_its_output() -> None:
    assert printed_object('a line\n{"tuples": 12}\n') == {"tuples": 12}


def _soak(**more: object) -> Soak:
    sizes = {"partition: threads": [7.0] * 12}
    result = Soak(sustained=50_000, rate=40_000, seconds=[10.0 * n for n in range(12)], sizes=sizes)
    result.comparisons = [_comparison(None, 30_000), LAST]
    result.cpu_seconds_per_million_tuples = {"all": 5.0, "broker": 1.0}
    for name, value in more.items():
        setattr(result, name, value)
    return result


def test_rows_are_kept_and_drawn(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(scenario, "soak", lambda **_: _soak())
    figures = scenario.run(smoke=False)
    assert figures["tuples_per_second"] == 40_000
    rows = json.loads((tmp_path / ".evenflow/bench/soak.json").read_text(encoding="utf-8"))
    assert rows["comparisons"][0]["until"] == 30_000
    assert "partition: threads" in (tmp_path / ".evenflow/bench/soak.svg").read_text(encoding="utf-8")


def test_of_a_run_in_which_something_was_wrong_nothing_is_kept_and_its_sizes_are_printed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(scenario, "soak", lambda **_: _soak(violations=["a row differs"]))
    with pytest.raises(ServiceError, match="a row differs"):
        scenario.run(smoke=False)
    assert "partition: threads: at first 7.0, at last 7.0" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_the_tables_of_the_page_are_those_of_the_kept_rows() -> None:
    page, rows = PAGE.read_text(encoding="utf-8"), json.loads(ROWS.read_text(encoding="utf-8"))
    assert into(page, rows) == page, "python -m benchmarks.soak writes them"
