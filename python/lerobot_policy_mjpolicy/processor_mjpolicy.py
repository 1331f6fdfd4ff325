"""What happens around the policy: nothing but names and the batch axis, since the engine normalises."""
from __future__ import annotations

from lerobot.processor import (
    AddBatchDimensionProcessorStep,
    DeviceProcessorStep,
    RenameObservationsProcessorStep,
    make_policy_processor_pipelines,
)


def make_mjpolicy_pre_post_processors(config, dataset_stats=None):
    """Pipelines before and behind the policy, of LeRobot's own steps."""
    before = [RenameObservationsProcessorStep(rename_map={}), AddBatchDimensionProcessorStep()]
    return make_policy_processor_pipelines(input_steps=before, output_steps=[DeviceProcessorStep(device="cpu")])
