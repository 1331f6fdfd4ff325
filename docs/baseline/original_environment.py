#!/usr/bin/env python3
"""A checkpoint in the benchmark's original environment, through the C API.

Physics, pictures, coverage and starts are those of the PyPI package gym-pusht; the policy alone is
this project's. Needs `pip install gym-pusht` and the built libmjpolicy_c.so:

    docs/baseline/original_environment.py build/dev/policy/libmjpolicy_c.so assets/pusht_image --episodes 100
"""
import argparse
import ctypes
import importlib.metadata
import math
import statistics
from collections import deque

import gym_pusht  # noqa: F401: registers the environment
import gymnasium
import numpy as np


ABI_VERSION = 1  # of policy/c_api.h, whose structs these are


class Sized(ctypes.Structure):
    """Begins with its size, by which the library notices another version."""

    def __init__(self, **values):
        super().__init__(size=ctypes.sizeof(self), **values)


class Options(Sized):
    _fields_ = [("size", ctypes.c_size_t), ("backend", ctypes.c_char_p),
                ("precision", ctypes.c_char_p), ("sampler", ctypes.c_char_p),
                ("steps", ctypes.c_int), ("batch", ctypes.c_int), ("threads", ctypes.c_int),
                ("instruction", ctypes.c_char_p)]


class Shape(Sized):
    _fields_ = [("size", ctypes.c_size_t), ("observation_steps", ctypes.c_int),
                ("state_dim", ctypes.c_int), ("environment_dim", ctypes.c_int),
                ("cameras", ctypes.c_int), ("picture_height", ctypes.c_int),
                ("picture_width", ctypes.c_int), ("picture_bytes", ctypes.c_size_t),
                ("horizon", ctypes.c_int), ("action_dim", ctypes.c_int),
                ("first_action", ctypes.c_int), ("action_steps", ctypes.c_int),
                ("features", ctypes.c_int)]


class Observation(Sized):
    _fields_ = [("size", ctypes.c_size_t), ("count", ctypes.c_int), ("pictures", ctypes.c_void_p),
                ("state", ctypes.c_void_p), ("environment", ctypes.c_void_p),
                ("seeds", ctypes.c_void_p), ("decisions", ctypes.c_void_p)]


class Policy:
    """The C API: policy/c_api.h."""

    def __init__(self, library, checkpoint, sampler, steps, threads):
        self.c = ctypes.CDLL(library)
        if self.c.mjp_abi_version() != ABI_VERSION:
            raise SystemExit(f"{library}: another version of the C API than {ABI_VERSION}")
        self.c.mjp_load.restype = ctypes.c_void_p
        self.c.mjp_last_error.restype = ctypes.c_char_p
        options = Options(backend=b"cpu", sampler=sampler.encode(), steps=steps, batch=1,
                          threads=threads)
        self.policy = self.c.mjp_load(checkpoint.encode(), ctypes.byref(options))
        if not self.policy:
            raise SystemExit(self.c.mjp_last_error().decode())
        self.policy, self.shape = ctypes.c_void_p(self.policy), Shape()
        if self.c.mjp_describe(self.policy, ctypes.byref(self.shape)) != 0:
            raise SystemExit(self.c.mjp_last_error().decode())

    def decide(self, history, seed, decision):
        """The actions to execute, (action_steps, 2), pixels."""
        pictures = np.stack([o["pixels"] for o in history]).astype(np.uint8)
        state = np.stack([o["agent_pos"] for o in history]).astype(np.float32)
        seeds, decisions = np.array([seed], np.uint64), np.array([decision], np.uint32)
        chunk = np.empty((self.shape.horizon, self.shape.action_dim), np.float32)
        observation = Observation(count=1, pictures=pictures.ctypes.data, state=state.ctypes.data,
                                  seeds=seeds.ctypes.data, decisions=decisions.ctypes.data)
        if self.c.mjp_infer(self.policy, ctypes.byref(observation), chunk.ctypes.data_as(
                ctypes.c_void_p), ctypes.c_size_t(chunk.size)) != 0:
            raise SystemExit(self.c.mjp_last_error().decode())
        first = self.shape.first_action
        return chunk[first:first + self.shape.action_steps]


def run(env, policy, seed):
    """Control steps to success (None: not within the limit), and the largest coverage."""
    observation, _ = env.reset(seed=seed)
    history = deque([observation] * policy.shape.observation_steps, policy.shape.observation_steps)
    best, steps, decision = 0.0, 0, 0
    while True:
        for action in policy.decide(history, seed, decision):
            observation, _, terminated, truncated, info = env.step(np.clip(action, 0, 512))
            history.append(observation)
            steps, best = steps + 1, max(best, info["coverage"])
            if terminated or truncated:
                return (steps if terminated else None), best
        decision += 1


def wilson(successes, n, z=1.959964):
    p, d = successes / n, 1 + z * z / n
    centre = (p + z * z / (2 * n)) / d
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / d
    return 100 * (centre - half), 100 * (centre + half)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("library")
    parser.add_argument("checkpoint")
    parser.add_argument("--episodes", type=int, default=100)
    parser.add_argument("--seed", type=int, default=100000)
    parser.add_argument("--sampler", default="ddim")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--threads", type=int, default=1)
    a = parser.parse_args()
    policy = Policy(a.library, a.checkpoint, a.sampler, a.steps, a.threads)
    env = gymnasium.make("gym_pusht/PushT-v0", obs_type="pixels_agent_pos", max_episode_steps=300)
    results = []
    for seed in range(a.seed, a.seed + a.episodes):
        results.append(run(env, policy, seed))
        if results[-1][0] is None:
            print(f"seed {seed}: largest coverage {results[-1][1]:.4f}", flush=True)
    successes = [steps for steps, _ in results if steps is not None]
    low, high = wilson(len(successes), len(results))
    score = np.mean([min(best / 0.95, 1) for _, best in results])
    print(", ".join(f"{name} {importlib.metadata.version(name)}" for name in
                    ("gym-pusht", "pymunk", "pygame", "opencv-python", "numpy")))
    print(f"success {100 * len(successes) / len(results):.2f} % ({len(successes)} of {len(results)}, "
          f"95 % interval {low:.2f} to {high:.2f}), score {score:.4f}, "
          f"median steps {statistics.median(successes) if successes else 'none'}")


if __name__ == "__main__":
    main()
