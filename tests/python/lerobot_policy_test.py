"""lerobot_policy_mjpolicy under LeRobot, or under a stub of its base classes where LeRobot is not installed."""
import dataclasses
import enum
import importlib.metadata
import importlib.util
import json
import pathlib
import sys
import tempfile
import types
import unittest

REAL = importlib.util.find_spec("lerobot") is not None
if importlib.util.find_spec("torch") is None:
    print("lerobot_policy_test: skipped, there is no torch here; scripts/check-lerobot has both")
    sys.exit(0)

import numpy as np
import torch


def stub():
    """LeRobot 0.6.1's names that the package takes, with nothing behind them."""
    @dataclasses.dataclass
    class PreTrainedConfig:
        n_obs_steps: int = 1
        input_features: dict = dataclasses.field(default_factory=dict)
        output_features: dict = dataclasses.field(default_factory=dict)
        known = {}

        def __post_init__(self): pass

        @classmethod
        def register_subclass(cls, name):
            return lambda kind: cls.known.setdefault(name, kind)

        @property
        def image_features(self):
            return {name: one for name, one in self.input_features.items() if one.type is FeatureType.VISUAL}

    class PreTrainedPolicy(torch.nn.Module):
        def __init__(self, config):
            super().__init__()
            self.config = config

    FeatureType = enum.Enum("FeatureType", {name: name for name in ("STATE", "VISUAL", "ENV", "ACTION")})
    PolicyFeature = dataclasses.make_dataclass("PolicyFeature", ["type", "shape"])
    for name, parts in {"lerobot": {}, "lerobot.policies": {}, "lerobot.configs": locals(),
                        "lerobot.policies.pretrained": locals()}.items():
        module = sys.modules[name] = types.ModuleType(name)
        for key in ("FeatureType", "PolicyFeature", "PreTrainedConfig", "PreTrainedPolicy"):
            if key in parts:
                setattr(module, key, parts[key])


if not REAL:
    stub()

import mjpolicy


def frames(count, seed):
    """A batch as LeRobot hands it in, and the bytes that it was made of."""
    random = np.random.default_rng(seed)
    pictures = random.integers(0, 256, (count, 96, 96, 3), np.uint8)
    state = random.uniform(0, 512, (count, 2)).astype(np.float32)
    tensor = torch.from_numpy(pictures).movedim(-1, 1).contiguous().type(torch.float32) / 255
    return {"observation.image": tensor, "observation.state": torch.from_numpy(state)}, pictures, state


class LerobotPolicyTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        from lerobot_policy_mjpolicy.configuration_mjpolicy import MjpolicyConfig
        cls.Config = MjpolicyConfig
        cls.options = {"checkpoint": mjpolicy.checkpoint(), "backend": "cpu", "sampler": "ddim", "steps": 2}

    @unittest.skipUnless(REAL, "LeRobot is not installed here: its base classes are stubs")
    def test_lerobot_finds_it_by_name(self):
        from lerobot.configs import PreTrainedConfig
        from lerobot.envs.configs import PushtEnv
        from lerobot.policies import make_policy, make_pre_post_processors
        from lerobot.utils.import_utils import register_third_party_plugins
        register_third_party_plugins()
        self.assertIn("mjpolicy", PreTrainedConfig.get_known_choices())
        config = PreTrainedConfig.get_choice_class("mjpolicy")(**self.options)
        policy = make_policy(config, env_cfg=PushtEnv())
        before, behind = make_pre_post_processors(config)
        batch, *_ = frames(2, 0)
        self.assertEqual(behind(policy.select_action(before(batch))).shape, (2, 2))

    def test_the_name_is_as_lerobot_looks_for_it(self):
        names = [one.metadata["Name"] for one in importlib.metadata.distributions()]
        self.assertIn("lerobot_policy_mjpolicy", names)

    def test_actions_are_the_engines(self):
        from lerobot_policy_mjpolicy.modeling_mjpolicy import MjpolicyPolicy
        torch.manual_seed(1000)
        policy = MjpolicyPolicy(self.Config(**self.options))
        engine = mjpolicy.Policy(self.options["checkpoint"], backend="cpu", sampler="ddim", steps=2, batch=3)
        s = engine.shape
        for rollout in range(2):
            policy.reset()
            seen = []
            execution = mjpolicy.Execution(engine, 3)
            for step in range(s.action_steps + 1):
                batch, pictures, state = frames(3, 100 * rollout + step)
                seen.append((pictures, state))
                action = policy.select_action(batch).numpy()
                if step % s.decision_steps == 0:
                    past = ([seen[0]] * s.observation_steps + seen)[-s.observation_steps:]
                    chunk = engine.act(np.stack([p for p, _ in past], 1), np.stack([n for _, n in past], 1),
                                       seed=[1000 + 3 * rollout + i for i in range(3)], decision=step // s.action_steps)
                    taken = execution.take(chunk)
                expected = taken[:, step % s.decision_steps]
                self.assertEqual(action.tobytes(), expected.tobytes(), (rollout, step))
                self.assertTrue(np.isfinite(action).all())

    def test_a_chunk_is_of_the_batch_that_is_given(self):
        from lerobot_policy_mjpolicy.modeling_mjpolicy import MjpolicyPolicy
        torch.manual_seed(1000)
        policy = MjpolicyPolicy(self.Config(**self.options))
        engine = mjpolicy.Policy(self.options["checkpoint"], backend="cpu", sampler="ddim", steps=2, batch=3)
        s = engine.shape
        self.assertGreater(s.observation_steps, 1)
        for rollout in range(2):
            policy.reset()
            seen = []
            for call in range(4):
                batch, pictures, state = frames(3, 100 * rollout + call)
                seen.append((pictures, state))
                got = policy.predict_action_chunk(batch).numpy()
                past = ([seen[0]] * s.observation_steps + seen)[-s.observation_steps:]
                chunk = engine.act(np.stack([p for p, _ in past], 1), np.stack([n for _, n in past], 1),
                                   seed=[1000 + 3 * rollout + i for i in range(3)], decision=call)
                expected = chunk[:, s.first_action:s.first_action + s.action_steps]
                self.assertEqual(got.tobytes(), expected.tobytes(), (rollout, call))
                self.assertTrue(np.isfinite(got).all())

    def test_what_does_not_fit_is_refused(self):
        from lerobot_policy_mjpolicy.modeling_mjpolicy import MjpolicyPolicy
        with self.assertRaisesRegex(ValueError, "--policy.checkpoint=DIR"):
            self.Config()
        with self.assertRaisesRegex(ValueError, "hf download"):
            self.Config(checkpoint="absent")
        with tempfile.TemporaryDirectory() as folder:
            config = pathlib.Path(folder) / "config.json"
            for given, text in (({"type": "smolvla"}, "type is 'smolvla'"),
                                ({"type": "act", "temporal_ensemble_coeff": 0.01}, "temporal_ensemble_coeff")):
                config.write_text(json.dumps(given))
                with self.assertRaisesRegex(ValueError, text):
                    self.Config(checkpoint=folder)
        policy = MjpolicyPolicy(self.Config(**self.options))
        with self.assertRaisesRegex(ValueError, "gives no observation.state"):
            policy.select_action({"observation.image": frames(1, 0)[0]["observation.image"]})


if __name__ == "__main__":
    print(f"lerobot_policy_test: {'LeRobot ' + importlib.metadata.version('lerobot') if REAL else 'a stub of LeRobot'}")
    unittest.main(verbosity=1)
