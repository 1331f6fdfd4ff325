"""Diffusion policies inside MuJoCo, from Python.

``import mujoco`` alone registers the engine plugin, so that models with ``mjpolicy.policy`` load. Beyond that:

* ``load_plugin()`` does it by hand, and says what is wrong where another engine is installed;
* ``Policy(DIR).act(pictures, state)`` turns observations into a chunk of actions;
* ``Execution(policy)`` says which of them to execute, as the checkpoint wants;
* ``evaluate(DIR)`` scores a policy; the program ``mjpolicy`` does that and much more.
"""
from mjpolicy._core import PolicyError
from mjpolicy.engine import ENGINE, EngineError, load_plugin
from mjpolicy.evaluation import evaluate
from mjpolicy.execution import Execution
from mjpolicy.files import checkpoint, model, plugin_path, program
from mjpolicy.policy import Feature, Policy, Shape
from mjpolicy.version import __version__

__all__ = ["ENGINE", "EngineError", "Execution", "Feature", "Policy", "PolicyError", "Shape", "__version__",
           "checkpoint", "evaluate", "load_plugin", "model", "plugin_path", "program"]
