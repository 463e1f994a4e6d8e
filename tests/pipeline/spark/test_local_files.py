"""Files of a checkpoint in a local folder are written without a process for each."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.pipeline, pytest.mark.more]

_CODE = """
import sys
from evenflow.settings import Settings
from spark_consumers.session import end_session, make_session
session = make_session(Settings(spark={"master": "local[1]", "checkpoint": sys.argv[1]}))
java = session._jvm
path = java.org.apache.hadoop.fs.Path(f"file://{sys.argv[1]}/file")
files = path.getFileSystem(session._jsc.sc().hadoopConfiguration())
print(files.getClass().getName())
files.create(path).close()
files.setPermission(path, java.org.apache.hadoop.fs.permission.FsPermission("640"))
end_session(session)
"""


def test_the_mode_of_a_file_is_set_by_java_itself(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _CODE, str(tmp_path)]
    child = subprocess.run(command, capture_output=True, text=True, check=True)
    assert child.stdout.split() == ["com.globalmentor.apache.hadoop.fs.BareLocalFileSystem"]
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o640
