"""Where the parts of an installation lie."""
import pathlib

FOLDER = pathlib.Path(__file__).resolve().parent
_SHARE = FOLDER / "share" / "mjpolicy"


def _existing(path: pathlib.Path, what: str) -> str:
    if path.exists():
        return str(path)
    there = sorted(entry.name for entry in path.parent.glob("*") if entry.suffix in ("", ".xml"))
    raise FileNotFoundError(f"there is no {what} {path.name} in this installation; there is: {', '.join(there)}")


def plugin_path() -> str:
    """The engine plugin ``libmjpolicy.so``, for ``mj_loadPluginLibrary``."""
    return _existing(FOLDER / "lib" / "mujoco_plugin" / "libmjpolicy.so", "plugin")


def program(name: str = "mjpolicy") -> str:
    """A program of the installation: ``mjpolicy`` or ``image-diffusion``."""
    return _existing(FOLDER / "bin" / name, "program")


def model(name: str) -> str:
    """A shipped model, as ``pusht_policy.xml``. Raises FileNotFoundError with the names that there are."""
    return _existing(_SHARE / "models" / name, "model")


def checkpoint(name: str = "pusht_image") -> str:
    """The folder of a shipped policy. Raises FileNotFoundError with the names that there are."""
    return _existing(_SHARE / "assets" / name, "policy")
