"""A session whose Java ends, or has ended, while it is being stopped."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError, Py4JNetworkError
from pyspark import SparkContext

from evenflow.errors import ServiceError
from evenflow.settings import load_settings
from spark_consumers import application
from spark_consumers.session import end_session, java_status


class Session:
    """A session of which every call raises this error. master: the Spark master."""

    def __init__(self, error: BaseException) -> None:
        self._error = error

    @property
    def sparkContext(self) -> Any:  # noqa: N802  # pyspark's own name
        return self

    @property
    def applicationId(self) -> str:  # noqa: N802  # pyspark's own name
        raise self._error


@pytest.fixture
def java(monkeypatch: pytest.MonkeyPatch) -> Iterator[subprocess.Popen[bytes]]:
    """Stands for Java: it ends when its input does, with status 3."""
    words = [sys.executable, "-c", "import sys, time; sys.stdin.read(); time.sleep(0.3); sys.exit(3)"]
    with subprocess.Popen(words, stdin=subprocess.PIPE) as process:
        monkeypatch.setattr(SparkContext, "_gateway", SimpleNamespace(proc=process))
        yield process
        assert process.stdin is not None
        process.stdin.close()


@pytest.mark.parametrize("error", [Py4JNetworkError("reset"), ConnectionRefusedError(), EOFError()])
def test_a_session_whose_java_is_about_to_end_has_nothing_to_stop(
    java: subprocess.Popen[bytes], error: Exception
) -> None:
    assert java.stdin is not None
    java.stdin.close()
    end_session(Session(error))  # type: ignore[arg-type]
    assert java_status() == 3


def test_an_answer_of_java_is_an_error_of_its_own(java: subprocess.Popen[bytes]) -> None:
    error = Py4JJavaError("no", SimpleNamespace(_target_id="o1"))
    with pytest.raises(Py4JJavaError):
        end_session(Session(error))  # type: ignore[arg-type]
    assert java_status(after=error) is None


def test_a_java_that_ends_while_the_session_is_made_is_said_in_words(
    java: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> Any:
        assert java.stdin is not None
        java.stdin.close()
        raise Py4JNetworkError("Error while sending or receiving")

    monkeypatch.setattr(application, "make_session", killed)
    with (
        pytest.raises(ServiceError, match="Spark's Java process ended with status 3"),
        application._session(load_settings(), None, ("combine",)),
    ):
        pass
