"""Which actions of a policy's chunks a robot executes, as its checkpoint wants."""
from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mjpolicy.policy import Policy


class Execution:
    """Of `count` robots that decide together, every ``shape.decision_steps`` control steps.

    A robot follows the chunk that it took for up to ``shape.action_steps`` control steps. It takes a new one earlier
    where that departs from the old one by more than the checkpoint's `replan_beyond`, so small differences between
    decisions do not make it waver (``mjp_follow`` in policy/c_api.h)::

        execution = Execution(policy)
        while running:
            chunk = policy.act(pictures, state, seed=seed, decision=execution.noise)
            for action in execution.take(chunk):
                ...

    A new one for each episode. Not for ACT with `temporal_ensemble_coeff`, which executes a mean of its chunks:
    ``take`` raises PolicyError.
    """

    def __init__(self, policy: Policy, count: int | None = None) -> None:
        """count: robots; None: one, whose arrays have no such axis."""
        self._policy, self._shape, self._count = policy, policy.shape, count
        self._chunks: NDArray[np.float32] | None = None  # (robots, H, A): those that are followed
        self._ages = np.full(count or 1, -1, np.intc)  # control steps since the observations that they answer
        self._decisions = 0

    @property
    def noise(self) -> int:
        """What ``Policy.act`` takes as the next `decision`: one number for as many decisions as share their noise."""
        return self._decisions // self._shape.noise_decisions

    def take(self, chunk: NDArray[np.float32]) -> NDArray[np.float32]:
        """Takes the chunk (H, A), or those of `count` robots, that the newest observations led to.

        Returns: (decision_steps, A), or (count, decision_steps, A): the actions until the next decision.
        """
        size = (self._shape.horizon, self._shape.action_dim)
        wanted = size if self._count is None else (self._count, *size)
        if np.shape(chunk) != wanted:
            raise ValueError(f"chunk has the shape {np.shape(chunk)}, expected {wanted}")
        new = np.array(chunk, np.float32, order="C").reshape(-1, *size)
        self._policy.follow(self._chunks, self._ages, new)
        self._chunks = new
        self._decisions += 1
        first = self._shape.first_action
        taken = new[:, first:first + self._shape.decision_steps]
        return taken[0] if self._count is None else taken
