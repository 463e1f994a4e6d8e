"""Several partitioners in processes of their own: the same figures, in order; the picture in every format."""

from pathlib import Path

import pytest

from evenflow.errors import ConfigError, EvenflowError
from evenflow.simulation import Scenario, entrant, generated, origin_of, provenance_of, simulate
from evenflow.simulation import run as run_module
from evenflow.simulation.charts import CURVE_POINTS, check_target, plot, thinned

SCENARIO = Scenario(workers=6, sources=2, window_ms=1_000, slide_ms=100)
ENTRANTS = [entrant(text) for text in ("hashing", "pkg", "pkg:d=4", "d-choices")]


def test_processes_find_what_one_process_finds_and_tell_how_far_they_are() -> None:
    stream = generated("zipf", tuples=20_000, keys=500, zipf=1.3)
    seen: list[list[int]] = []
    apart = simulate(stream, ENTRANTS, SCENARIO, processes=2, watch=lambda done: seen.append(list(done)))
    here = simulate(stream, ENTRANTS, SCENARIO, processes=1)
    assert [result.figures.partitioner for result in apart] == [who.label for who in ENTRANTS]
    assert seen[-1] == [20_000] * 4
    for one, other in zip(apart, here, strict=True):
        for name, value in one.figures.as_json().items():
            assert name in ("seconds", "ns_per_tuple") or value == getattr(other.figures, name)
        assert one.loads.tolist() == other.loads.tolist()
        assert one.over_time.tolist() == other.over_time.tolist()
        assert len(one.at) == len(one.over_time)


def test_nothing_runs_when_one_of_them_cannot() -> None:
    stream = generated("zipf", tuples=100, keys=5)

    def never(done: object) -> None:
        raise AssertionError

    for text in ("pgk", "pkg:e=3", "pkg:d=0"):
        with pytest.raises(ConfigError):
            simulate(stream, [entrant("hashing"), entrant(text)], SCENARIO, watch=never)
    with pytest.raises(ConfigError, match="warm-up of 60"):
        simulate(stream, ENTRANTS, Scenario(workers=2, window_ms=1_000, warmup_slides=60), watch=never)


def test_a_process_that_dies_is_an_error_that_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_module, "_work", _dies)
    with pytest.raises(EvenflowError, match="a process of the simulation died"):
        simulate(generated("zipf", tuples=100, keys=5), ENTRANTS, Scenario(workers=2), processes=2)


def _dies(task: object) -> None:
    import os

    os._exit(9)


@pytest.mark.parametrize("windowed", [True, False])
def test_the_picture_is_written_in_every_format(tmp_path: Path, windowed: bool) -> None:
    stream = generated("zipf", tuples=5_000, keys=100, zipf=1.3, rate=100)
    results = simulate(stream, ENTRANTS, SCENARIO if windowed else Scenario(workers=6), processes=1)
    begins = {".png": b"\x89PNG", ".pdf": b"%PDF", ".svg": b"<svg", ".html": b"<!DOCTYPE html>"}
    for ending, begin in begins.items():
        path = tmp_path / f"out{ending}"
        plot(results, path)
        content = path.read_bytes()
        assert content.startswith(begin)
        if ending in (".svg", ".html"):
            for words in (
                b"imbalance against replication",
                b"imbalance over time",
                b"load per worker",
                b"pkg:d=4",
            ):
                assert words in content
        if ending == ".svg":
            assert b">1e+" not in content, "a number on an axis is hard to read"
            assert (b">40<" if windowed else b">4k<") in content
        if ending == ".html":
            assert b"<script src=" not in content, "the page would need the network"


def test_a_picture_that_cannot_be_written_is_refused_beforehand(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"ends with none of \.png, \.svg, \.pdf, \.html"):
        check_target(tmp_path / "x.gif")
    with pytest.raises(ConfigError, match="there is no folder"):
        check_target(tmp_path / "no" / "x.png")
    (tmp_path / "folder.png").mkdir()
    (tmp_path / "round.png").symlink_to(tmp_path / "round.png")
    for path in (
        Path("/proc/x.png"),
        tmp_path / "folder.png",
        tmp_path / "round.png",
        tmp_path / f"{'x' * 300}.png",
    ):
        with pytest.raises(ConfigError, match="cannot be written: "):
            check_target(path)


def test_asking_whether_a_picture_can_be_written_leaves_the_folder_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "old.png").write_bytes(b"a picture")
    (tmp_path / "link.png").symlink_to(tmp_path / "nothing.png")
    for name in ("new.png", "old.png", "link.png"):
        check_target(tmp_path / name)
    assert {path.name for path in tmp_path.iterdir()} == {"old.png", "link.png"}
    assert (tmp_path / "old.png").read_bytes() == b"a picture"


def test_a_picture_of_a_long_series_shows_its_peak() -> None:
    stream = generated("zipf", tuples=60_000, keys=100, zipf=1.3, rate=1_000)
    (result,) = simulate(
        stream, [entrant("pkg")], Scenario(workers=6, window_ms=1_000, slide_ms=100), processes=1
    )
    assert len(result.at) > CURVE_POINTS
    line = thinned(result)
    assert len(line.x) == len(line.y) <= CURVE_POINTS
    assert max(line.y) == result.over_time.max()
    assert line.x[line.y.index(max(line.y))] == result.at[result.over_time.argmax()]


def test_a_picture_stresses_nobody_unless_asked_and_says_what_was_simulated(tmp_path: Path) -> None:
    stream = generated("zipf", tuples=5_000, keys=100, zipf=1.3, rate=100)
    results = simulate(stream, ENTRANTS, SCENARIO, processes=1)
    origin = origin_of("zipf", seed=1, zipf=1.3, keys=100, period_ms=10_000, rate=100)
    about = provenance_of(origin, SCENARIO, ENTRANTS[0], stream)
    plot(results, tmp_path / "out.svg", about=about)
    content = (tmp_path / "out.svg").read_text()
    assert "Imbalance against replication, imbalance over time, and loads" in content
    assert "stream zipf 1.3, seed 1, window 1 s, slide 0.1 s, 2 sources" in content
    assert "as a share of all" in content
    strong = 'font-weight="bold" fill="#1b4a7a"'
    assert strong not in content
    plot(results, tmp_path / "out.svg", about=about, stress="d-choices")
    assert strong in (tmp_path / "out.svg").read_text()
