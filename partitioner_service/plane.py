"""The data plane's loop: read a block, route it, write it, and commit every so often.

Runs in one thread of the Faust app; everything in here is called from that thread, but for
`stop`, `offer` and `status`.
"""

from __future__ import annotations

import gc
import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from confluent_kafka import KafkaException

from evenflow.errors import EvenflowError, ServiceError
from evenflow.settings import Settings
from evenflow.telemetry import PartitionerRecord
from partitioner_service import status
from partitioner_service.claim import claim
from partitioner_service.committed import Stopping, TopicIds
from partitioner_service.in_force import PlanLog, furthest
from partitioner_service.learned import LearnedState
from partitioner_service.pace import Pace
from partitioner_service.records import SideRecords
from partitioner_service.rejected import Rejected
from partitioner_service.reports import Reports
from partitioner_service.route import Router, Slice
from partitioner_service.schema_wait import SchemaWait
from partitioner_service.sink import CommitAborted, Sink
from partitioner_service.source import Source
from partitioner_service.talk import Talk
from partitioner_service.watchdog import Watchdog
from topics import admin as topic_admin
from topics import clients
from topics.registry import RegistryAway
from topics.watch import TopicWatch

log = logging.getLogger(__name__)

_MOST_ABORTS = 5
_STATUS_EVERY = 0.5
_GRACE = 10.0


class Onlooker(Protocol):
    """Is told how long things take (s), in the data plane's thread."""

    def block(self, seconds: float) -> None:
        """A block, from its records to its frames at the producer."""
        ...

    def commit(self, seconds: float) -> None:
        """A transaction's commit."""
        ...


class DataPlane:
    """One partitioner instance of settings that `prepare` has been through.

    until_ended: return once every input partition has ended, own or not. told: the newest telemetry.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        until_ended: bool = False,
        clock: Callable[[], float] = time.monotonic,
        onlooker: Onlooker | None = None,
    ) -> None:
        self._settings = settings
        self._options = settings.partitioner
        self._until_ended = until_ended
        self.clock = clock
        self._stop = threading.Event()
        self._plan_log = PlanLog(settings)
        self._onlooker = onlooker
        self.told: PartitionerRecord | None = None
        self._aborts = 0
        self._rewinds = 0
        self._work = status.Work(rejected=Rejected(settings))
        self._reports = Reports(settings, clock=clock)
        self._talk = Talk(settings, clock=clock)
        self._watchdog = Watchdog()
        self._schema_wait = SchemaWait(clock=clock)
        self._status: dict[str, Any] = {"state": "starting", "instance": self._options.instance}
        self._progressed_at = clock()
        self._status_at = -_STATUS_EVERY

    # ---- called from other threads

    def stop(self) -> None:
        """Finish the block in hand, commit, leave the group."""
        self._stop.set()

    def offer(self, offset: int, record: bytes | None) -> None:
        """A committed record of the plan topic."""
        self._plan_log.offer(offset, record)

    def status(self) -> dict[str, Any]:
        """What the status page shows; made anew at every commit."""
        return {**self._status, "seconds_since_progress": round(self.clock() - self._progressed_at, 3)}

    # ---- the thread

    def run(self) -> None:
        """Run until stopped (or ended); raises whatever makes going on wrong."""
        self._watchdog.start()
        self._talk.begins()
        try:
            self._open()
            with patient_garbage_collection():
                while not self._stop.is_set():
                    self._step()
                    if self._until_ended and self._all_ended():
                        break
            self._finish()
        except Stopping:
            self._abandon()
        except KafkaException as error:
            self._abandon()
            raise clients.service_error(
                error, self._settings.kafka, f"partitioning {self._settings.topic('input')}"
            ) from error
        except BaseException:
            self._abandon()
            raise
        finally:
            self._close()
            self._watchdog.stop()

    def _open(self) -> None:
        claim(self._settings, self._watchdog)
        names = [self._settings.topic(role) for role in ("input", "routed", "rejected")]
        topics = topic_admin.describe(self._settings.kafka, names)
        self._side = SideRecords(self._settings)
        self._learned = LearnedState(self._settings, self._side, clock=self.clock)
        partitioner, epoch = self._learned.restored()
        self._router = Router(self._settings, partitioner, epoch=epoch)
        self._router.plans.learn_published(self._plan_log.published())
        rejected_limit = int(topics[names[2]].config.get("max.message.bytes", 1_048_588))
        self._sink = Sink(
            self._settings, rejected_limit=rejected_limit, watchdog=self._watchdog, clock=self.clock
        )
        self._source = Source(
            self._settings,
            topic_ids=TopicIds(*(topics[name].topic_id for name in names)),
            needs_key=self._router.parser.needs_key,
            needs_timestamp=self._router.parser.needs_timestamp,
            settle=self._settle,
            stopping=self._stop.is_set,
            clock=self.clock,
        )
        self._pace = Pace(self._settings, self._source, clock=self.clock)
        self._watch = TopicWatch(self._settings.kafka, topics.values(), clock=self.clock)
        self._source.subscribe()

    def _step(self) -> None:
        blocks = self._source.read(self._options.block_tuples, self._options.linger / 1000)
        if self._source.rewinds != self._rewinds:  # other partitions, or an aborted transaction
            self._rewinds = self._source.rewinds
            self._router.forget_what_was_told()
            self._router.plans.continue_from(furthest(self._source.states))
        self._learn_plans()
        self._progressed_at = self.clock()
        self._watch.check()
        try:
            self._work_through_all(blocks)
            self._put_to_sleep()
            self._tell_the_workers()
            if not self._source.just_assigned:
                self._pace.hold_back_the_hasty()
            if self.clock() - self._status_at >= _STATUS_EVERY:
                self._refresh_status()
            open_for = self._sink.open_for
            if open_for is not None and open_for >= self._options.commit_interval / 1000:
                self._commit()
            elif self._reports.due:
                self._report()
        except CommitAborted as error:
            self._after_abort(error)

    def _work_through_all(self, blocks: Iterable[list[Slice]]) -> None:
        """Route these blocks; those whose schemas cannot be had are read again a little later."""
        try:
            for slices in blocks:
                self._work_through(slices)
                self._schema_wait.over()
        except RegistryAway as error:
            self._source.rewind(self._source.states)
            self._stop.wait(self._schema_wait.next(error))

    def _work_through(self, slices: list[Slice]) -> None:
        """Route a block into the open transaction."""
        began = self.clock()
        routed = self._router.route(slices, self._source.states)
        workers = self._router.plans.partitioner.workers
        self._reports.note(routed.sent, self.clock() - began, workers=workers)
        self._sink.write_frames(routed.frames)
        records = {piece.partition: piece.records for piece in slices}
        for group in routed.rejections:
            self._sink.write_rejected(records[group.partition], group)
        self._source.states.update(routed.states)
        self._work.tuples += routed.tuples
        self._work.read += routed.read
        self._work.filtered += routed.filtered
        self._work.note_loads(routed.sent.loads)
        self._work.rejected.note(routed.rejections)
        self._work.blocks += 1
        took = self.clock() - began
        self._work.busy_seconds += took
        if self._onlooker is not None:
            self._onlooker.block(took)

    def _commit(self) -> None:
        states = self._source.states
        changed = {p: s for p, s in states.items() if s != self._source.committed.get(p)}
        # Never without offsets: they are what makes the broker refuse one who is no member of the group any more.
        changed = changed or dict(states)
        began = self.clock()
        self._sink.commit(changed, self._source.group_metadata)
        self._source.committed.update(changed)
        if self._onlooker is not None:
            self._onlooker.commit(self.clock() - began)
        self._aborts = 0
        self._work.commits += 1
        self._refresh_status()
        self._report()
        self._learned.save_when_due(self._router.plans.partitioner, self._router.plans.epoch)

    def _after_abort(self, error: CommitAborted) -> None:
        self._aborts += 1
        if self._aborts >= _MOST_ABORTS:
            raise ServiceError(
                f"{self._aborts} transactions in a row were aborted, the last one because: {error}"
            )
        log.warning("transaction aborted, reading its blocks again: %s", error)
        self._source.rewind(self._source.committed)

    def _finish(self) -> None:
        self._sink.stop_within(_GRACE)
        try:
            if self._sink.open_for is not None:
                self._commit()
        except CommitAborted as error:
            log.warning("the last transaction was aborted; the next run reads its blocks again: %s", error)

    def _abandon(self) -> None:
        """What an unfinished block wrote must never be committed with the offsets before it."""
        sink = getattr(self, "_sink", None)
        if sink is not None:
            sink.stop_within(_GRACE)
            try:
                sink.abort()
            except (KafkaException, ServiceError) as error:
                log.warning("could not abort; the broker does after the transaction timeout: %s", error)

    def _settle(self, may_commit: bool) -> None:
        """Before partitions are given up: a transaction never spans a rebalance (rule 1)."""
        if self._sink.open_for is None:
            return
        if may_commit:
            try:
                self._commit()
                return
            except CommitAborted as error:
                log.warning(
                    "transaction aborted in a rebalance; the next owner reads its blocks again: %s", error
                )
        self._sink.abort()

    def _all_ended(self) -> bool:
        """Whether the whole input has ended and is committed, by whomever: a peer may die before its part has."""
        own = self._source.states
        if not all(state.ended for state in own.values()):
            return False
        if self._sink.open_for is not None:
            try:
                self._commit()
            except CommitAborted as error:
                self._after_abort(error)
                return False
        everyone = self._pace.everyone()
        if len(everyone) < self._settings.input_partitions or not all(s.ended for s in everyone.values()):
            return False
        # If the input had ended before this run, no partition needs to be assigned: what an assignment would refuse
        # is refused here.
        self._source.check(everyone)
        return True

    def _put_to_sleep(self) -> None:
        after = self._pace.asleep()
        if after:
            self._sink.begin()
            self._source.states.update(after)

    def _tell_the_workers(self) -> None:
        """Marks that moved without a tuple: of partitions that were put to sleep, or that are new to this instance."""
        frames = self._router.punctuate(self._source.states)
        if frames:
            self._sink.write_frames(frames)

    # ---- plans, status, the end

    def _learn_plans(self) -> None:
        for plan in self._plan_log.arrived():
            self._router.plans.learn(plan, reached=furthest(self._source.states))

    def _report(self) -> None:
        self.told = self._reports.record(
            self._source, self._router, self._work, ignored=self._plan_log.ignored
        )
        self._side.telemetry(self.told.encode())

    def _refresh_status(self) -> None:
        now = self.clock()
        self._work.measure(now)
        self._status_at = now
        shown = status.running(self._settings, self._source, self._router, self._work)
        standing = self._talk.tell(shown, self._work.rejected, self._pace.known())
        self._status = {
            **shown,
            "learning_since": self._learned.since,
            "learned_at": self._learned.kept_at,
            "plans_ignored": self._plan_log.ignored,
            "standing_still": [*standing, *self._schema_wait.standing_still()],
        }

    def _close(self) -> None:
        failed = None
        for name in ("_source", "_pace", "_side"):
            part = getattr(self, name, None)
            if part is None:
                continue
            try:
                if name == "_side" and hasattr(self, "_router"):
                    self._learned.save(self._router.plans.partitioner, self._router.plans.epoch)
                part.close()
            except (EvenflowError, KafkaException, RuntimeError) as error:
                failed = error
        self._status = {**self._status, "state": "stopped"}
        self._talk.ends(self._status)
        log.info("stopped; what was committed stays")
        if failed is not None:
            log.warning("while closing: %s", failed)


@contextmanager
def patient_garbage_collection() -> Iterator[None]:
    """Collect cycles rarely: a block is tens of thousands of Message objects, none of them part of a cycle.

    With Python's own threshold the collector would look at all of them some seventy times a block.
    """
    before = gc.get_threshold()
    gc.set_threshold(200_000, 20, 100)
    try:
        yield
    finally:
        gc.set_threshold(*before)
