#!/usr/bin/env python3
"""scripts/evaluate-conditions on a program whose scores are those that the checkpoint holds."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts/evaluate-conditions"
FAKE = f"""#!{sys.executable}
import os, pathlib, sys
words, here = sys.argv[1:], pathlib.Path(__file__).parent
with (here / "calls").open("a") as calls: calls.write(" ".join(words) + "\\n")
value = lambda name: words[words.index(name) + 1]
checkpoint = pathlib.Path(value("--checkpoint"))
if (checkpoint / "broken").exists() or (here / "broken").exists(): sys.exit("broken")
episodes, success = int(value("--episodes")), float((checkpoint / "model").read_text())
print(f"success  {{success:.2f}} %   ({{episodes}} of {{episodes}}, 95 % interval 1.00 to 2.00)")
print("steps  95  (median)")
"""


class EvaluateConditions(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.program = self.folder / "mjpolicy"
        self.build("1")
        self.checkpoint("a", 50)

    def build(self, number):
        self.program.write_text(f"{FAKE}# build {number}\n")
        self.program.chmod(0o755)

    def checkpoint(self, name, success):
        (self.folder / name).mkdir(exist_ok=True)
        (self.folder / name / "config.json").write_text("{}")
        (self.folder / name / "model").write_text(str(success))

    def run_script(self, checkpoint, *options, code=0):
        """The table's rows, and how many conditions ran."""
        calls = self.folder / "calls"
        calls.write_text("")
        run = subprocess.run([SCRIPT, self.folder / checkpoint, self.folder / "out", *options], capture_output=True, text=True,
                             timeout=120, env={**os.environ, "MJPOLICY": str(self.program), "JOBS": "4"})
        self.assertEqual(run.returncode, code, run.stdout + run.stderr)
        self.said = run.stderr
        return run.stdout.splitlines()[2:], len(calls.read_text().splitlines())

    def test_a_finished_table_is_printed_again(self):
        rows, ran = self.run_script("a", "--episodes", "5")
        self.assertGreater(ran, 20)
        self.assertEqual(len(rows), ran)
        self.assertTrue(all("| 5 | 50.00 |" in row for row in rows), rows)
        self.assertEqual(self.run_script("a", "--episodes", "5"), (rows, 0))
        (self.folder / "out/3.txt").unlink()
        self.assertEqual(self.run_script("a", "--episodes", "5"), (rows, 1))

    def test_figures_are_of_what_is_asked_for(self):
        _, every = self.run_script("a", "--episodes", "5")
        rows, ran = self.run_script("a", "--episodes", "6")
        self.assertTrue(all("| 6 | 50.00 |" in row for row in rows), rows)
        self.assertEqual(ran, every)
        self.checkpoint("b", 60)
        rows, ran = self.run_script("b", "--episodes", "6")
        self.assertTrue(all("| 6 | 60.00 |" in row for row in rows), rows)
        self.checkpoint("b", 70)  # trained on
        rows, ran = self.run_script("b", "--episodes", "6")
        self.assertTrue(all("| 6 | 70.00 |" in row for row in rows), rows)
        self.build("2")
        self.assertEqual(self.run_script("b", "--episodes", "6"), (rows, every))

    def test_scores_of_another_program_stay_until_there_are_others(self):
        rows, every = self.run_script("a", "--episodes", "5")
        self.assertEqual(self.said, "")
        before = (self.folder / "out/3.txt").read_text()
        self.build("2")
        (self.folder / "broken").touch()
        self.assertEqual(self.run_script("a", "--episodes", "5", code=4), ([], every))
        said = f"{self.folder}/out/3.txt is of another checkpoint, option or program: measured again\n"
        self.assertIn(said, self.said)
        self.assertEqual((self.folder / "out/3.txt").read_text(), before)
        self.build("1")
        self.assertEqual(self.run_script("a", "--episodes", "5"), (rows, 0))

    def test_the_same_checkpoint_elsewhere_is_the_same(self):
        rows, _ = self.run_script("a", "--episodes", "5")
        (self.folder / "a").rename(self.folder / "moved")
        self.assertEqual(self.run_script("moved", "--episodes", "5"), (rows, 0))

    def test_a_condition_that_fails_has_no_row(self):
        self.run_script("a", "--episodes", "5")
        (self.folder / "a/broken").touch()
        self.assertEqual(self.run_script("a", "--episodes", "5", code=4)[0], [])


if __name__ == "__main__":
    unittest.main()
