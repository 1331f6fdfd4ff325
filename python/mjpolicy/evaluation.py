"""Scoring a policy: the program `mjpolicy evaluate`, started from Python."""
from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from typing import Any

from mjpolicy import _core, files


def _words(options: dict[str, Any]) -> list[str]:
    words = []
    for name, value in options.items():
        flag = "--" + name.replace("_", "-")
        if value is True:
            words.append(flag)
        elif value is not None and value is not False:
            words += [flag, str(value)]
    return words


def evaluate(checkpoint: str | os.PathLike[str], model: str | os.PathLike[str] | None = None, *,
             out: str | os.PathLike[str] | None = None, **options: Any) -> dict[str, Any]:
    """Scores a checkpoint on Push-T, or on a task file, and returns what ``mjpolicy evaluate --json`` prints.

    Args:
      checkpoint: folder of the policy.
      model: MJCF of a task (docs/tasks.md); None: Push-T, or ``task=``.
      out: folder of the results, films and all, which must not be there yet; None: they are not kept.
      options: those of ``mjpolicy evaluate``, with _ for -: ``episodes=500, sampler="ddim", steps=10``. True is a
        flag alone, None and False leave it out. All episodes are scored, in a Slurm array and an indexed job of
        Kubernetes too, unless `shard` says otherwise: ``shard="1/4"``, or ``shard="auto"`` for what the scheduler says.

    What the program tells on its way goes to ``sys.stderr`` at the end.

    Raises PolicyError with the program's own words, and its exit code as ``exit_code``.
    """
    if options.get("shard") is None or options["shard"] is False:  # the program takes the scheduler's, which a caller does not see
        options["shard"] = "0/1"
    with tempfile.TemporaryDirectory() as scratch:
        words = [files.program(), "evaluate", *([os.fspath(model)] if model is not None else []), "--checkpoint",
                 os.fspath(checkpoint), "--out", os.fspath(out) if out is not None else os.path.join(scratch, "out"),
                 *_words(options), "--json"]
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        words_of_error = re.split(r"^[\w-]+: error: ", done.stderr, maxsplit=1, flags=re.MULTILINE)[-1]
        error = _core.PolicyError(words_of_error.strip())
        error.exit_code = done.returncode
        raise error
    result: dict[str, Any] = json.loads(done.stdout)
    if sys.stderr:  # a program without a console has none
        sys.stderr.write(done.stderr)
    return result
