#!/usr/bin/env python3
"""scripts/bench/gpu on programs whose every figure is the number that the test gives, in a copy of the documents."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/bench"))
import gpu_tables  # noqa: E402  after the path is known

GPU, COMMIT = "NVIDIA H200", "0123456789"
OTHER_GPU = re.compile(r"\b(on an |on the |one NVIDIA )(?!H200)[A-Z]+\d+")  # documents may have figures of several
FAKE = f"""#!{sys.executable}
import json, os, pathlib, sys
words, here = sys.argv[1:], pathlib.Path(__file__).parent
value = lambda name: pathlib.Path(words[words.index(name) + 1])
if os.environ.get("BROKEN") == "1": sys.exit("mjpolicy: no GPU")
if words[0] == "evaluate":
    value("--out").mkdir(exist_ok=True)
    (value("--out") / "run.json").write_text((here / "run.json").read_text())
    print("time            12.3 s")
else:
    value("--json").write_text((here / (value("--json").name)).read_text())
"""


def rows_of_every_figure():
    """A row, in each run, for each figure that the documents take from it."""
    figures = gpu_tables.chunk_figures() + gpu_tables.decision_figures() + gpu_tables.pass_figures() + gpu_tables.other_figures()
    wanted = {(figure.run, figure.name): set() for figure in figures}
    wanted |= {(run, name): set() for _, _, run, name in gpu_tables.ROOFLINES.values()}
    wanted |= {(run, name): set() for _, run, name in gpu_tables.PHRASES}
    for figure in figures:
        wanted[figure.run, figure.name].add(figure.where)
    for _, _, run, name in gpu_tables.ROOFLINES.values():
        wanted[run, name] |= {"loop"} if "batch 1024" in name or "frames" in name else set()
    runs = {}
    for (run, name), places in wanted.items():
        for place in places - {""} or {""}:
            runs.setdefault(run, []).append({"name": name, "caches": place, "note": "16 passes", "median_ms": 7.65, "p99_ms": 7.65,
                                             "step_ms": 7.65})
    return runs


class BenchGpu(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.out, self.bin = self.root / "out", self.root / "bin"
        shutil.copytree(ROOT / "scripts/bench", self.root / "scripts/bench", ignore=shutil.ignore_patterns("__pycache__"))
        (self.root / "docs").mkdir()
        self.documents = [self.root / name for name in (gpu_tables.README, gpu_tables.PERFORMANCE)]
        for document in self.documents:
            text = (ROOT / document.relative_to(self.root)).read_text()
            document.write_text(OTHER_GPU.sub(r"\1H200", text))
        tables = self.root / "scripts/bench/gpu_tables.py"
        tables.write_text(OTHER_GPU.sub(r"\1H200", tables.read_text()))
        self.before = [document.read_text() for document in self.documents]
        self.build(COMMIT)
        self.out.mkdir()
        for run in self.runs:  # the programs of some are not here
            shutil.copy(self.bin / f"{run}.json", self.out)

    def build(self, commit, gpu=GPU):
        self.bin.mkdir(exist_ok=True)
        (self.bin / "mjpolicy").write_text(FAKE)
        (self.bin / "mjpolicy").chmod(0o755)
        self.runs = rows_of_every_figure()
        for run, rows in self.runs.items():
            result = {"version": f"mjpolicy 0.1.0+{commit}\nMuJoCo 3", "gpu": gpu, "driver": "580", "rows": rows}
            (self.bin / f"{run}.json").write_text(json.dumps(result))
        (self.bin / "run.json").write_text(json.dumps({"version": f"0.1.0+{commit}", "backend": f"CUDA, {gpu}, fp16, plan"}))

    def script(self, *options, code=0, broken=False):
        run = subprocess.run([self.root / "scripts/bench/gpu", self.out, "--bin", self.bin, *options], capture_output=True, text=True,
                             timeout=120, env={**os.environ, "BROKEN": "1" if broken else "0"})
        self.assertEqual(run.returncode, code, run.stdout + run.stderr)
        return run.stdout + run.stderr

    def refused(self, *words):
        said = self.script("--write", code=1)
        for word in (*words, "nothing was written"):
            self.assertIn(word, said)
        self.assertNotIn("Traceback", said)
        self.assertEqual([document.read_text() for document in self.documents], self.before)

    def test_figures_of_one_commit_are_written(self):
        self.script("--only", "episodes|load_shipped")
        self.assertIn(f"figures of {GPU}, commit {COMMIT[:7]}", self.script("--write"))
        performance = self.documents[1].read_text()
        self.assertIn("DDIM 10, 16 host cores | 12.3 s |", performance)
        self.assertIn("| self-check at load, shipped | 7.65 ms |", performance)
        words = self.before[1].partition("* **GPU**: ")[2].partition("\n")[0]  # those behind the commit stay
        self.assertIn(re.sub(r"^.*?, commit \w+", f"one {GPU}, driver 580, commit {COMMIT[:7]}", words), performance)

    def test_words_that_name_another_gpu_are_refused(self):
        self.script("--only", "episodes")
        performance = self.documents[1]
        performance.write_text(f"{self.before[1]}Trained networks: one NVIDIA H100.\n")
        self.before[1] = performance.read_text()
        self.refused(f"docs/PERFORMANCE.md:{self.before[1].count(chr(10))} says \"one NVIDIA H100\"", f"the runs are of {GPU}")

    def test_a_run_that_fails_has_no_figures_of_before(self):
        self.script("--only", "episodes")
        self.script("--only", "load_shipped", code=1, broken=True)
        self.assertIn("no GPU", (self.out / "load_shipped.txt").read_text())
        self.refused("has no run load_shipped")

    def test_an_evaluation_that_fails_is_named(self):
        self.script("--only", "episodes")
        self.script("--only", "episodes_ddpm", code=1, broken=True)
        self.refused("episodes_ddpm.txt has no line \"time\"", "--only episodes_ddpm")

    def test_an_evaluation_of_another_commit_or_gpu_is_refused(self):
        for commit, gpu in (("9876543210", GPU), (COMMIT + "-dirty", GPU), (COMMIT, "NVIDIA H100 80GB HBM3")):
            self.build(commit, gpu)
            self.script("--only", "episodes")
            self.refused("episodes-ddim/run.json", f"0.1.0+{commit} on CUDA, {gpu}", f"{COMMIT} on {GPU}")

    def test_an_evaluation_that_is_missing_is_named(self):
        self.refused("there is no", "episodes_ddim.txt")
        self.script("--only", "episodes")
        (self.out / "episodes-ddpm/run.json").unlink()
        self.refused("there is no", "episodes-ddpm/run.json")


if __name__ == "__main__":
    unittest.main()
