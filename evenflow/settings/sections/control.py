"""The controller: which policy decides about p and r, within which bounds, and how far ahead."""

from __future__ import annotations

from typing import Any

from pydantic import Field, model_validator

from evenflow.settings.durations import Duration
from evenflow.settings.sections.choices import CHOICES, checked_apart
from evenflow.settings.sections.section import Section

_OBJECT = r"^[a-z0-9]([-a-z0-9.]{0,250}[a-z0-9])?$"


class ControlSettings(Section):
    """The controller (`evenflow control`)."""

    policy: str = Field(
        default="ds2",
        description=(
            "Registered policy (`evenflow policies`), or a class of your own as module:Class "
            "(docs/your-own.md). Options may stand behind it (ds2:target=0.7) or in options, not in both."
        ),
    )
    options: dict[str, int | float | bool | str] = Field(
        default_factory=dict, description="Options of the policy."
    )
    seed: int = Field(default=7, ge=0, description="Seed of every random choice of the policy.")
    p_min: int = Field(default=1, ge=1, description="Fewest workers (p).")
    p_max: int | None = Field(default=None, ge=1, description="Most workers. None: partitioner.max_workers.")
    r_min: int = Field(default=1, ge=1, description="Fewest reduce buckets at once (r).")
    r_max: int | None = Field(default=None, ge=1, description="Most reduce buckets at once. None: all.")
    group: int = Field(
        default=10, ge=1, description="Micro-batches that are planned together, a group ahead (G)."
    )
    amend: bool = Field(
        default=True,
        description=(
            "true: a decision in mid-group changes the rest of the group (Prompt+)."
            " false: it waits for the next group."
        ),
    )
    patience: Duration | None = Field(
        default=None,
        description=(
            "Age at which the last measurement of a part is too old. None:"
            " four batch intervals, at least 20 s."
        ),
    )
    scale_in_wait: Duration = Field(
        default=60_000,
        description=(
            "No scale-in for so long after the first micro-batch of a Spark driver, and after p or r grew."
        ),
    )
    lease: str | None = Field(
        default=None,
        pattern=_OBJECT,
        description=(
            "Name of a Kubernetes Lease. Of several controllers, the one that holds the Lease decides, and"
            " the others wait. None: no election. The controller that started last decides."
        ),
    )
    replicas_of: str | None = Field(
        default=None,
        pattern=rf"^(statefulset|deployment)/{_OBJECT[1:]}",
        description=(
            "Kubernetes workload whose replicas are the partitioner instances, as 'statefulset/NAME'. The "
            "controller sets their number. None: the controller only says how many would do."
        ),
    )
    replicas_min: int = Field(default=1, ge=1, description="Fewest partitioner instances.")
    replicas_max: int | None = Field(
        default=None, ge=1, description="Most partitioner instances. None: one for each input partition."
    )
    namespace: str | None = Field(
        default=None,
        pattern=_OBJECT,
        description=(
            "Kubernetes namespace of the Lease and the workload. None: that of the controller's own pod."
        ),
    )
    web_host: str = Field(default="127.0.0.1", description="Address of the metrics (`/metrics/`).")
    web_port: int = Field(
        default=0, ge=0, le=65535, description="Port of the metrics. 0: a free port, which is logged."
    )

    @model_validator(mode="before")
    @classmethod
    def _options_behind_the_policy(cls, values: Any) -> Any:
        return checked_apart(values, CHOICES["control"])

    def check(self, *, most_p: int, most_r: int) -> None:
        """ValueError for bounds that contradict each other or exceed what there is.

        most_p: largest number of workers. most_r: number of reduce buckets.
        """
        if self.replicas_max is not None and self.replicas_min > self.replicas_max:
            raise ValueError(
                f"control.replicas_min ({self.replicas_min}) is above"
                f" control.replicas_max ({self.replicas_max})"
            )
        for name, least, most, limit, bound in (
            ("p", self.p_min, self.p_max, most_p, "partitioner.max_workers"),
            ("r", self.r_min, self.r_max, most_r, "spark.buckets"),
        ):
            if most is not None and most > limit:
                raise ValueError(f"control.{name}_max ({most}) is more than {bound} allows ({limit})")
            if least > (limit if most is None else most):
                raise ValueError(
                    f"control.{name}_min ({least}) is above the most ({limit if most is None else most})"
                )
