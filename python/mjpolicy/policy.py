"""A policy as a Python object: observations in, chunks of actions out."""
from __future__ import annotations

import dataclasses
import operator
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mjpolicy import _core

_MOST_SEED, _MOST_DECISION = 2**64 - 1, 2**32 - 1


@dataclasses.dataclass(frozen=True)
class Shape:
    """Sizes of observations and actions, as ``mjp_shape`` has them."""

    observation_steps: int  #: To: an observation holds so many control steps, oldest first
    state_dim: int  #: numbers of state per step; 0: none
    environment_dim: int  #: numbers of environment state per step; 0: none
    cameras: int  #: pictures per step
    picture_height: int  #: pixels; 0 without cameras
    picture_width: int
    horizon: int  #: H: actions in a chunk
    action_dim: int  #: A
    first_action: int  #: actions first_action ... first_action + action_steps - 1 are executed
    action_steps: int
    decision_steps: int  #: control steps from decision to decision, as the checkpoint wants
    noise_decisions: int  #: decisions one after the other that share their noise; see ``Execution``


@dataclasses.dataclass(frozen=True)
class Feature:
    """One input or output, and the range that the training had, in raw units."""

    name: str  #: "observation.images.top", "observation.state", "action"
    dim: int  #: numbers per step; 3 for a picture
    height: int  #: pixels; 0 for numbers
    width: int
    normalization: str  #: "MIN_MAX", "MEAN_STD", "QUANTILES", ... or "IDENTITY"
    low: NDArray[np.float32] | None  #: (dim): minimum, mean or lower quantile
    high: NDArray[np.float32] | None  #: (dim): maximum, standard deviation or upper quantile


def _feature(fields: tuple[Any, ...]) -> Feature:
    *names, low, high = fields
    return Feature(*names, *(None if part is None else np.frombuffer(part, np.float32) for part in (low, high)))


def _numbers(name: str, values: Any, count: int, dtype: type[np.unsignedinteger[Any]],
             most: int) -> NDArray[np.unsignedinteger[Any]]:
    """`count` whole numbers 0 ... most; one number stands for all."""
    one = np.ndim(values) == 0
    try:
        given = [operator.index(value) for value in ([values] if one else values)]
    except TypeError:
        given = []
    if len(given) != (1 if one else count):
        raise ValueError(f"{name} is {values!r}, expected a whole number or {count} of them")
    if min(given) < 0 or max(given) > most:
        raise ValueError(f"{name} is {values!r}, expected 0 to {most}")
    return np.array(given * count if one else given, dtype)


class Policy:
    """A trained policy. One object serves one thread at a time; ``act`` lets other threads run meanwhile.

    Args:
      directory: checkpoint folder with config.json and model.safetensors, as LeRobot or mjpolicy wrote it.
      backend: "auto", "cpu" or "cuda".
      precision: "auto", "fp32", "tf32", "fp16" or "bf16", of the products on a GPU.
      sampler: "ddpm", "ddim", "euler", "rk4" or "onestep"; None: as the checkpoint says.
      steps: denoising steps; None: as the checkpoint says.
      batch: most environments of one call of ``act``, to 4096.
      threads: of the CPU; results do not depend on them.
      instruction: what to do, in words, of a policy that reads it.

    Raises PolicyError with the text of the C API: a missing or malformed file, an option that does not fit.
    """

    def __init__(self, directory: str | os.PathLike[str], *, backend: str = "auto", precision: str = "auto",
                 sampler: str | None = None, steps: int | None = None, batch: int = 1, threads: int = 1,
                 instruction: str | None = None) -> None:
        self._policy = _core.load(os.fspath(directory), backend, precision, sampler, steps or 0, batch, threads,
                                  instruction)
        *sizes, features = _core.describe(self._policy)
        self.shape = Shape(*sizes)
        #: the cameras in the order of the pictures, the state, the environment state, the action
        self.features = tuple(_feature(_core.feature(self._policy, index)) for index in range(features))

    def act(self, pictures: NDArray[np.uint8] | None = None, state: ArrayLike | None = None,
            environment: ArrayLike | None = None, *, seed: int | Sequence[int] = 0,
            decision: int | Sequence[int] = 0) -> NDArray[np.float32]:
        """A chunk of actions for an observation, or one for each of `count` environments.

        Args:
          pictures: (To, cameras, height, width, 3) uint8 RGB, C-contiguous: it is read where it lies. With one
            camera (To, height, width, 3) will do. None for a policy without cameras.
          state: (To, state_dim), raw units; float32 is not copied. None for a policy without.
          environment: (To, environment_dim), likewise.
          seed, decision: name the noise: seed of the episode, index of the decision in it. A number, or `count`.

        An axis `count` in front of each, 1 to the policy's batch, asks for several at once. For a policy with one step,
        one camera and no numbers, (1, 1, height, width, 3) alone is one observation; give the axis of cameras for a
        count of 1.

        Returns: (H, action_dim) or (count, H, action_dim) float32, raw units. Execute
          ``chunk[shape.first_action:][:shape.action_steps]``, one per control step, or what ``Execution`` says.
          Same input, same bits.

        Raises PolicyError, ValueError or TypeError, which say what was expected.
        """
        shape = self.shape
        steps = shape.observation_steps
        frame = (shape.picture_height, shape.picture_width, 3)
        wanted = {"pictures": (steps, shape.cameras, *frame), "state": (steps, shape.state_dim),
                  "environment": (steps, shape.environment_dim)}
        numbers = {"state": self._floats("state", state), "environment": self._floats("environment", environment)}
        several = any(array is not None and array.ndim == 3 for array in numbers.values())
        given: dict[str, NDArray[Any] | None] = {
            "pictures": self._pictures(pictures, (steps, *frame), several), **numbers}
        counts = set()
        for name, array in given.items():
            single = wanted[name]
            if (array is None) != (0 in single):
                raise ValueError(f"this policy has no {name}" if array is not None
                                 else f"{name} is missing: expected {single}")
            if array is None:
                continue
            if array.shape[-len(single):] != single or array.ndim > len(single) + 1:
                raise ValueError(f"{name} is {array.shape}, expected {single} or (count, ...)")
            counts.add(None if array.ndim == len(single) else array.shape[0])
        if len(counts) > 1:
            raise ValueError("pictures, state and environment are of different numbers of environments")
        count = counts.pop() if counts else None
        many = 1 if count is None else count
        actions = np.empty((many, shape.horizon, shape.action_dim), np.float32)
        _core.infer(self._policy, many, given["pictures"], given["state"], given["environment"],
                    _numbers("seed", seed, many, np.uint64, _MOST_SEED),
                    _numbers("decision", decision, many, np.uint32, _MOST_DECISION), actions)
        return actions[0] if count is None else actions

    def follow(self, before: NDArray[np.float32] | None, ages: NDArray[np.intc], chunks: NDArray[np.float32]) -> None:
        """``mjp_follow`` of policy/c_api.h, which ``Execution`` calls: `chunks` and `ages` are changed.

        Args:
          before: (count, H, A), C-contiguous; None where all ages are -1.
          ages: (count).
          chunks: (count, H, A), C-contiguous.
        """
        _core.follow(self._policy, len(ages), before, ages, chunks)

    def _pictures(self, pictures: NDArray[np.uint8] | None, one_camera: tuple[int, ...],
                  several: bool) -> NDArray[np.uint8] | None:
        """`pictures` with an axis of cameras. several: the numbers beside them have an axis `count`."""
        if pictures is None:
            return None
        array = np.asarray(pictures)
        if array.dtype != np.uint8:
            raise TypeError(f"pictures are {array.dtype}, expected uint8, 0 to 255")
        if not array.flags.c_contiguous:
            raise ValueError("pictures are not contiguous; pass numpy.ascontiguousarray(pictures)")
        # with one step, (1, 1, H, W, 3) is To and cameras, or `count` and To: the numbers tell
        whole = array.shape == (one_camera[0], 1, *one_camera[1:]) and not several
        if self.shape.cameras == 1 and array.shape[-4:] == one_camera and array.ndim <= 5 and not whole:
            return np.expand_dims(array, -4)  # a view
        return array

    @staticmethod
    def _floats(name: str, values: ArrayLike | None) -> NDArray[np.float32] | None:
        if values is None:
            return None
        array = np.asarray(values)
        if array.dtype.kind not in "fiu":
            raise TypeError(f"{name} is {array.dtype}, expected numbers")
        return np.ascontiguousarray(array, np.float32)
