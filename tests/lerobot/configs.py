"""Random configurations of LeRobot's diffusion, act and multi_task_dit policies, small enough for a CPU.

Each function returns (config, refused): `refused` are the keys with a value that LeRobot knows and
mjpolicy does not, so that a refusal must name one of them.
"""
from lerobot.configs import FeatureType, NormalizationMode, PolicyFeature
from lerobot.policies.act.configuration_act import ACTConfig
from lerobot.policies.diffusion.configuration_diffusion import DiffusionConfig
from lerobot.policies.multi_task_dit.configuration_multi_task_dit import MultiTaskDiTConfig

MODES = ["MEAN_STD", "MIN_MAX", "QUANTILES", "QUANTILE10", "IDENTITY"]
CAMERAS = [["observation.image"], ["observation.images.wrist"],
           ["observation.images.wrist", "observation.images.front"]]  # not in alphabetical order


def unusual(rng, refused, key, usual, rare, chance=0.03):
    """One of `usual`, or by chance one of `rare`, which mjpolicy refuses by `key`."""
    if rare and rng.random() < chance:
        refused.append(key)
        return rng.choice(rare)
    return rng.choice(usual)


def features(rng, cameras, size, state=True, environment=False):
    inputs = {}
    if state:
        inputs["observation.state"] = PolicyFeature(FeatureType.STATE, (rng.randint(1, 9),))
    for name in cameras:
        inputs[name] = PolicyFeature(FeatureType.VISUAL, (3, *size))
    if environment:
        inputs["observation.environment_state"] = PolicyFeature(FeatureType.ENV, (rng.randint(1, 9),))
    outputs = {"action": PolicyFeature(FeatureType.ACTION, (rng.randint(1, 8),))}
    modes = {kind: NormalizationMode[rng.choice(MODES)] for kind in ("STATE", "ACTION")}
    for kind in ("VISUAL", "ENV"):
        if rng.random() < 0.7:
            modes[kind] = NormalizationMode[rng.choice(MODES)]
    return {"input_features": inputs, "output_features": outputs, "normalization_mapping": modes,
            "device": "cpu", "push_to_hub": False}


def scheduler(rng, refused):
    steps = rng.choice([8, 10, 20, 50, 100])
    start = rng.choice([1e-4, 1e-3])
    return {
        "noise_scheduler_type": rng.choice(["DDPM", "DDIM"]),
        "num_train_timesteps": steps,
        "num_inference_steps": rng.choice([None, steps, rng.randint(1, steps), rng.randint(1, min(steps, 10))]),
        "beta_schedule": unusual(rng, refused, "beta_schedule", ["squaredcos_cap_v2", "linear"],
                                 ["scaled_linear", "sigmoid"]),
        "beta_start": start,
        "beta_end": rng.choice([start, 0.02, 0.1]),
        "prediction_type": rng.choice(["epsilon", "sample"]),
        "clip_sample": rng.random() < 0.8,
        "clip_sample_range": rng.choice([0.5, 1.0, 1.0, 2.5]),
    }


def times(rng, multiple=1, most=40):
    observed = rng.randint(1, 3)
    horizon = multiple * rng.randint(-(-4 // multiple), most // multiple)
    return {"n_obs_steps": observed, "horizon": horizon,
            "n_action_steps": rng.randint(1, horizon - observed + 1)}


def diffusion(rng):
    refused = []
    cameras = rng.choice([[], *CAMERAS])
    size = rng.choice([(96, 96), (48, 64), (64, 40), (57, 83)])
    groups = rng.choice([1, 2, 4, 8])
    dims = [rng.choice([8, 16, 24, 40, 64])] + [8 * rng.randint(1, 16) for _ in range(rng.randint(0, 2))]
    if rng.random() < 0.03:
        refused.append("down_dims")  # LeRobot's own last norm has eight groups: it refuses this too
        dims[0] = 20 if groups <= 4 else 8
    picture = {}
    if cameras:
        if rng.random() < 0.4:
            picture = {"resize_shape": rng.choice([(48, 48), (60, 72), size]),
                       "crop_ratio": rng.choice([1.0, 0.9, 0.77])}
        elif rng.random() < 0.6:
            picture = {"crop_shape": (rng.randint(33, size[0]), rng.randint(33, size[1]))}
        picture["vision_backbone"] = unusual(rng, refused, "vision_backbone", ["resnet18"], ["resnet34"])
    config = DiffusionConfig(
        **features(rng, cameras, size, environment=not cameras or rng.random() < 0.3),
        **times(rng, 2 ** len(dims)), **picture, **scheduler(rng, refused),
        pretrained_backbone_weights=None,
        use_group_norm=rng.random() < 0.5,
        spatial_softmax_num_keypoints=rng.choice([1, 5, 16, 32]),
        use_separate_rgb_encoder_per_camera=rng.random() < 0.5,
        down_dims=tuple(dims), kernel_size=rng.choice([1, 3, 5, 7]), n_groups=groups,
        diffusion_step_embed_dim=rng.choice([6, 16, 32, 128]),
        use_film_scale_modulation=rng.random() < 0.6)
    return config, refused


def act(rng):
    refused = []
    cameras = rng.choice([[], *CAMERAS])
    environment = not cameras or rng.random() < 0.3
    state = rng.random() > 0.03
    if not state:
        refused.append("input_features")
    heads = rng.choice([1, 2, 4])
    chunk = rng.randint(1, 40)
    ensemble = rng.choice([None, None, 0.01, -0.1])
    dict_of = features(rng, cameras, rng.choice([(96, 96), (48, 64), (70, 45)]), state, environment)
    if len(cameras) == 2 and rng.random() < 0.1:  # LeRobot's act takes cameras of several sizes
        refused.append("shape")
        dict_of["input_features"][cameras[1]] = PolicyFeature(FeatureType.VISUAL, (3, 64, 64))
    config = ACTConfig(
        **dict_of, chunk_size=chunk, n_action_steps=rng.randint(1, chunk) if ensemble is None else 1,
        temporal_ensemble_coeff=ensemble, pretrained_backbone_weights=None,
        vision_backbone=unusual(rng, refused, "vision_backbone", ["resnet18", "resnet18", "resnet34"],
                                ["resnet50"] if cameras else []),
        pre_norm=rng.random() < 0.5, dim_model=heads * 4 * rng.randint(1, 16), n_heads=heads,
        dim_feedforward=rng.randint(1, 200), feedforward_activation=rng.choice(["relu", "gelu"]),
        n_encoder_layers=rng.randint(1, 3), n_decoder_layers=rng.randint(1, 3),
        use_vae=rng.random() < 0.5, latent_dim=rng.randint(1, 40),
        n_vae_encoder_layers=rng.randint(1, 3))
    return config, refused


def multi_task_dit(rng, clip):
    """`clip(size)` writes a random CLIP model for pictures of size x size and returns its name."""
    refused = []
    cameras = rng.choice(CAMERAS)
    size = rng.choice([(32, 32), (40, 56)])
    tower = rng.choice([24, 32])
    heads = rng.choice([1, 2, 4])
    name = clip(tower)
    picture = {"image_crop_shape": (tower, tower)}
    if size == (32, 32) and tower == 32 and rng.random() < 0.5:
        picture = {"image_crop_shape": None}
    elif rng.random() < 0.6:
        picture["image_resize_shape"] = rng.choice([(32, 32), (37, 50)])
        if picture["image_resize_shape"] == (32, 32) and tower == 32 and rng.random() < 0.5:
            picture["image_crop_shape"] = (64, 64)  # does not fit, so LeRobot leaves it out
    config = MultiTaskDiTConfig(
        **features(rng, cameras, size), **times(rng), **picture, **scheduler(rng, refused),
        objective=rng.choice(["diffusion", "flow_matching"]),
        num_integration_steps=rng.choice([1, 5, 10, 40]), integration_method=rng.choice(["euler", "rk4"]),
        hidden_dim=heads * 2 * rng.randint(2, 20), num_layers=rng.randint(1, 3), num_heads=heads,
        timestep_embed_dim=rng.choice([6, 16, 64]), use_rope=rng.random() < 0.6,
        rope_base=rng.choice([100.0, 10000.0]), use_positional_encoding=rng.random() < 0.5,
        use_separate_rgb_encoder_per_camera=rng.random() < 0.5,
        vision_encoder_name=name, text_encoder_name=clip(24) if rng.random() < 0.3 else name,
        tokenizer_max_length=rng.choice([16, 77]),
        tokenizer_padding=rng.choice(["max_length", "longest"]),
        tokenizer_padding_side=unusual(rng, refused, "tokenizer_padding_side", ["right"], ["left"]))
    return config, refused
