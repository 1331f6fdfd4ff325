#!/usr/bin/env python3
"""scripts/test-gpu on programs that pass, fail, crash, hang, skip and are not there."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts/test-gpu"
# a program that speaks as GoogleTest does; the test's name says what becomes of it
FAKE = f"""#!{sys.executable}
import os, signal, sys, time
tests = TESTS
if "--gtest_list_tests" in sys.argv:
    print("Fake.")
    for test in tests: print("  " + test + "  # GetParam() = 3")
    sys.exit(0)
chosen, failed = os.environ["GTEST_FILTER"].split(":"), False
for test in tests:
    if "Fake." + test not in chosen: continue
    print("[ RUN      ] Fake." + test, flush=True)
    if test.startswith("Crashes"): os.kill(os.getpid(), signal.SIGSEGV)
    if test.startswith("Hangs"): time.sleep(600)
    if test.startswith("Gpu"): print("GPU", os.environ.get("CUDA_VISIBLE_DEVICES"), os.environ.get("EXTRA"))
    word = "  FAILED " if test.startswith("Fails") else "  SKIPPED" if test.startswith("Skips") else "      OK"
    failed |= test.startswith("Fails")
    print("[" + word + " ] Fake." + test + (", where GetParam() = 3 (0 ms)" if "FAIL" in word else " (0 ms)"))
sys.exit(failed)
"""


class TestGpu(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.build = pathlib.Path(self.folder.name)
        (self.build / "bin").mkdir()
        self.lines = []

    def add(self, name, tests, *variables):
        program = self.build / "bin" / name
        if tests:
            program.write_text(FAKE.replace("TESTS", repr(tests)))
            program.chmod(0o755)
        self.lines.append("\t".join(["folder/" + name, name, *variables]) + "\n")

    def run_script(self, *options, gpus=""):
        (self.build / "gpu_suites.txt").write_text("".join(self.lines))
        run = subprocess.run([SCRIPT, "--build", self.build, *options], capture_output=True, text=True, timeout=60,
                             env={"CUDA_VISIBLE_DEVICES": gpus, "PATH": "/usr/bin:/bin"})
        path = self.build / "test-gpu/summary.txt"
        rows = [line.split(maxsplit=7) for line in path.read_text().splitlines()[1:]] if path.exists() else []
        # passed, failed, skipped and cut off of each suite
        return run, {row[0]: [int(n) for n in row[2:6]] for row in rows if not row[0].endswith(":") and row[0] != "cut"}

    def log(self, name):
        return (self.build / f"test-gpu/folder_{name}.log").read_text()

    def test_passes(self):
        self.add("good", ["Passes", "Skips"])
        run, rows = self.run_script()
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertEqual(rows["folder/good"], [1, 0, 1, 0])

    def test_fails_and_crashes_and_goes_on(self):
        self.add("bad", ["Passes", "Fails", "Crashes", "PassesBehind"])
        self.add("good", ["Passes"])
        run, rows = self.run_script()
        self.assertEqual(run.returncode, 1)
        self.assertEqual(rows["folder/bad"], [2, 2, 0, 0])
        self.assertEqual(rows["folder/good"], [1, 0, 0, 0])
        self.assertIn("failed: folder/bad: Fake.Crashes", run.stdout)
        self.assertIn("ended with -11 in Fake.Crashes", self.log("bad"))

    def test_hangs(self):
        self.add("slow", ["Passes", "Hangs", "Passes2"])
        run, rows = self.run_script("--seconds", "0.7")
        self.assertEqual(run.returncode, 1)
        self.assertEqual(rows["folder/slow"], [1, 0, 0, 2])
        self.assertIn("cut off: folder/slow: Fake.Hangs", run.stdout)

    def test_skipping_is_not_passing(self):
        self.add("skips", ["Skips"])
        run, rows = self.run_script()
        self.assertEqual((run.returncode, rows["folder/skips"]), (3, [0, 0, 1, 0]))

    def test_a_program_that_is_not_there(self):
        self.add("good", ["Passes"])
        self.add("missing", [])
        run, rows = self.run_script()
        self.assertEqual((run.returncode, rows["folder/good"]), (1, [1, 0, 0, 0]))
        self.assertIn("cannot be run", run.stdout)

    def test_shares_a_long_suite_among_gpus(self):
        self.add("long", [f"Gpu{i}" for i in range(16)], "EXTRA=a b=c")
        run, rows = self.run_script(gpus="4,7")
        self.assertEqual((run.returncode, rows["folder/long"]), (0, [16, 0, 0, 0]), run.stdout + run.stderr)
        for gpu in "47":
            self.assertEqual(self.log("long").count(f"GPU {gpu} a b=c"), 8)

    def test_only_and_list(self):
        self.add("one", ["Fails"])
        self.add("two", ["Passes"])
        self.assertEqual(self.run_script("--list")[0].stdout, "folder/one\nfolder/two\n")
        self.assertEqual(self.run_script("--only", "two$")[0].returncode, 0)
        self.assertEqual(self.run_script("--only", "three")[0].returncode, 2)
        self.assertEqual(self.run_script("--build", "/nowhere")[0].returncode, 2)


if __name__ == "__main__":
    unittest.main()
