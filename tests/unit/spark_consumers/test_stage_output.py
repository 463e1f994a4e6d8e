"""What happens within a micro-batch, and in which order: nothing becomes final without the epoch."""

from __future__ import annotations

from typing import Any

import pytest

from evenflow.errors import FencedError
from spark_consumers.stage_output import Publish, checked

ROWS: Any = object()


class Course:
    """Notes what is done. fenced_at: the number of the check that is refused."""

    def __init__(self, fenced_at: int | None = None) -> None:
        self.done: list[str] = []
        self._fenced_at = fenced_at

    def check(self) -> None:
        if self.done.count("check") + 1 == self._fenced_at:
            raise FencedError("another driver")
        self.done.append("check")

    def into_files(self, rows: Any, batch: int) -> Publish:
        self.done.append(f"write {batch}")
        return lambda: self.done.append("publish")

    def into_a_topic(self, rows: Any, batch: int) -> None:
        self.done.append(f"write {batch}")


def test_the_epoch_is_checked_before_the_job_and_again_before_files_are_published() -> None:
    course = Course()
    checked(course.into_files, course.check)(ROWS, 7)
    assert course.done == ["check", "write 7", "check", "publish"]


def test_rows_of_a_topic_are_there_once_they_are_written_so_one_check_is_enough() -> None:
    course = Course()
    checked(course.into_a_topic, course.check)(ROWS, 7)
    assert course.done == ["check", "write 7"]


@pytest.mark.parametrize(("fenced_at", "done"), [(1, []), (2, ["check", "write 7"])])
def test_a_driver_that_was_fenced_makes_nothing_final(fenced_at: int, done: list[str]) -> None:
    course = Course(fenced_at)
    with pytest.raises(FencedError):
        checked(course.into_files, course.check)(ROWS, 7)
    assert course.done == done
