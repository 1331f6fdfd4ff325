"""Loads a data set that mjpolicy wrote with LeRobot: dataset_compare.py FOLDER SOURCE image|video."""
import importlib.metadata, sys
import numpy as np
from lerobot.datasets.lerobot_dataset import LeRobotDataset

root, source, kind = sys.argv[1:]
want = np.load(source + "/arrays.npz")
dataset = LeRobotDataset("local/check", root=root)
assert len(dataset) == 72 and dataset.num_episodes == 3, (len(dataset), dataset.num_episodes)
ends = [0, 23, 41, 72]
worst = 99.0
for i in range(72):
    item = dataset[i]
    episode = np.searchsorted(ends, i, side="right") - 1
    assert item["task"] == "push the T", item["task"]
    assert item["episode_index"] == episode and item["frame_index"] == i - ends[episode]
    assert item["index"] == i and item["task_index"] == 0
    for name, key in [("data_state", "observation.state"), ("data_action", "action"),
                      ("data_n_contacts", "observation.n_contacts")]:
        assert np.array_equal(np.atleast_1d(item[key].numpy()), want[name][i]), (i, key)
    picture = item["observation.image"].numpy().transpose(1, 2, 0) * 255
    error = np.mean((picture - want["data_img"][i]) ** 2)
    worst = min(worst, 99.0 if error < 1e-6 else 10 * np.log10(255 ** 2 / error))
assert worst == 99.0 if kind == "image" else worst > 30, worst
stats = dataset.meta.stats
assert np.allclose(stats["action"]["mean"], want["data_action"].astype(float).mean(0), rtol=1e-9)
assert np.allclose(stats["action"]["std"], want["data_action"].astype(float).std(0), rtol=1e-9)
assert np.array_equal(stats["action"]["max"], want["data_action"].max(0))
sampled = np.allclose(np.ravel(stats["observation.image"]["mean"]), want["data_img"].mean((0, 1, 2), dtype=float) / 255, atol=1e-6)
assert sampled and stats["observation.image"]["mean"].shape == (3, 1, 1)
print(f"lerobot {importlib.metadata.version('lerobot')}, {kind}: 72 frames equal; pictures "
      + ("equal" if worst == 99.0 else f"at least {worst:.1f} dB"))
