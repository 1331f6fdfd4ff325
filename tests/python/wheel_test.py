"""What `pip install mjpolicy` gives: run by scripts/check-wheel in the environment that has it."""
import contextlib
import importlib.metadata
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import tracemalloc
import unittest
import unittest.mock

import mujoco  # alone, before mjpolicy: the entry point has to register the plugin
import numpy as np



def observation(policy, seed=0, count=None):
    s, random = policy.shape, np.random.default_rng(seed)
    many = () if count is None else (count,)
    pictures = random.integers(0, 256, (*many, s.observation_steps, s.cameras, s.picture_height, s.picture_width, 3),
                               np.uint8)
    return pictures, random.uniform(0, 512, (*many, s.observation_steps, s.state_dim)).astype(np.float32)


class PluginTest(unittest.TestCase):
    def test_import_mujoco_registers_the_plugin(self):
        done = subprocess.run([sys.executable, "-W", "error", "-c", "import mujoco, sys; "
                               "mujoco.MjModel.from_xml_string('<mujoco><extension><plugin plugin=\"mjpolicy.policy\"/>"
                               "</extension></mujoco>')"], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_a_shipped_model_moves(self):
        import mjpolicy
        model = mujoco.MjModel.from_xml_path(mjpolicy.model("pusht_policy.xml"))
        data = mujoco.MjData(model)
        for _ in range(200):
            mujoco.mj_step(model, data)
        self.assertTrue(np.isfinite(data.qpos).all())
        self.assertGreater(np.abs(data.ctrl).max(), 0)

    def test_loading_again_is_harmless(self):
        import mjpolicy
        self.assertEqual(mjpolicy.load_plugin(), mjpolicy.load_plugin())
        self.assertTrue(pathlib.Path(mjpolicy.load_plugin()).is_file())


class PolicyTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        import mjpolicy
        cls.package = mjpolicy
        cls.directory = mjpolicy.checkpoint()
        cls.policy = mjpolicy.Policy(cls.directory, backend="cpu", sampler="ddim", steps=2, batch=3)

    def test_a_chunk_is_followed_until_one_departs_or_it_is_used_up(self):
        with tempfile.TemporaryDirectory() as folder:
            directory = shutil.copytree(self.directory, f"{folder}/policy")
            config = pathlib.Path(directory) / "config.json"
            keys = json.loads(config.read_text()) | {"replan_every": 2, "replan_beyond": 5.0, "n_action_steps": 6}
            config.write_text(json.dumps(keys))
            policy = self.package.Policy(directory, backend="cpu")
        shape, execution = policy.shape, self.package.Execution(policy)
        line = np.arange(shape.horizon, dtype=np.float32)[:, None] * np.ones(shape.action_dim, np.float32)
        first, noises, taken = shape.first_action, [], []
        # the first action departs by what is allowed, then by more; then all by a little
        for moved, shift in ((0, 0), (5, 0), (5.1, 0), (0, 1), (0, 1), (0, 1)):
            chunk = line + 2 * len(taken) + shift
            chunk[first, 0] += moved
            noises.append(execution.noise)
            taken.append(execution.take(chunk)[0, 0] - chunk[first, 0])
        np.testing.assert_allclose(taken, [0, -5, 0, -1, -1, 0], atol=1e-4)
        self.assertEqual(noises, [0, 0, 0, 1, 1, 1])
        with self.assertRaisesRegex(ValueError, "expected"):
            execution.take(chunk[:-1])

    def test_chunks_that_are_ensembled_are_not_followed(self):
        with tempfile.TemporaryDirectory() as folder:
            config = {"type": "act", "n_obs_steps": 1, "chunk_size": 4, "n_action_steps": 1, "dim_model": 16, "n_heads": 2,
                      "dim_feedforward": 16, "n_encoder_layers": 1, "n_decoder_layers": 1,
                      "temporal_ensemble_coeff": 0.01, "use_vae": False, "latent_dim": 8, "pre_norm": False,
                      "vision_backbone": "resnet18", "feedforward_activation": "relu",
                      "input_features": {"observation.state": {"type": "STATE", "shape": [3]},
                                         "observation.environment_state": {"type": "ENV", "shape": [2]}},
                      "output_features": {"action": {"type": "ACTION", "shape": [2]}},
                      "normalization_mapping": {"STATE": "MEAN_STD", "ENV": "MEAN_STD", "ACTION": "MEAN_STD"}}
            pathlib.Path(folder, "config.json").write_text(json.dumps(config))
            subprocess.run([self.package.program(), "random-checkpoint", "--config", f"{folder}/config.json",
                            f"{folder}/policy"], check=True, capture_output=True)
            policy = self.package.Policy(f"{folder}/policy", backend="cpu")
            chunk = policy.act(state=np.zeros((1, 3), np.float32), environment=np.zeros((1, 2), np.float32))
        with self.assertRaisesRegex(self.package.PolicyError, "ensembles its chunks"):
            self.package.Execution(policy).take(chunk)

    def test_execution_is_the_checkpoints(self):
        config = json.loads((pathlib.Path(self.directory) / "config.json").read_text())
        shape = self.policy.shape
        self.assertEqual(shape.decision_steps, config["replan_every"])
        self.assertEqual(shape.noise_decisions, config["n_action_steps"] // config["replan_every"])
        self.assertGreater(config["replan_beyond"], 0)

    def test_shape_and_features(self):
        shape = self.policy.shape
        self.assertEqual((shape.observation_steps, shape.state_dim, shape.cameras, shape.picture_height), (2, 2, 1, 96))
        self.assertEqual([feature.name for feature in self.policy.features],
                         ["observation.image", "observation.state", "action"])
        action = self.policy.features[-1]
        self.assertEqual(action.low.shape, (2,))
        self.assertTrue((action.low < action.high).all())

    def test_the_same_bits_as_the_program(self):
        """`mjpolicy infer` on the observation that `mjpolicy observe` wrote."""
        with tempfile.TemporaryDirectory() as folder:
            program = self.package.program()
            file = f"{folder}/observations.safetensors"
            subprocess.run([program, "observe", "--checkpoint", self.directory, "--count", "1", "--out", file],
                           check=True, capture_output=True)
            subprocess.run([program, "infer", "--checkpoint", self.directory, "--input", file, "--out",
                            f"{folder}/actions.safetensors", "--backend", "cpu", "--sampler", "ddim", "--steps", "2"],
                           check=True, capture_output=True)
            inputs, outputs = read_safetensors(file), read_safetensors(f"{folder}/actions.safetensors")
        chunk = self.policy.act(inputs["in/observation.image"][0], inputs["in/observation.state"][0])
        expected = outputs["out/action_full"][0]
        self.assertEqual(chunk.shape, expected.shape)
        self.assertEqual(chunk.tobytes(), expected.tobytes())

    def test_same_input_same_bits_alone_and_in_a_batch(self):
        pictures, state = observation(self.policy, count=3)
        seeds, decisions = [7, 2**64 - 1, 9], [0, 2**32 - 1, 5]
        together = self.policy.act(pictures, state, seed=seeds, decision=decisions)
        self.assertEqual(together.shape, (3, self.policy.shape.horizon, 2))
        self.assertTrue(np.isfinite(together).all())
        for i in range(3):
            alone = self.policy.act(pictures[i], state[i], seed=seeds[i], decision=decisions[i])
            self.assertEqual(alone.tobytes(), together[i].tobytes())
        other = self.policy.act(pictures[0], state[0], seed=8)
        self.assertNotEqual(other.tobytes(), together[0].tobytes())

    def test_one_camera_needs_no_axis(self):
        pictures, state = observation(self.policy)
        self.assertEqual(self.policy.act(pictures[:, 0], state, seed=1).tobytes(),
                         self.policy.act(pictures, state, seed=1).tobytes())

    def test_one_camera_and_one_step_are_told_apart(self):
        policy = self.package.Policy(self.package.checkpoint("aloha_transfer_cube"), backend="cpu", steps=1)
        self.assertEqual((policy.shape.observation_steps, policy.shape.cameras), (1, 1))
        pictures, state = observation(policy)  # (1, 1, H, W, 3) and (1, 14)
        expected = policy.act(pictures, state)
        self.assertEqual(expected.shape, (policy.shape.horizon, 14))
        self.assertEqual(policy.act(pictures[0], state).tobytes(), expected.tobytes())
        for many in (pictures, pictures[None]):  # one environment, without and with the axis of cameras
            chunks = policy.act(many, state[None])
            self.assertEqual(chunks.shape, (1, *expected.shape))
            self.assertEqual(chunks.tobytes(), expected.tobytes())

    def test_pictures_are_not_copied(self):
        pictures, state = observation(self.policy, count=3)
        pictures.flags.writeable = False
        self.policy.act(pictures, state)
        tracemalloc.start()
        self.policy.act(pictures, state)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        self.assertLess(peak, pictures.nbytes // 4)

    def test_other_threads_run_meanwhile(self):
        policy = self.package.Policy(self.directory, backend="cpu", sampler="ddpm", steps=100, batch=3)
        pictures, state = observation(policy, count=3)
        done, ticks = threading.Event(), 0
        thread = threading.Thread(target=lambda: (policy.act(pictures, state), done.set()))
        thread.start()
        while not done.wait(0.0005):
            ticks += 1
        thread.join()
        self.assertGreater(ticks, 3)

    def test_what_does_not_fit_is_refused(self):
        act, (pictures, state) = self.policy.act, observation(self.policy)
        nan = state.copy()
        nan[0, 0] = np.nan
        cases = [
            (ValueError, "pictures is missing", lambda: act(state=state)),
            (ValueError, "state is missing", lambda: act(pictures)),
            (TypeError, "pictures are float32, expected uint8", lambda: act(pictures / np.float32(255), state)),
            (ValueError, "not contiguous", lambda: act(pictures[..., ::-1], state)),
            (ValueError, r"pictures is \(2, 1, 96, 95, 3\)", lambda: act(pictures[..., :95, :].copy(), state)),
            (ValueError, r"state is \(1, 2\), expected \(2, 2\)", lambda: act(pictures, state[:1])),
            (TypeError, "state is <U1, expected numbers", lambda: act(pictures, np.full((2, 2), "a"))),
            (ValueError, "this policy has no environment", lambda: act(pictures, state, [0.0])),
            (ValueError, "different numbers", lambda: act(pictures[None], state)),
            (ValueError, "seed is -1", lambda: act(pictures, state, seed=-1)),
            (ValueError, "seed is 1.5", lambda: act(pictures, state, seed=1.5)),
            (ValueError, "decision is 4294967296", lambda: act(pictures, state, decision=2**32)),
            (self.package.PolicyError, "4 environments|count", lambda: act(*observation(self.policy, count=4))),
            (self.package.PolicyError, "finite", lambda: act(pictures, nan)),
            (self.package.PolicyError, "no such checkpoint", lambda: self.package.Policy("absent")),
            (self.package.PolicyError, "ddmp", lambda: self.package.Policy(self.directory, sampler="ddmp")),
            (FileNotFoundError, "pusht_policy.xml", lambda: self.package.model("pusht_polcy.xml")),
            (FileNotFoundError, "pusht_image", lambda: self.package.checkpoint("absent"))]
        for kind, text, call in cases:
            with self.subTest(text), self.assertRaisesRegex(kind, text):
                call()


class EvaluationTest(unittest.TestCase):
    def test_the_same_result_as_the_program_on_the_path(self):
        import mjpolicy
        options = {"episodes": 2, "sampler": "ddim", "steps": 4, "max_steps": 40, "backend": "cpu"}
        ours = mjpolicy.evaluate(mjpolicy.checkpoint(), **options)
        with tempfile.TemporaryDirectory() as folder:
            words = [word for name, value in options.items() for word in ("--" + name.replace("_", "-"), str(value))]
            done = subprocess.run(["mjpolicy", "evaluate", "--checkpoint", mjpolicy.checkpoint(), *words, "--json",
                                   "--out", folder + "/out"], check=True, stdout=subprocess.PIPE)
        theirs = json.loads(done.stdout)
        self.assertEqual(ours["per_task"], theirs["per_task"])
        self.assertGreater(ours["overall"]["avg_max_reward"], 0)

    def test_a_scheduler_does_not_choose_the_episodes(self):
        import mjpolicy
        options = {"episodes": 2, "sampler": "ddim", "steps": 4, "max_steps": 40, "backend": "cpu"}
        for scheduler in ({"SLURM_ARRAY_TASK_ID": "1", "SLURM_ARRAY_TASK_COUNT": "2"},
                          {"JOB_COMPLETION_INDEX": "1", "JOB_COMPLETION_COUNT": "2"}):
            for shard, episodes in (({}, 2), ({"shard": None}, 2), ({"shard": "auto"}, 1), ({"shard": "0/2"}, 1)):
                with self.subTest(scheduler, **shard), unittest.mock.patch.dict(os.environ, scheduler), \
                        contextlib.redirect_stderr(io.StringIO()) as told:
                    score = mjpolicy.evaluate(mjpolicy.checkpoint(), **options, **shard)
                self.assertEqual(score["overall"]["n_episodes"], episodes)
                self.assertIn(f"{episodes} episode", told.getvalue())
                self.assertEqual("as the scheduler says" in told.getvalue(), shard == {"shard": "auto"})

    def test_errors_are_the_programs(self):
        import mjpolicy
        with self.assertRaisesRegex(mjpolicy.PolicyError, "no such checkpoint") as caught:
            mjpolicy.evaluate("absent")
        self.assertEqual(caught.exception.exit_code, 2)
        with self.assertRaisesRegex(mjpolicy.PolicyError, "--episodes") as caught:
            mjpolicy.evaluate(mjpolicy.checkpoint(), epsiodes=3)
        self.assertEqual(caught.exception.exit_code, 1)

    def test_programs_know_the_version(self):
        version = importlib.metadata.version("mjpolicy")
        for program in ("mjpolicy", "image-diffusion"):
            text = subprocess.run([program, "--version"], check=True, stdout=subprocess.PIPE, text=True).stdout
            self.assertIn(version, text)


def read_safetensors(path):
    """Every tensor of a file, by name; F32, U8 and I64."""
    data = pathlib.Path(path).read_bytes()
    end = 8 + int.from_bytes(data[:8], "little")
    types = {"F32": np.float32, "U8": np.uint8, "I64": np.int64}
    return {name: np.frombuffer(data[end:][slice(*entry["data_offsets"])], types[entry["dtype"]]).reshape(entry["shape"])
            for name, entry in json.loads(data[8:end]).items() if name != "__metadata__"}


if __name__ == "__main__":
    unittest.main(verbosity=1)
