"""Patient: one more worker after several busy micro-batches in a row, one fewer after several idle ones."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import Field

from evenflow.elasticity import Decision, Observation, Options, Policy


class PatientOptions(Options):
    """Options of `patient`."""

    patience: int = Field(default=3, ge=1, description="Micro-batches in a row before anything changes.")
    busy: float = Field(default=0.9, gt=0, description="Load (W) from which on a micro-batch is busy.")
    idle: float = Field(default=0.4, gt=0, description="Load (W) up to which a micro-batch is idle.")


class Patient(Policy):
    """Adds a worker after some busy micro-batches in a row, and removes one after some idle ones."""

    options_type: ClassVar[type[Options]] = PatientOptions
    needs: ClassVar[tuple[str, ...]] = ("load",)
    options: PatientOptions

    def __init__(self, **made: Any) -> None:
        super().__init__(**made)
        self._row = 0

    def _decide(self, observation: Observation) -> Decision:
        load = observation.load
        assert load is not None  # `needs` asks for it
        direction = 1 if load >= self.options.busy else -1 if load <= self.options.idle else 0
        self._row = self._row + direction if direction * self._row >= 0 else direction
        if direction == 0:
            self._row = 0
            return Decision(p=observation.p, r=observation.r, reason="neither busy nor idle", cause="stable")
        if abs(self._row) < self.options.patience:
            return Decision(
                p=observation.p, r=observation.r, reason=f"W is {load:.2f} for now", cause="waiting"
            )
        self._row = 0
        return Decision(
            p=max(1, observation.p + direction),
            r=observation.r,
            reason=f"W stays at {load:.2f}",
            cause="load",
        )

    def _missed(self, observation: Observation) -> None:
        self._row = 0

    def _state(self) -> dict[str, Any]:
        return {"row": self._row}

    def _load_state(self, state: dict[str, Any]) -> None:
        if type(state["row"]) is not int:
            raise ValueError("row is no whole number")
        self._row = state["row"]
