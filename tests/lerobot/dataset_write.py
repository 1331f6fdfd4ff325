"""Lets LeRobot write a small data set, for mjpolicy to check: dataset_write.py FOLDER image|video."""
import sys

import numpy as np
from lerobot.datasets.lerobot_dataset import LeRobotDataset

root, kind = sys.argv[1:]
random = np.random.default_rng(3)
features = {
    "observation.state": {"dtype": "float32", "shape": (5,), "names": ["a", "b", "c", "d", "e"]},
    "observation.environment_state": {"dtype": "float32", "shape": (3,), "names": None},
    "action": {"dtype": "float32", "shape": (2,), "names": ["x", "y"]},
    "observation.images.wrist": {"dtype": kind, "shape": (64, 96, 3), "names": ["height", "width", "channels"]},
    "observation.images.front": {"dtype": kind, "shape": (64, 96, 3), "names": ["height", "width", "channels"]},
}
dataset = LeRobotDataset.create("local/written", fps=10, features=features, root=root, use_videos=kind == "video")
y, x = np.mgrid[0:64, 0:96]
for episode, length in enumerate([12, 7, 20]):
    for t in range(length):
        picture = np.stack([127 + 100 * np.sin((x + 2 * t) / 17), 127 + 100 * np.cos((y - t) / 23), 2 * y + 0 * x], -1)
        dataset.add_frame({
            "observation.state": random.normal(size=5).astype(np.float32),
            "observation.environment_state": random.normal(size=3).astype(np.float32),
            "action": random.uniform(-1, 1, 2).astype(np.float32),
            "observation.images.wrist": picture.astype(np.uint8),
            "observation.images.front": picture[:, ::-1].astype(np.uint8),
            "task": ["push the T", "lift the cube"][episode % 2],
        })
    dataset.save_episode()
dataset.finalize()
