"""What is to be done, and when."""

from __future__ import annotations

import time

from .actions import Action, Clear, Prepare


class Agenda:
    """Actions that wait for their time. Of looks at the preconditions only the last one counts."""

    def __init__(self) -> None:
        self._due: list[tuple[float, Action]] = []

    def add(self, actions: tuple[Action, ...]) -> None:
        """Note actions, each for when its ``delay`` has passed; an end forgets what was noted."""
        for action in actions:
            if isinstance(action, Clear):
                self._due.clear()
            if isinstance(action, Prepare):
                self.drop_looks()
            self._due.append((time.monotonic() + getattr(action, "delay", 0.0), action))

    def drop_looks(self) -> None:
        """Forget looks at the preconditions."""
        self._due = [due for due in self._due if not isinstance(due[1], Prepare)]

    def seconds(self, most: float) -> float:
        """Seconds to the next action, ``most`` at most."""
        now = time.monotonic()
        return min([most, *(max(0.0, at - now) for at, _ in self._due)])

    def take(self) -> list[Action]:
        """The actions whose time has come; they are noted no longer."""
        now = time.monotonic()
        ready = [action for at, action in self._due if at <= now]
        self._due = [(at, action) for at, action in self._due if at > now]
        return ready
