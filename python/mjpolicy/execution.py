"""Which actions of a policy's chunks a robot executes, as its checkpoint wants."""
from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mjpolicy.policy import Shape


class Execution:
    """Of `count` robots that decide together, every ``shape.decision_steps`` control steps.

    A robot follows the chunk that it took for up to ``shape.action_steps`` control steps. It takes a new one earlier
    where an action of that lies more than ``shape.replan_beyond`` from the old one's for the same moment, so small
    differences between decisions do not make it waver (policy/prefix/event_replanning.h, which does the same)::

        execution = Execution(policy.shape)
        while running:
            chunk = policy.act(pictures, state, seed=seed, decision=execution.noise)
            for action in execution.take(chunk):
                ...

    A new one for each episode.
    """

    def __init__(self, shape: Shape, count: int | None = None) -> None:
        """count: robots; None: one, whose arrays have no such axis."""
        self._shape, self._count = shape, count
        self._chunks: NDArray[np.float32] | None = None  # (robots, H, A): those that are followed
        self._ages = np.zeros(count or 1, int)  # control steps since the observations that they answer
        self._most = min(shape.action_steps, shape.horizon - shape.first_action)
        self._decisions = 0

    @property
    def noise(self) -> int:
        """What ``Policy.act`` takes as the next `decision`: one number for as many decisions as a chunk lasts."""
        return self._decisions // max(1, self._shape.action_steps // self._shape.decision_steps)

    def take(self, chunk: NDArray[np.float32]) -> NDArray[np.float32]:
        """Takes the chunk (H, A), or those of `count` robots, that the newest observations led to.

        Returns: (decision_steps, A), or (count, decision_steps, A): the actions until the next decision.
        """
        steps, first = self._shape.decision_steps, self._shape.first_action
        size = (self._shape.horizon, self._shape.action_dim)
        wanted = size if self._count is None else (self._count, *size)
        if np.shape(chunk) != wanted:
            raise ValueError(f"chunk has the shape {np.shape(chunk)}, expected {wanted}")
        new = np.array(chunk, np.float32).reshape(-1, *size)
        if self._chunks is not None:
            self._ages += steps
            for robot, before in enumerate(self._chunks):
                if self._follows(before, new[robot], int(self._ages[robot])):
                    new[robot, :-steps] = before[steps:]
                else:
                    self._ages[robot] = 0
        self._chunks = new
        self._decisions += 1
        taken = new[:, first:first + steps]
        return taken[0] if self._count is None else taken

    def _follows(self, before: NDArray[Any], new: NDArray[Any], age: int) -> bool:
        if self._shape.replan_beyond == 0 or age >= self._most:
            return False
        steps, begin = self._shape.decision_steps, self._shape.first_action
        end = begin + self._most - age
        apart = new[begin:end].astype(np.float64) - before[begin + steps:end + steps]
        # a number that is none departs
        return bool(np.all((apart * apart).sum(axis=1) <= self._shape.replan_beyond**2))
