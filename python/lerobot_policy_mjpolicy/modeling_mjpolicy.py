"""The policy that LeRobot asks: keeps what was observed, and decides as often as the checkpoint wants."""
from __future__ import annotations

from collections import deque

import mjpolicy
import numpy as np
import torch
from lerobot.policies.pretrained import PreTrainedPolicy
from torch import Tensor

from lerobot_policy_mjpolicy.configuration_mjpolicy import MjpolicyConfig, read_checkpoint


class MjpolicyPolicy(PreTrainedPolicy):
    """A checkpoint run by mjpolicy's engine, for a batch of environments.

    The noise of environment i in the r-th rollout of n has the seed torch.initial_seed() + r n + i. With
    `lerobot-eval --seed S` that is the seed of the environment, as in `mjpolicy evaluate --seed S`.
    """

    config_class = MjpolicyConfig
    name = "mjpolicy"

    def __init__(self, config: MjpolicyConfig, **kwargs) -> None:
        super().__init__(config)
        self._reads_instruction = read_checkpoint(config.checkpoint)["type"] == "multi_task_dit"
        self._loaded: tuple | None = None  # what the engine was loaded for
        self._engine: mjpolicy.Policy | None = None
        self._first_seed = torch.initial_seed()
        self._rollouts = 0  # that have begun with an observation
        self.reset()

    def reset(self) -> None:
        """A rollout begins."""
        self._observations: deque = deque(maxlen=self.config.n_obs_steps)
        self._actions: deque = deque()
        self._execution: mjpolicy.Execution | None = None
        self._whole_chunks = 0

    def _engine_for(self, count: int, instruction: str | None) -> mjpolicy.Policy:
        wanted = (count, instruction)
        if self._loaded != wanted:
            config = self.config
            self._engine = mjpolicy.Policy(config.checkpoint, backend=config.backend, precision=config.precision,
                                           sampler=config.sampler, steps=config.steps, batch=count,
                                           threads=config.threads, instruction=instruction)
            self._loaded = wanted
        return self._engine

    def _instruction(self, batch: dict) -> str | None:
        if not self._reads_instruction:
            return None
        tasks = set(batch.get("task") or [])
        if len(tasks) != 1:
            raise ValueError(f"one instruction is needed for all environments of a batch, and there are {len(tasks)}")
        return tasks.pop()

    def _observe(self, batch: dict[str, Tensor]) -> None:
        """Keeps pictures (B, cameras, H, W, 3) uint8, state and environment state (B, D) float32, or None each."""
        missing = [name for name in self.config.input_features if name not in batch]
        if missing:
            raise ValueError(f"the environment gives no {', '.join(missing)}; it gives {', '.join(sorted(batch))}")
        pictures = None
        if self.config.image_features:
            # LeRobot has made float 0 ... 1 of bytes: back, exactly
            channels_first = torch.stack([batch[name].cpu() for name in self.config.image_features], dim=1)
            pictures = (channels_first * 255).round().to(torch.uint8).movedim(-3, -1).contiguous().numpy()
        numbers = [batch[feature].cpu().to(torch.float32).numpy() if feature in self.config.input_features else None
                   for feature in ("observation.state", "observation.environment_state")]
        if not self._observations:
            self._rollouts += 1
        self._observations.append((pictures, *numbers))
        while len(self._observations) < self.config.n_obs_steps:  # the first observation stands for those before
            self._observations.append(self._observations[-1])

    def _decide(self, batch: dict[str, Tensor], decision: int | None = None) -> np.ndarray:
        """The chunks (B, H, A) that the observations so far lead to. decision: of the noise; None: the execution's."""
        inputs = [None if part[0] is None else np.stack(part, axis=1)
                  for part in zip(*self._observations, strict=True)]
        count = next(part.shape[0] for part in inputs if part is not None)
        engine = self._engine_for(count, self._instruction(batch))
        if self._execution is None:
            self._execution = mjpolicy.Execution(engine, count)
        first = self._first_seed + (self._rollouts - 1) * count
        seeds = [(first + i) % 2**64 for i in range(count)]
        return engine.act(*inputs, seed=seeds, decision=self._execution.noise if decision is None else decision)

    @torch.no_grad()
    def predict_action_chunk(self, batch: dict[str, Tensor], **kwargs) -> Tensor:
        """(B, action_steps, A): what a host executes that takes whole chunks, decided on the batch of this call.

        A checkpoint of several observation steps sees the batches of the calls before, too, select_action's among
        them, since the last reset; the first stands for those that are missing. They are as far apart as the calls.
        """
        self._observe(batch)
        chunks = self._decide(batch, self._whole_chunks)
        self._whole_chunks += 1
        shape = self._engine.shape
        return torch.from_numpy(chunks[:, shape.first_action:shape.first_action + shape.action_steps])

    @torch.no_grad()
    def select_action(self, batch: dict[str, Tensor], **kwargs) -> Tensor:
        """(B, A): the action of this step."""
        self._observe(batch)
        if not self._actions:
            chunks = self._decide(batch)
            self._actions.extend(torch.from_numpy(self._execution.take(chunks)).transpose(0, 1))
        return self._actions.popleft()

    def forward(self, batch: dict[str, Tensor]):
        raise NotImplementedError("mjpolicy runs policies; train with LeRobot's own type")

    def get_optim_params(self) -> dict:
        raise NotImplementedError("mjpolicy runs policies; train with LeRobot's own type")
