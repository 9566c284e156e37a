"""tools/check_family.py with an assembler that says what a test wants."""

import contextlib
import io
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))

import check_family  # noqa: E402

# Counts what it assembles. Kernels whose text has "spills" spill for sm_103a.
PTXAS = """#!{python} -S
import pathlib, re, sys
if "--version" in sys.argv:
    sys.exit(print("Cuda compilation tools, release 13.0"))
ptx, architecture = pathlib.Path(sys.argv[4]), sys.argv[3]
text = ptx.read_text()
with open({log!r}, "a") as file:
    print(ptx.name.split(".")[0], architecture, file=file)
if "broken" in text:
    sys.exit("ptxas fatal: a line that is broken")
bytes = 8 if "spills" in text and architecture == "sm_103a" else 0
name = re.search(r"entry (\\w+)", text)[1]
print(f"ptxas info    : Compiling entry function '{{name}}' for '{{architecture}}'")
print(f"    0 bytes stack frame, {{bytes}} bytes spill stores, {{bytes}} bytes spill loads")
print("ptxas info    : Used 40 registers, used 1 barriers")
"""


class CheckFamily(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.kernels = self.folder / "build/kernels"
        self.kernels.mkdir(parents=True)
        self.log, self.record = self.folder / "log", self.folder / "record.txt"
        self.ptxas = self.folder / "ptxas"
        self.ptxas.write_text(PTXAS.format(log=str(self.log), python=sys.executable))
        self.ptxas.chmod(0o755)
        self.enterContext(mock.patch.object(check_family, "source", lambda ptx: ptx))

    def kernel(self, name, text=""):
        (self.kernels / f"{name}.sm_100f.ptx").write_text(f"\t.loc 1 7 3\n.entry {name}\n{text}\n")
        (self.kernels / f"{name}.sm_100f.ptxas").write_text(
            f"ptxas info    : Compiling entry function '{name}' for 'sm_100f'\n"
            "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
            "ptxas info    : Used 40 registers, used 1 barriers\n")

    def run_it(self, *options):
        """(exit status, what it printed, what was assembled)"""
        self.log.write_text("")
        words = ["check_family.py", str(self.folder / "build"), "--ptxas", str(self.ptxas), "--record-file",
                 str(self.record), *options]
        with mock.patch.object(sys, "argv", words), contextlib.redirect_stdout(io.StringIO()) as said:
            status = check_family.main()
        return status, said.getvalue(), self.log.read_text().split("\n")[:-1]

    def test_what_is_in_the_record_is_not_assembled_again(self):
        for name in "abc":
            self.kernel(name)
        status, _, assembled = self.run_it("--record")
        self.assertEqual((status, len(assembled)), (0, 6))
        self.assertEqual(len(check_family.read_record(self.record)), 3)
        self.kernel("b", "another text")
        status, said, assembled = self.run_it()
        self.assertEqual((status, assembled), (0, ["b sm_100a", "b sm_103a"]))
        self.assertIn("3 files: 2 in the record, 1 assembled now", said)
        # With a limit one of the record is assembled all the same.
        self.assertEqual(len(self.run_it("--cpu-seconds", "20")[2]), 4)

    def test_a_place_in_the_source_does_not_matter(self):
        self.kernel("a")
        self.run_it("--record")
        path = self.kernels / "a.sm_100f.ptx"
        path.write_text(path.read_text().replace("1 7 3", "1 8 3"))
        self.assertEqual(self.run_it()[2], [])

    def test_another_assembler_says_nothing_of_this_one(self):
        self.kernel("a")
        self.run_it("--record")
        self.ptxas.write_text(self.ptxas.read_text().replace("13.0", "13.1"))
        self.assertEqual(len(self.run_it()[2]), 2)

    def test_spills_are_named_and_not_recorded(self):
        self.kernel("good")
        self.kernel("bad", "spills")
        for _ in range(2):  # what is named stays named
            status, said, _ = self.run_it("--record")
            self.assertEqual(status, 1)
            self.assertIn("bad.sm_100f.ptx for sm_103a: bad: 8 bytes of spill_stores, 0 for the family", said)
            self.assertEqual(len(check_family.read_record(self.record)), 1)

    def test_what_is_not_assembled_is_named(self):
        self.kernel("bad", "broken")
        status, said, _ = self.run_it("--record")
        self.assertEqual(status, 1)
        self.assertIn("bad.sm_100f.ptx for sm_100a: ptxas fatal: a line that is broken", said)
        self.assertEqual(check_family.read_record(self.record), set())

    def test_time_that_is_spent_leaves_files_and_says_so(self):
        for name in "abc":
            self.kernel(name)
        with mock.patch.object(check_family, "cpu_seconds", side_effect=[0, 0, 21]):
            status, said, assembled = self.run_it("--cpu-seconds", "20")
        self.assertEqual((status, len(assembled)), (0, 2))
        self.assertIn("2 left, as 20 s of processor time are spent", said)


if __name__ == "__main__":
    unittest.main()
