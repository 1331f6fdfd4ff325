"""mjpolicy's engine as a policy of LeRobot: `lerobot-eval --policy.type=mjpolicy --policy.checkpoint=DIR`.

LeRobot imports every distribution called lerobot_policy_*, and that registers the configuration. Its module and the
two beside it have the names that LeRobot's factory makes of it.
"""
from lerobot_policy_mjpolicy.configuration_mjpolicy import MjpolicyConfig

__all__ = ["MjpolicyConfig"]
