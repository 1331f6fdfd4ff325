"""A zarr folder as Diffusion Policy writes it, without compression: moving shapes, numbers."""
import json, pathlib, sys
import numpy as np

root, ends = pathlib.Path(sys.argv[1]), np.array([23, 41, 72])
n = ends[-1]
y, x, t = np.meshgrid(np.arange(96), np.arange(96), np.arange(n), indexing="ij")
img = np.stack([127 + 100 * np.sin((x + 2 * t) / 17), 127 + 100 * np.cos((y - t) / 23), 2 * y + 0 * x], -1)
arrays = {
    "data/img": np.round(img).astype("<f4").transpose(2, 0, 1, 3),
    "data/state": np.random.default_rng(1).normal(size=(n, 5)).astype("<f4"),
    "data/action": np.random.default_rng(2).uniform(0, 512, (n, 2)).astype("<f4"),
    "data/n_contacts": np.arange(n).reshape(n, 1).astype("<f4") % 4,
    "meta/episode_ends": ends.astype("<i8"),
}
for name, array in arrays.items():
    folder = root / name
    folder.mkdir(parents=True)
    rows = 10
    meta = {"zarr_format": 2, "shape": list(array.shape), "chunks": [rows, *array.shape[1:]],
            "dtype": array.dtype.str, "compressor": None, "fill_value": 0, "filters": None, "order": "C"}
    (folder / ".zarray").write_text(json.dumps(meta))
    for chunk in range(-(-len(array) // rows)):
        part = np.zeros((rows, *array.shape[1:]), array.dtype)
        some = array[chunk * rows:(chunk + 1) * rows]
        part[:len(some)] = some
        (folder / ".".join([str(chunk)] + ["0"] * (array.ndim - 1))).write_bytes(part.tobytes())
(root / ".zgroup").write_text('{"zarr_format": 2}')
np.savez(root / "arrays.npz", **{k.replace("/", "_"): v for k, v in arrays.items()})
