"""A secret of `[spark.conf]` is known to Spark, and to nobody who looks at the processes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import PATIENCE

pytestmark = [pytest.mark.pipeline, pytest.mark.family]

PROGRAM = """
import sys
from contextlib import suppress
from pathlib import Path
import psutil
from evenflow.settings import Settings
from spark_consumers.reports.java_log import JavaLog
from spark_consumers.session import end_session, make_session

settings = Settings(
    query={"name": "q", "window": "1s", "key": "k", "time": "t", "aggregates": {"n": "count"}},
    input={"topic": "in", "partitions": 1},
    spark={
        "conf": {
            "spark.hadoop.fs.s3a.secret.key": "canary-1",
            "spark.ssl.keyPassword": "canary-2",
            "spark.hadoop.fs.s3a.encryption.key": "canary-3",
            "spark.hadoop.of.mine": "canary-4",
            "spark.driver.memory": "700m",
        }
    },
)
log = JavaLog(Path(sys.argv[1]) / "java.log") if sys.argv[2] == "log" else None
session = make_session(settings, log)
try:
    known = session.sparkContext.getConf()
    assert known.get("spark.hadoop.fs.s3a.secret.key") == "canary-1"
    assert known.get("spark.ssl.keyPassword") == "canary-2"
    assert known.get("spark.hadoop.fs.s3a.encryption.key") == "canary-3"
    assert session.sparkContext._jsc.hadoopConfiguration().get("of.mine") == "canary-4"
    assert session.sparkContext._jvm.java.lang.Runtime.getRuntime().maxMemory() < 701 * 2**20
    assert known.get("spark.sql.session.timeZone") == "UTC"
    seen = 0
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):  # a zombie is such a process
            words = process.cmdline()
            assert "canary" not in " ".join(words), words
            assert "canary" not in str(process.environ())
            seen += "org.apache.spark.deploy.SparkSubmit" in words
    assert seen == 1
finally:
    end_session(session)
assert log is None or "canary" not in log.path.read_text()
"""


@pytest.mark.parametrize("log", ["log", "no-log"])
def test_a_secret_of_spark_conf_stands_in_no_command_line_environment_or_log(
    tmp_path: Path, log: str
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path), log],
        capture_output=True,
        text=True,
        timeout=120 * PATIENCE,
    )
    assert done.returncode == 0, done.stderr[-3_000:]
    assert "canary" not in done.stdout + done.stderr


ENCRYPTED = """
from evenflow.settings import Settings
from spark_consumers.session import end_session, make_session

settings = Settings(
    query={"name": "q", "window": "1s", "key": "k", "time": "t", "aggregates": {"n": "count"}},
    input={"topic": "in", "partitions": 1},
    spark={"master": "local-cluster[1,1,1024]", "conf": {"spark.network.crypto.enabled": "true"}},
)
session = make_session(settings)
try:
    pairs = session.sparkContext.parallelize(range(100), 2).map(lambda number: (number % 2, number))
    print("sums", sorted(pairs.reduceByKey(lambda a, b: a + b).collect()))
    print("cipher", session.sparkContext.getConf().get("spark.network.crypto.cipher"))
    # lz4-java 1.8.0 has no such method. It is called in an executor.
    only_new = "reflect('net.jpountz.lz4.LZ4Factory', 'nativeInsecureInstance')"
    print("lz4", session.range(1).selectExpr(only_new).collect()[0][0])
finally:
    end_session(session)
"""


@pytest.mark.more
def test_driver_and_executors_work_together_with_a_cipher_that_notices_changes_and_the_new_lz4() -> None:
    done = subprocess.run(
        [sys.executable, "-c", ENCRYPTED], capture_output=True, text=True, timeout=200 * PATIENCE
    )
    assert done.returncode == 0, done.stderr[-3_000:]
    assert "sums [(0, 2450), (1, 2500)]" in done.stdout
    assert "cipher AES/GCM/NoPadding" in done.stdout
    assert "lz4 LZ4Factory:JNI" in done.stdout
