#!/usr/bin/env python3
"""scripts/soak on a program that evaluates as it is told: steadily, with other bits later, or with ever more memory."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts/soak"
# two episodes of five decisions each a twentieth of a second, until somebody stops it
FAKE = f"""#!{sys.executable}
import json, os, pathlib, signal, sys, time
words = sys.argv[1:]
value = lambda name: words[words.index(name) + 1]
out, many = pathlib.Path(value("--out")), int(value("--episodes"))
seed = int(value("--seed")) if "--seed" in words else 100
out.mkdir(exist_ok=True)
log = out / "episodes.jsonl"
done = log.read_text() if "--resume" in words else ""
(out / "part").write_text(done)
(out / "part").replace(log)
def stop(*_):
    sys.stderr.write("stopped; the slowest decision but the first: 7.500 ms, 6.250 of it denoise, at 2001-01-01T00:00:00Z\\n")
    sys.exit(143)
signal.signal(signal.SIGTERM, stop)
hoard = []
for i in range(len(done.splitlines()), many):
    bits = 0 if "wrong" in words and many == 2 else seed + i
    with log.open("a") as file:
        file.write(json.dumps({{"episode": i, "seed": seed + i, "status": "ok", "decisions": 5, "hash": f"{{bits:016x}}",
                               "timing": {{"seconds": 0.05}}}}) + "\\n")
    if "hoard" in words: hoard.append(b"x" * 1000000)
    if many > 2: time.sleep(0.025)
"""


class Soak(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.program = pathlib.Path(self.folder.name) / "program"
        self.program.write_text(FAKE)
        self.program.chmod(0o755)

    def run_script(self, seconds, *options, decisions="inf"):
        return subprocess.run(
            [SCRIPT, pathlib.Path(self.folder.name) / "soak", "--hours", str(seconds / 3600), "--every", "0.2",
             "--decisions", decisions, "--program", self.program, "--", "--batch", "2", *options],
            capture_output=True, text=True, timeout=60)

    def test_goes_on_until_there_are_enough(self):
        first = self.run_script(1.5, decisions="400")
        self.assertIn("decisions are left: the same command goes on", first.stdout)
        self.assertEqual(first.returncode, 0, first.stdout + first.stderr)
        second = self.run_script(30, decisions="400")
        self.assertEqual(second.returncode, 0, second.stdout + second.stderr)
        self.assertNotIn("are left", second.stdout)
        self.assertIn("0 of them invalid, 2 processes", second.stdout)
        self.assertIn("the same bits again", second.stdout)
        self.assertIn("slowest decision but the first of a process 7.500 ms, 6.250 of it denoise: processor at", second.stdout)
        lines = (pathlib.Path(self.folder.name) / "soak/results/episodes.jsonl").read_text().splitlines()
        decisions = sum(json.loads(line)["decisions"] for line in lines)
        self.assertGreaterEqual(decisions, 400)
        self.assertTrue(second.stdout.startswith(f"{decisions} decisions in {len(lines)} episodes"), second.stdout)

    def test_other_bits_are_found(self):
        run = self.run_script(1, "wrong")
        self.assertEqual(run.returncode, 5, run.stdout + run.stderr)
        self.assertIn("has other bits than before", run.stdout)

    def test_growing_memory_is_found(self):
        run = self.run_script(2, "hoard")
        self.assertEqual(run.returncode, 5, run.stdout + run.stderr)
        self.assertIn("the same bits again", run.stdout)


if __name__ == "__main__":
    unittest.main()
