#!/usr/bin/env python3
"""scripts/mutate on a project of one source file and two tests, of which one looks at nothing."""
import json
import pathlib
import shutil
import subprocess
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts/mutate"
RULES = """rule compile
  command = c++ -O0 -c $in -o $out
rule archive
  command = ar cr $out $in
rule link
  command = c++ -o $out $in
build most.o: compile ../most.cc
build libmost.a: archive most.o
build seeing.o: compile ../seeing.cc
build bin/seeing: link seeing.o libmost.a
build blind.o: compile ../blind.cc
build bin/blind: link blind.o libmost.a
"""


class Mutate(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name).resolve()
        self.build = self.root / "build"
        for name in ("scripts", "build/bin"):
            (self.root / name).mkdir(parents=True)
        shutil.copy(SCRIPT, self.root / "scripts")  # the project is the one that it lies in
        (self.root / "most.cc").write_text("bool Both(bool a, bool b) { return a && b; }\n")
        (self.root / "seeing.cc").write_text("bool Both(bool, bool);\nint main() { return Both(true, false); }\n")
        (self.root / "blind.cc").write_text("int main() { return 0; }\n")
        (self.build / "build.ninja").write_text(RULES)
        (self.build / "compile_commands.json").write_text(json.dumps(
            [{"file": str(self.root / "most.cc"), "command": "c++ -O2 -o most.o -c ../most.cc"}]))
        self.ninja()

    def ninja(self):
        subprocess.run(["ninja", "-C", self.build], check=True, capture_output=True)

    def mutate(self, *tests):
        run = subprocess.run([self.root / "scripts/mutate", self.root / "most.cc", *tests, "--build", self.build],
                             capture_output=True, text=True, timeout=120)
        return run.returncode, run.stdout.splitlines()[-1:], run.stderr

    def expect(self, seen, *tests):
        code, said, error = self.mutate(*tests)
        self.assertEqual(code, 0, error)
        self.assertIn(f": {seen} of 1 planted bugs seen", said[0])

    def rows(self):
        return len((self.build / "mutants/most.cc.jsonl").read_text().splitlines())

    def test_a_bug_is_seen_by_the_tests_that_ran(self):
        self.expect(1, "seeing")
        self.expect(0, "blind")
        self.expect(1, "blind", "seeing")
        self.assertEqual(self.rows(), 3)

    def test_goes_on_where_it_was_stopped(self):
        for _ in range(2):
            self.expect(1, "blind", "seeing")
            self.expect(1, "seeing", "blind")
        self.assertEqual(self.rows(), 1)

    def test_a_test_that_was_built_anew_begins_anew(self):
        self.expect(1, "seeing")
        (self.root / "seeing.cc").write_text("int main() { return 0; }\n")
        self.ninja()
        self.expect(0, "seeing")

    def test_a_test_that_is_not_built_is_refused(self):
        (self.build / "bin/blind").unlink()
        code, _, error = self.mutate("blind")
        self.assertEqual(code, 1)
        self.assertIn("blind is no program", error)


if __name__ == "__main__":
    unittest.main()
