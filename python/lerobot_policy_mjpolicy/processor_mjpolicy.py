"""What happens around the policy: nothing but names, since the engine normalises."""
from __future__ import annotations

from lerobot.processor import make_default_policy_processor_steps, make_policy_processor_pipelines


def make_mjpolicy_pre_post_processors(config, dataset_stats=None):
    """Pipelines before and behind the policy, by LeRobot's own steps: rename, add a batch axis; to the CPU."""
    steps = make_default_policy_processor_steps(config, dataset_stats)
    return make_policy_processor_pipelines(input_steps=[steps.rename_observations, steps.add_batch_dim],
                                           output_steps=[steps.to_cpu])
