"""The programs as console scripts: the process becomes the program."""
import os
import sys

from mjpolicy import files


def _become(name: str) -> None:
    path = files.program(name)
    os.execv(path, [path, *sys.argv[1:]])


def mjpolicy() -> None:
    """``mjpolicy``: evaluate, measure and inspect policies."""
    _become("mjpolicy")


def image_diffusion() -> None:
    """``image-diffusion``: diffusion models of small pictures."""
    _become("image-diffusion")
