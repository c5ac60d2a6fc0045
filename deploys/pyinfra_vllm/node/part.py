"""A part of the node state: its value, or why there is none."""

from __future__ import annotations

from typing import Generic, TypeVar

from pydantic import BaseModel, ConfigDict

from pyinfra_vllm.errors import UserError

T = TypeVar("T")
D = TypeVar("D")


class Model(BaseModel):
    """Base of what a node says: immutable, and tolerant of what a newer script adds."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Part(Model, Generic[T]):
    """``value`` when ``ok``, else ``error``; ``seconds`` is how long it took."""

    ok: bool = False
    value: T | None = None
    error: str = ""
    seconds: float = 0.0

    @property
    def reason(self) -> str:
        """Why there is no value; empty when there is one."""
        return "" if self.ok else self.error or "the state of the node was not read"

    @property
    def required(self) -> T:
        """The value; UserError with the node's own words when the part could not be read."""
        if not self.ok or self.value is None:
            raise UserError(self.reason)
        return self.value

    def value_or(self, default: D) -> T | D:
        """The value, or ``default`` when the part could not be read."""
        return self.value if self.ok and self.value is not None else default
