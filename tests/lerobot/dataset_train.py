"""Trains LeRobot's ACT for one step on a data set that this project wrote: dataset_train.py DATASET

Ends with an error where a number or a weight is not finite.
"""
import math
import sys

import torch
from lerobot.datasets.lerobot_dataset import LeRobotDataset
from lerobot.policies.act.configuration_act import ACTConfig
from lerobot.policies.factory import make_policy

CHUNK = 8
root = sys.argv[1]
fps = LeRobotDataset("test/set", root=root).meta.fps
dataset = LeRobotDataset("test/set", root=root, delta_timestamps={"action": [i / fps for i in range(CHUNK)]})
config = ACTConfig(chunk_size=CHUNK, n_action_steps=CHUNK, device="cpu", push_to_hub=False, pretrained_backbone_weights=None)
policy = make_policy(config, ds_meta=dataset.meta).train()
items = [{key: value for key, value in dataset[i].items() if hasattr(value, "shape")} for i in range(2)]
loss, _ = policy.forward(torch.utils.data.default_collate(items))
loss.backward()
torch.optim.AdamW(policy.parameters(), 1e-4).step()
if not math.isfinite(loss.item()) or not all(torch.isfinite(each).all() for each in policy.parameters()):
    sys.exit(f"{root}: a training step of LeRobot's ends in numbers that are not finite")
print(f"{root}: a training step of LeRobot's, loss {loss.item():.1f}")
