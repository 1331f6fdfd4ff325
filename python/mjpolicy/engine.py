"""The engine plugin, and the one version of MuJoCo that it is for."""
import importlib.util
import pathlib
import threading

from mjpolicy import files
from mjpolicy.version import __version__

ENGINE = "4.0.1"  # the plugin interface is stable within one exact version
_REMEDY = f"pip install mujoco-core=={ENGINE}"
_lock = threading.Lock()
_loaded = False


class EngineError(ImportError):
    """MuJoCo is missing, or another version than the plugin was built for."""


def check_engine() -> None:
    """Raises EngineError unless MuJoCo ENGINE is what ``import mujoco`` loads; loads nothing itself."""
    spec = importlib.util.find_spec("mujoco")
    if spec is None or spec.origin is None:
        raise EngineError(f"mjpolicy {__version__} needs MuJoCo {ENGINE}, and there is no mujoco here; "
                          f"type: {_REMEDY}")
    folder = pathlib.Path(spec.origin).parent
    found = sorted(path.name.removeprefix("libmujoco.so.") for path in folder.glob("libmujoco.so.*"))
    if found != [ENGINE]:
        raise EngineError(f"mjpolicy {__version__} is for MuJoCo {ENGINE}, and {folder} has "
                          f"{' and '.join(found) or 'no libmujoco.so'} (installing another package may have changed "
                          f"it); type: pip uninstall -y mujoco mujoco-core && {_REMEDY}")


def load_plugin() -> str:
    """Registers the plugin ``mjpolicy.policy`` with MuJoCo, once per process, and returns the library's path.

    ``import mujoco`` calls it by the entry point ``mujoco.plugins``; a second call does nothing.
    Raises EngineError where MuJoCo is missing or another version, with the line to type.
    """
    global _loaded
    path = files.plugin_path()  # mj_loadPluginLibrary ends the process at a file that is not there
    check_engine()
    import mujoco
    with _lock:
        # another name than import's is possible while `import mujoco` is still under way: it calls us itself
        if not _loaded:
            mujoco.mj_loadPluginLibrary(path)
            _loaded = True
    return path
