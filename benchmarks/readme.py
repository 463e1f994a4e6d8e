"""`python -m benchmarks.readme [ROWS]`: the figures of README, of rows that one run measured.

    evenflow bench readme --json > rows
    python -m benchmarks.readme rows

The rows become docs/measurements/SCENARIO.json, one object each. Without ROWS the tables are made of the rows
that are there. A test holds README to them, and all rows to one machine and to committed code.
"""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.pages.cells import all_met, cpu, met, middle, millions, rate
from benchmarks.pages.rows import Rows, keep_files, kept_rows
from benchmarks.pages.tables import into_page, table
from benchmarks.runner import README_SCENARIOS
from benchmarks.spark.costly_tables import times_as_fast

PAGE = Path("README.md")
_OPENING_SKEW = 2.0
"""The Zipf exponent of the figures in the first paragraph."""
_ALIKE = 0.06
"""Two speeds of different runs that are no further apart are called equal."""


def peers_table(rows: Rows) -> str:
    """evenflow beside Flink and Spark's own windows."""
    figures = rows["service-peers"]
    ratios = figures["ratios"]
    json_rows, frames = ratios["evenflow_kafka_to_flink"], ratios["evenflow_frames_to_flink"]
    slow, slow_frames = ratios["evenflow_kafka_to_spark_windows"], ratios["evenflow_frames_to_spark_windows"]
    speeds = [
        f"{each['speed']:.1f} (goal {each['goal_speed']:g}, {met(each['goal_met'])})"
        for each in (json_rows, frames)
    ]
    shares = [
        f"{1 / each['cpu']:.2f} (goal {1 / each['goal_cpu']:.1f}, {met(each['goal_cpu_met'])})"
        for each in (json_rows, frames)
    ]
    beside_flink = f"{' and '.join(speeds)} times as fast at {' and '.join(shares)} of the CPU time"
    systems = (
        ("evenflow_kafka", "evenflow, JSON rows into Kafka", ""),
        ("evenflow_frames", "evenflow, Arrow frames into Kafka", ""),
        ("flink", "Flink 2.3 SQL, results dropped", beside_flink),
        (
            "spark_windows",
            "Spark's own streaming windows, results dropped",
            f"{slow['speed']:.0f} and {slow_frames['speed']:.0f} times as fast",
        ),
    )
    return table(
        (
            "in one run, Zipf 1.4 (`service-peers`)",
            "evenflow is",
            "CPU seconds per million tuples",
            "tuples/s",
        ),
        [
            (words, beside, cpu(figures[name]), rate(figures[name]["tuples_per_second"]))
            for name, words, beside in systems
        ],
    )


def goals_table(rows: Rows) -> str:
    """The other figures, each beside its goal or beside what ran in the same run."""
    live = [rows["service-end-to-end-fused"][f"zipf_{zipf}"] for zipf in ("1.0", "1.4")]
    results = rows["service-results"]
    hashing, own = (rows[f"service-partitioner-{name}"] for name in ("hashing", "evenflow"))
    combiner, start = rows["service-combiner"], rows["service-start"]
    growth = rows["growth-service"]["as_chosen"]
    steps, replay = rows["tuple-profile"]["parse_judge_route_frame"], rows["service-replay"]
    arrays = replay["full_speed"]
    speed = {row["partitioner"]: row for row in rows["partitioners-speed"]["partitioners"]}
    return table(
        ("what", "ratio or goal", "evenflow", "beside it, same run"),
        [
            (
                "live, Zipf 1.0 / 1.4",
                f"goal {live[0]['goal_p99_at_half_ms'] / 1000:g} s, "
                + all_met([each["goal_met"] for each in live]),
                " / ".join(f"{each['sustained_tuples_per_second']:,}" for each in live)
                + " tuples/s sustained",
                "p99 at half of it: "
                + " / ".join(f"{each['half_load']['latency_p99_ms'] / 1000:.1f} s" for each in live),
            ),
            (
                "a result row, CPU time of all processes",
                f"goals {results['kafka']['goal']:g} and {results['frames']['goal']:g}, "
                + all_met([results[sink]["goal_met"] for sink in ("kafka", "frames")]),
                f"{results['kafka']['cpu_seconds_per_million_rows']['all']:.1f} us (JSON),"
                f" {results['frames']['cpu_seconds_per_million_rows']['all']:.2f} us (Arrow frame)",
                "",
            ),
            (
                "partitioner service, `hashing` / `evenflow`",
                f"{middle(hashing, 'ratio')} / {middle(own, 'ratio')} (goal {hashing['goal']:g},"
                f" {all_met([hashing['met'], own['met']])}; goal {hashing['goal_cpu']:g} us,"
                f" {all_met([hashing['goal_cpu_met'], own['goal_cpu_met']])})",
                f"{millions(hashing, 'service')} / {millions(own, 'service')} M tuples/s;"
                f" {middle(hashing, 'cpu_microseconds_without_broker')} /"
                f" {middle(own, 'cpu_microseconds_without_broker')} us of CPU time a tuple",
                f"{millions(hashing, 'bare')} / {millions(own, 'bare')} M;"
                f" {hashing['bare_by_process']['cpu_seconds_per_million_tuples']['data_plane']:.2f} us: a"
                " bare client loop with the same frames",
            ),
            (
                "parse to frame in the partitioner, CPU time a tuple (`tuple-profile`)",
                f"goal {steps['goal'] / 1000:g} us, {met(steps['met'])}",
                f"{steps['ns'] / 1000:.2f} us",
                "",
            ),
            (
                "replay at full speed, CPU time a tuple (`service-replay`)",
                f"goal {replay['goal_microseconds_at_full_speed']:g} us, {met(arrays['met'])}",
                f"{middle(arrays, 'arrays_cpu_microseconds')} us",
                f"{middle(arrays, 'calls_cpu_microseconds')} us: one call a record",
            ),
            (
                "Spark combiner",
                f"{middle(combiner, 'ratio')} (goal {combiner['goal']:g}, {met(combiner['met'])})",
                f"{millions(combiner, 'combiner', 1)} M tuples/s",
                f"{millions(combiner, 'scan', 1)} M: Spark's bare scan of the same frames",
            ),
            (
                "cost of d-choices / evenflow per tuple",
                f"{speed['d-choices']['times_hashing']:.1f} / {speed['evenflow']['times_hashing']:.1f} (goal"
                f" of evenflow {speed['evenflow']['goal']}; it is {speed['evenflow']['is']:.2f},"
                f" {met(speed['evenflow']['met'])})",
                f"{speed['d-choices']['ns']:.0f} / {speed['evenflow']['ns']:.0f} ns",
                f"{speed['hashing']['ns']:.1f} ns: hashing",
            ),
            (
                "partitioner service, 1,000 workers and 100 input partitions, as the settings come"
                " (`growth-service`)",
                f"{middle(growth, 'ratio')} (goal {growth['goal']:g}, {met(growth['met'])})",
                f"{millions(growth, 'large')} M tuples/s",
                f"{millions(growth, 'small')} M: 8 workers and 4 input partitions",
            ),
            (
                "`aggregate` to its first row, with 8 workers / 1,000 workers and 100 input partitions;"
                " restart after SIGKILL to the next window",
                "goals "
                + "; ".join(
                    f"{start['goals'][name]:g} s, {met(start['met'][name])}"
                    for name in ("aggregate", "wide_aggregate", "restart")
                ),
                f"{start['aggregate']['median']:.1f} / {start['wide_aggregate']['median']:.1f} s;"
                f" {start['restart']['median']:.1f} s",
                "",
            ),
        ],
    )


def opening(rows: Rows) -> list[str]:
    """Words with figures that README's first paragraph must have. It is prose, so a person writes it."""
    figures = rows["service-costly-peers"]
    ours = next(
        row
        for row in figures["rows"]
        if (row["system"], row["zipf"]) == ("evenflow, evenflow", _OPENING_SKEW)
    )
    two_phase = times_as_fast(figures, _OPENING_SKEW, "flink, two-phase")
    return [
        f"costs {figures['cost_us']} us of work (waited, not computed; Zipf {_OPENING_SKEW},"
        f" {figures['workers']} workers)",
        f"has {ours['of_perfect']:.2f} of the throughput of perfect balance",
        f"{times_as_fast(figures, _OPENING_SKEW, 'flink, keyBy'):.1f} times Flink's keyBy",
        f"{times_as_fast(figures, _OPENING_SKEW, 'spark, groupBy'):.1f} times Spark's groupBy",
        "as much as Flink's two-phase"
        if abs(two_phase - 1) < _ALIKE
        else f"{two_phase:.2f} times Flink's two-phase",
    ]


def page(text: str, rows: Rows) -> str:
    """README with these figures. ValueError if it has no place for them."""
    text = into_page(text, "readme", "peers", peers_table(rows))
    return into_page(text, "readme", "goals", goals_table(rows))


def main() -> int:
    """Keep the rows of the file that is named, if any, and write README."""
    keep_files(sys.argv[1:])
    rows = kept_rows(README_SCENARIOS)
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), rows), encoding="utf-8")
    text = " ".join(PAGE.read_text(encoding="utf-8").split())
    missing = [words for words in opening(rows) if words not in text]
    if missing:
        print("the first paragraph must have the words: " + "; ".join(missing), file=sys.stderr)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
