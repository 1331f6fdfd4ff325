#!/usr/bin/env python3
"""A checkpoint in the benchmark's original environment.

Physics, pictures, coverage and starts are those of the PyPI package gym-pusht; the policy alone is
this project's, executed as its checkpoint wants. Needs `pip install gym-pusht` and the Python
package of this project:

    docs/baseline/original_environment.py assets/pusht_image --sampler ddim --steps 10 --episodes 100
"""
import argparse
import importlib.metadata
import math
import statistics
from collections import deque

import gym_pusht  # noqa: F401: registers the environment
import gymnasium
import mjpolicy
import numpy as np


def run(env, policy, seed):
    """Control steps to success (None: not within the limit), and the largest coverage."""
    observation, _ = env.reset(seed=seed)
    history = deque([observation] * policy.shape.observation_steps, policy.shape.observation_steps)
    execution = mjpolicy.Execution(policy)
    best, steps = 0.0, 0
    while True:
        pictures = np.stack([o["pixels"] for o in history]).astype(np.uint8)
        state = np.stack([o["agent_pos"] for o in history]).astype(np.float32)
        chunk = policy.act(pictures, state, seed=seed, decision=execution.noise)
        for action in execution.take(chunk):
            observation, _, terminated, truncated, info = env.step(np.clip(action, 0, 512))
            history.append(observation)
            steps, best = steps + 1, max(best, info["coverage"])
            if terminated or truncated:
                return (steps if terminated else None), best


def wilson(successes, n, z=1.959964):
    p, d = successes / n, 1 + z * z / n
    centre = (p + z * z / (2 * n)) / d
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / d
    return 100 * (centre - half), 100 * (centre + half)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("checkpoint")
    parser.add_argument("--episodes", type=int, default=100)
    parser.add_argument("--seed", type=int, default=100000)
    parser.add_argument("--sampler", help="default: as the checkpoint says, and its steps")
    parser.add_argument("--steps", type=int)
    parser.add_argument("--threads", type=int, default=1)
    a = parser.parse_args()
    policy = mjpolicy.Policy(a.checkpoint, backend="cpu", sampler=a.sampler, steps=a.steps, threads=a.threads)
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
