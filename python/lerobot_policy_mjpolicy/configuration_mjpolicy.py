"""What `--policy.type=mjpolicy` takes."""
from __future__ import annotations

import json
import pathlib
from dataclasses import dataclass, field

from lerobot.configs import FeatureType, PolicyFeature, PreTrainedConfig

TYPES = ("diffusion", "diffusion_compact", "act", "multi_task_dit")


def read_checkpoint(folder: str) -> dict:
    """config.json of a checkpoint. Raises ValueError with what is wrong and what to do."""
    if not folder:
        raise ValueError("which policy? pass --policy.checkpoint=DIR, a folder with config.json and model.safetensors")
    path = pathlib.Path(folder) / "config.json"
    if not path.is_file():
        raise ValueError(f"there is no {path}; to get one from the hub: hf download USER/NAME --local-dir {folder}")
    given = json.loads(path.read_text())
    if given.get("type") not in TYPES:
        raise ValueError(f"{path}: type is {given.get('type')!r}, and mjpolicy runs {', '.join(TYPES)}")
    if given.get("temporal_ensemble_coeff") is not None:
        raise ValueError(f"{path}: temporal_ensemble_coeff needs a decision per step, which the plugin and `mjpolicy "
                         "evaluate` take, and this policy does not")
    return given


def features_of(given: dict[str, dict]) -> dict[str, PolicyFeature]:
    return {name: PolicyFeature(type=FeatureType(entry["type"]), shape=tuple(entry["shape"]))
            for name, entry in given.items()}


@PreTrainedConfig.register_subclass("mjpolicy")
@dataclass
class MjpolicyConfig(PreTrainedConfig):
    """A checkpoint that LeRobot trained, run by mjpolicy. Options are those of `mjpolicy.Policy`."""

    checkpoint: str = ""  # its folder
    backend: str = "auto"  # "cpu", "cuda"
    precision: str = "auto"  # "fp32", "tf32", "fp16", "bf16"
    sampler: str | None = None  # "ddpm", "ddim", "euler", "rk4", "onestep"; None: the checkpoint's
    steps: int | None = None  # of denoising; None: as the checkpoint says
    threads: int = 1  # of the CPU; results do not depend on them
    device: str | None = "cpu"  # where LeRobot keeps observations; the engine takes the GPU itself
    push_to_hub: bool = False
    input_features: dict[str, PolicyFeature] | None = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        given = read_checkpoint(self.checkpoint)
        self.n_obs_steps = given.get("n_obs_steps", 1)
        self.input_features = features_of(given["input_features"])
        self.output_features = features_of(given["output_features"])

    def validate_features(self) -> None:
        """mjpolicy checks them as it loads the weights."""

    @property
    def observation_delta_indices(self) -> list[int]:
        return list(range(1 - self.n_obs_steps, 1))

    @property
    def action_delta_indices(self) -> None:
        return None

    @property
    def reward_delta_indices(self) -> None:
        return None

    def get_optimizer_preset(self):
        raise NotImplementedError("mjpolicy runs policies; train with --policy.type=diffusion, act or multi_task_dit")

    def get_scheduler_preset(self) -> None:
        return None
