"""What the controller does on Kubernetes: it sets one number, and holds one lease.

The number is the scale of the workload that runs the partitioner instances. The lease says which of several
controllers decides, while the others wait to take over. Exactness does not depend on the lease: a controller
that takes over fences the one before it in Kafka in any case (rule "the beginning is locked before it
is read"). Both number and lease belong
to the API server, which is asked with the pod's own service account.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from evenflow.errors import ConfigError, ServiceError
from evenflow.host.pods import ANSWER_SECONDS, Right, connected, missing, own_namespace, reason_of
from evenflow.reporting import Concern, Concerns
from evenflow.settings import Settings

log = logging.getLogger("controller")

LEASE_SECONDS, RENEW_SECONDS, RETRY_SECONDS = 15, 10, 2
"""Seconds. A lease that was not renewed for LEASE_SECONDS is free. A leader that cannot renew it gives up
earlier, after RENEW_SECONDS, so that two never lead at once. Leader and candidates ask every RETRY_SECONDS.
"""
_NEEDED_BY = "control.lease and control.replicas_of"


def namespace_of(settings: Settings) -> str:
    """The namespace of the settings, else the pod's own. Raises ConfigError if there is neither."""
    if settings.control.namespace is not None:
        return settings.control.namespace
    own = own_namespace()
    if own is not None:
        return own
    raise ConfigError("control.namespace is not set, and this is no pod", hint="set control.namespace")


class ScaledReplicas:
    """Sets the scale of a StatefulSet or Deployment. A refusal is logged and never ends the controller."""

    def __init__(self, settings: Settings, *, clock: Callable[[], float] = time.monotonic) -> None:
        kind, _, self._name = (settings.control.replicas_of or "").partition("/")
        self._namespace = namespace_of(settings)
        self._kubernetes = connected(_NEEDED_BY)
        api = self._kubernetes.client.AppsV1Api()
        self._read = getattr(api, f"read_namespaced_{_KINDS[kind]}_scale")
        self._patch = getattr(api, f"patch_namespaced_{_KINDS[kind]}_scale")
        self._workload = f"{kind} {self._name} in {self._namespace}"
        self._concerns = Concerns(log, clock=clock)

    def ask(self, *, now: int, target: int, reason: str) -> None:
        """As `controller.realise.Replicas` says. If the scale is `target` already, nothing is asked."""
        trouble: Concern | None = None
        try:
            # The scale, not the number of instances heard: new instances may not have come yet.
            have = self._call(self._read).spec.replicas or 0
            if have != target:
                self._call(self._patch, {"spec": {"replicas": target}})
                log.info("%s: replicas %d -> %d (%d heard): %s", self._workload, have, target, now, reason)
        except Exception as error:  # whatever the API server does, the controller goes on
            trouble = Concern(
                name="replicas refused",
                text=(
                    f"the replicas of {self._workload} cannot be set to {target}: {reason_of(error)}. The"
                    " controller's service account needs `get` and `patch` on"
                    " its scale subresource (docs/deploy.md)"
                ),
                over="replicas can be set again",
            )
        self._concerns.now([] if trouble is None else [trouble])

    def _call(self, verb: Any, *body: Any) -> Any:
        return verb(self._name, self._namespace, *body, _request_timeout=ANSWER_SECONDS)


_KINDS = {"statefulset": "stateful_set", "deployment": "deployment"}


class Election(Protocol):
    """One candidate for a lease."""

    def holds(self) -> bool:
        """Take or renew the lease. Returns whether this candidate holds it now.

        May raise any exception. Then it is not known who holds the lease.
        """
        ...

    def give_up(self) -> None:
        """If this candidate holds the lease, let another candidate take it at once.

        May raise any exception.
        """
        ...


class LeaseElection:
    """A candidate for a Lease object of the API server.

    identity: the candidate's name, which must be unique.
    """

    def __init__(self, settings: Settings, *, identity: str) -> None:
        kubernetes = connected(_NEEDED_BY)
        from kubernetes.leaderelection import electionconfig, leaderelection
        from kubernetes.leaderelection.resourcelock.leaselock import LeaseLock

        # The package's own loop sleeps where a stop could not wake it, so only one step of it is used here.
        # The callbacks belong to that loop.
        logging.getLogger("leaderelection").setLevel(logging.WARNING)
        self._lock = LeaseLock(settings.control.lease, namespace_of(settings), identity)
        self._election = leaderelection.LeaderElection(
            electionconfig.Config(
                self._lock,
                lease_duration=LEASE_SECONDS,
                renew_deadline=RENEW_SECONDS,
                retry_period=RETRY_SECONDS,
                onstarted_leading=_nothing,
                onstopped_leading=_nothing,
            )
        )
        self._kubernetes = kubernetes
        self._api = kubernetes.client.CoordinationV1Api()
        self._may = False

    def holds(self) -> bool:
        """As `Election` says. Raises ServiceError for an account that lacks the rights."""
        if self._election.try_acquire_or_renew():
            return True
        self._refuse_what_never_succeeds()
        return False

    def _refuse_what_never_succeeds(self) -> None:
        """Raise ServiceError if the account may not use the lease.

        The package takes a refusal for a lease that another candidate holds. So this controller would wait
        for ever.
        """
        if self._may:
            return
        kind = {"kind": "leases", "group": "coordination.k8s.io"}
        named = [Right(verb=verb, name=self._lock.name, **kind) for verb in ("get", "update")]
        lacking = missing([*named, Right(verb="create", **kind)], self._lock.namespace, self._kubernetes)
        if lacking:
            raise ServiceError(f"the service account may not {', '.join(lacking)} in {self._lock.namespace}")
        self._may = True

    def give_up(self) -> None:
        """As `Election` says."""
        lease = self._api.read_namespaced_lease(
            self._lock.name, self._lock.namespace, _request_timeout=ANSWER_SECONDS
        )
        if lease.spec.holder_identity == self._lock.identity:
            lease.spec.holder_identity = None
            self._api.replace_namespaced_lease(
                self._lock.name, self._lock.namespace, lease, _request_timeout=ANSWER_SECONDS
            )


def _nothing() -> None: ...


@contextmanager
def leading(
    settings: Settings,
    stop: threading.Event,
    *,
    election: Election | None = None,
    clock: Callable[[], float] = time.monotonic,
    pause: float = RETRY_SECONDS,
) -> Iterator[Callable[[], bool]]:
    """Wait until this controller leads, or until `stop`.

    Inside the context, a thread goes on renewing the lease. Yields a function that says whether this
    controller still leads. Without `control.lease` it always does. pause: s between two steps.
    """
    if settings.control.lease is None:
        yield lambda: True
        return
    identity = f"{socket.gethostname()}-{os.getpid()}"
    lead = _Lead(election or LeaseElection(settings, identity=identity), settings.control.lease, clock=clock)
    while not lead.step() and not stop.wait(pause):
        pass
    over = threading.Event()
    renewing = threading.Thread(target=lead.renew, args=(over, pause), name="evenflow-lease", daemon=True)
    renewing.start()
    try:
        yield lambda: lead.holds_lease
    finally:
        over.set()
        renewing.join(ANSWER_SECONDS)
        lead.give_up()


class _Lead:
    """Whether this controller holds the lease, as far as it knows.

    After RENEW_SECONDS without a renewal it takes the lease for lost.
    """

    def __init__(self, election: Election, name: str, *, clock: Callable[[], float]) -> None:
        self._election, self._name, self._clock = election, name, clock
        self._renewed_at: float | None = None
        self._concerns = Concerns(log, clock=clock)
        self._waits = False

    @property
    def holds_lease(self) -> bool:
        return self._renewed_at is not None and self._clock() - self._renewed_at < RENEW_SECONDS

    def step(self) -> bool:
        """Ask once. Returns whether this controller holds the lease."""
        # The time before the question: counted from the answer,
        # a slow API server would make the lease last too long.
        began, trouble = self._clock(), None
        try:
            if self._election.holds():
                if self._renewed_at is None:
                    log.info("lease %s: this controller decides", self._name)
                self._renewed_at = began
            elif not self._waits:
                self._waits = True
                log.info("lease %s: another controller decides; this one waits", self._name)
        except Exception as error:  # without an answer the lease simply ages
            trouble = Concern(
                name="no lease",
                text=f"lease {self._name} cannot be asked for: {reason_of(error)}",
                over=f"lease {self._name} can be asked for again",
            )
        self._concerns.now([] if trouble is None else [trouble])
        return self.holds_lease

    def renew(self, over: threading.Event, pause: float) -> None:
        """Renew the lease until `over`, or until it is lost."""
        while not over.wait(pause):
            if not self.step():
                return

    def give_up(self) -> None:
        """Free the lease if it is held, so that a waiting candidate need not wait until it has run out."""
        if not self.holds_lease:
            return
        try:
            self._election.give_up()
        except Exception as error:
            log.warning("lease %s was not given up (%s): it ends by itself", self._name, reason_of(error))


def lost(name: str) -> ServiceError:
    """The error of a controller that leads no longer. name: of the lease."""
    return ServiceError(
        f"lease {name} is lost: another controller may decide now",
        hint="started again, this one waits until the lease is free",
    )
