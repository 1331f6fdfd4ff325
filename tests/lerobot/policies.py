"""Differential test: random LeRobot policies, its own code against `mjpolicy infer` on the CPU.

  policies.py MJPOLICY [--count 200] [--first 0] [--seed 1] [--verbose]

A policy passes if the actions agree with LeRobot's in double precision within the limits of
docs/NUMERICS.md, or if mjpolicy refuses it and names the key of a file that LeRobot knows and
mjpolicy does not. Anything else fails.
"""
import os

os.environ.update(HF_HUB_OFFLINE="1", TQDM_DISABLE="1")  # before the library reads them

import argparse
import collections
import contextlib
import importlib.metadata
import logging
import pathlib
import random
import subprocess
import sys
import tempfile

import numpy as np
import torch
from safetensors.numpy import load_file, save_file

import configs
from clip import write_clip
from lerobot.policies.factory import get_policy_class, make_pre_post_processors
from lerobot.policies.utils import populate_queues

ENVIRONMENTS = 2
TEXTS = ["Push the T-shaped block", "pick up 2 red cubes, then stop!"]
PICTURES = "observation.images"


def statistics(config, generator, keys):
    """Every statistic of each feature. A value that never changes has a range of zero: `keys` gets its feature."""
    def draw(*shape):
        return generator.uniform(-1, 1, shape)

    stats = {}
    for name, feature in {**config.input_features, **config.output_features}.items():
        picture = len(feature.shape) == 3
        shape = (3, 1, 1) if picture else feature.shape
        width = 0.25 * (1.5 + draw(*shape)) if picture else 10 ** (1.5 * draw(*shape))
        middle = 0.5 + 0.1 * draw(*shape) if picture else 3 * width * draw(*shape)
        mode = config.normalization_mapping.get(feature.type.value)
        if not picture and mode and mode.value not in ("IDENTITY", "MEAN_STD") and generator.random() < 0.05:
            width[0] = 0
            keys.append(name)
        each = {"mean": middle, "std": width, "min": middle - 2 * width, "max": middle + 2 * width,
                "q01": middle - 1.9 * width, "q99": middle + 1.8 * width,
                "q10": middle - 1.2 * width, "q90": middle + 1.3 * width}
        stats[name] = {key: value.astype(np.float32) for key, value in each.items()}
    return stats


def observations(config, stats, generator):
    """Per feature (environments, observation steps, ...): pictures u8, numbers f32."""
    inputs = {}
    for name, feature in config.input_features.items():
        if len(feature.shape) == 3:
            _, height, width = feature.shape
            coarse = generator.integers(0, 256, (ENVIRONMENTS, config.n_obs_steps, -(-height // 8), -(-width // 8), 3))
            blocks = coarse.repeat(8, 2).repeat(8, 3)[:, :, :height, :width]
            inputs[name] = ((3 * blocks + generator.integers(0, 256, blocks.shape)) // 4).astype(np.uint8)
            continue
        shape = (ENVIRONMENTS, config.n_obs_steps, *feature.shape)
        spread = stats[name]["std"]
        values = stats[name]["mean"] + spread * generator.uniform(-1.5, 1.5, shape)
        inputs[name] = np.where(spread == 0, stats[name]["mean"], values).astype(np.float32)
    return inputs


def disturb(policy, generator):
    """LeRobot's initial weights leave layers at zero or one; random ones leave nothing untested."""
    with torch.no_grad():
        for name, tensor in policy.state_dict().items():
            if not tensor.is_floating_point() or name.endswith(("pos_grid", "vae_encoder_pos_enc")):
                continue
            noise = torch.from_numpy(generator.standard_normal(tuple(tensor.shape))).to(tensor)
            if name.endswith("running_var"):
                tensor.copy_(0.5 + noise.abs())
            elif "adaLN" in name and tensor.ndim == 2:
                tensor.copy_(noise * 0.5 / tensor.shape[1] ** 0.5)
            elif tensor.ndim < 2:
                tensor.add_(0.1 * noise)


def cast_inputs(policy):
    """LeRobot makes some inputs of layers in float32, also of a policy in double precision."""
    def cast(module, arguments):
        to = next(module.parameters(recurse=False), torch.empty(0)).dtype
        return tuple(each.to(to) if torch.is_tensor(each) and each.is_floating_point() else each for each in arguments)

    for module in policy.modules():
        if next(module.parameters(recurse=False), None) is not None:
            module.register_forward_pre_hook(cast)
        if type(module).__name__ == "ACTSinusoidalPositionEmbedding2d":
            module.register_forward_hook(lambda _, __, out: out.to(torch.get_default_dtype()))


@contextlib.contextmanager
def given_noise(draws):
    """torch.randn gives `draws` one after the other, and no more."""
    original, rest = torch.randn, iter(draws)

    def next_draw(*_, dtype=None, **__):
        return torch.from_numpy(next(rest)).to(dtype or torch.get_default_dtype())

    torch.randn = next_draw
    try:
        yield
    finally:
        torch.randn = original


def lerobot_actions(policy, pre, post, config, inputs, draws, dtype, select):
    """Actions (environments, n, action) as LeRobot computes them, raw units."""
    torch.set_default_dtype(dtype)
    policy.to(dtype)
    policy.reset()
    with given_noise(draws), torch.no_grad():
        chunk = []
        for step in range(config.n_obs_steps):
            batch = {"task": TEXTS[:ENVIRONMENTS]}
            for name, values in inputs.items():
                tensor = torch.from_numpy(values[:, step])
                batch[name] = (tensor.permute(0, 3, 1, 2).to(dtype) / 255 if tensor.ndim == 4 else tensor.to(dtype))
            batch = pre(batch)
            batch.pop("action", None)
            if select:
                break
            if config.type != "act":
                cameras = [batch[key] for key in config.image_features]
                if cameras:
                    batch[PICTURES] = torch.stack(cameras, dim=-4)
                policy._queues = populate_queues(policy._queues, batch)
        if select:
            chunk = [policy.select_action(dict(batch)) for _ in range(config.n_action_steps)]
            actions = torch.stack(chunk, dim=1)
        else:
            actions = policy.predict_action_chunk(batch)[:, :config.n_action_steps]
        actions = post(actions)
    torch.set_default_dtype(torch.float32)
    tokens = {"in/ids": batch.get("observation.language.tokens"), "in/mask": batch.get("observation.language.attention_mask")}
    return actions.double().numpy(), {key: value.numpy() for key, value in tokens.items() if value is not None}


def limit_of(config):
    """Limit of docs/NUMERICS.md for normalised actions, against double precision."""
    if config.type == "act":
        return 1e-5
    if config.type == "diffusion":
        return 3e-5
    divides = config.objective == "diffusion" and (config.noise_scheduler_type, config.prediction_type) == ("DDIM", "sample")
    return 6e-5 if divides else 3e-5


def units(config, stats):
    """Raw units for each normalised unit of an action, and their offset."""
    action, mode = stats["action"], config.normalization_mapping["ACTION"].value
    low_high = {"MIN_MAX": ("min", "max"), "QUANTILES": ("q01", "q99"), "QUANTILE10": ("q10", "q90")}
    if mode in low_high:
        low, high = (action[key].astype(float) for key in low_high[mode])
        return np.where(high > low, high - low, 1e-8) / 2, (low + high) / 2
    if mode == "MEAN_STD":
        return action["std"].astype(float), action["mean"].astype(float)
    return np.ones_like(action["std"], dtype=float), np.zeros_like(action["mean"], dtype=float)


def noise_tensors(config, generator):
    """(tensors for mjpolicy, LeRobot's draws in order)."""
    shape = (ENVIRONMENTS, config.horizon, config.action_feature.shape[0]) if config.type != "act" else None
    if shape is None:
        return {}, []
    start = generator.standard_normal(shape).astype(np.float32)
    if getattr(config, "objective", "diffusion") != "diffusion":
        return {"in/x_T": start}, [start]
    steps = config.num_train_timesteps
    by_t = generator.standard_normal((steps, *shape)).astype(np.float32)
    done = config.num_inference_steps or steps
    order = [i * (steps // done) for i in range(done)][::-1]
    draws = [by_t[t] for t in order if t > 0] if config.noise_scheduler_type == "DDPM" else []
    return {"in/x_T": start, "in/noise_by_t": by_t}, [start, *draws]


def run_mjpolicy(program, folder, config, tensors):
    save_file({key: np.ascontiguousarray(value) for key, value in tensors.items()}, folder / "in.safetensors")
    command = [program, "infer", "--backend", "cpu", "--threads", "1", "--checkpoint", folder / "policy",
               "--in", folder / "in.safetensors", "--out", folder / "out.safetensors"]
    if config.type != "act" and getattr(config, "objective", "diffusion") == "diffusion":
        command.append("--sequential")
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=300)


def compare(program, index, seed, folder):
    """(verdict, figures or why, type): "equal", "refused" (by key), "LeRobot does not ...", "FAILED"."""
    rng, generator = random.Random(f"{seed}/{index}"), np.random.default_rng([seed, index])
    torch.manual_seed(index)
    checkpoint = folder / "policy"
    checkpoint.mkdir()
    os.chdir(checkpoint)  # names of CLIP models are folders here
    kind = ["diffusion", "act", "multi_task_dit"][index % 3]
    make = getattr(configs, kind)
    config, keys = make(rng, lambda size: write_clip(size, rng)) if kind == "multi_task_dit" else make(rng)
    try:
        policy = get_policy_class(kind)(config).eval()
    except Exception as error:  # what LeRobot cannot build, nobody has trained
        return "LeRobot does not build", f"{type(error).__name__}: {error}", kind
    disturb(policy, generator)
    cast_inputs(policy)
    stats = statistics(config, generator, keys)
    pre, post = make_pre_post_processors(config, dataset_stats=stats)
    policy.save_pretrained(checkpoint)
    pre.save_pretrained(checkpoint)
    post.save_pretrained(checkpoint)
    for weights in checkpoint.glob("clip*/model.safetensors"):
        weights.unlink()
    select = rng.random() < 0.3 and config.type != "act" or config.type == "act" and config.temporal_ensemble_coeff is None
    inputs = observations(config, stats, generator)
    if select:  # LeRobot fills its queue with the first observation
        inputs = {key: np.repeat(value[:, :1], config.n_obs_steps, 1) for key, value in inputs.items()}
    noise, draws = noise_tensors(config, generator)
    try:
        single, tokens = lerobot_actions(policy, pre, post, config, inputs, draws, torch.float32, select)
        double, _ = lerobot_actions(policy, pre, post, config, inputs, draws, torch.float64, select)
    except KeyError as error:  # of an observation that this policy's code needs, its config not
        return "LeRobot does not run", f"{type(error).__name__}: {error}", kind
    if tokens:
        length = config.tokenizer_max_length - tokens["in/ids"].shape[1]
        tokens = {key: np.pad(value, ((0, 0), (0, length))) for key, value in tokens.items()}
        tokens["in/ids"] = tokens["in/ids"].astype(np.int64)
        tokens["in/mask"] = tokens["in/mask"].astype(np.uint8)
    result = run_mjpolicy(program, folder, config, {**{"in/" + k: v for k, v in inputs.items()}, **noise, **tokens})
    if result.returncode != 0:
        text = result.stderr.strip()
        named = result.returncode == 2 and any(f'"{key}"' in text for key in keys)
        return "refused" if named else "FAILED", f"exit {result.returncode}: {text}", kind
    if keys:
        return "FAILED", f"runs in spite of {keys}", kind
    ours = load_file(folder / "out.safetensors")["out/action_chunk"].astype(float)
    unit, offset = units(config, stats)
    size = max(1.0, np.abs((double - offset) / unit).max())
    rounding = 2.0 ** -22 * (np.abs(double).max((0, 1)) + np.abs(offset)) / unit  # of the raw values
    own, error = ((np.abs(each - double) / unit - rounding).clip(0).max() for each in (single, ours))
    limit = limit_of(config) * size
    # where LeRobot's own float32 is off by more than the limit, the chain amplifies every rounding
    verdict, bound = ("equal", limit) if own <= limit else ("beyond float32", 4 * own)
    fine = ours.shape == double.shape and error <= bound
    return (verdict if fine else "FAILED",
            f"error {error:.2g}, LeRobot's float32 {own:.2g}, limit {limit:.2g}, largest {size:.2g}", kind)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--verbose", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    logging.disable(logging.WARNING)
    program, counts, failed = arguments.program.resolve(), collections.Counter(), 0
    for index in range(arguments.first, arguments.first + arguments.count):
        with tempfile.TemporaryDirectory() as folder:
            verdict, text, kind = compare(program, index, arguments.seed, pathlib.Path(folder))
            os.chdir("/")
        counts[kind, verdict] += 1
        failed += verdict == "FAILED"
        if verdict == "FAILED" or arguments.verbose:
            print(f"{index} {kind}: {verdict}: {text}", flush=True)
    print(f"lerobot {importlib.metadata.version('lerobot')}, torch {torch.__version__}")
    for (kind, verdict), count in sorted(counts.items()):
        print(f"{kind:16} {verdict:22} {count}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
