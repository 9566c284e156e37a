"""bench/v4_goals.py: the table of measured logs, and of what has no times."""

import contextlib
import io
import json
import pathlib
import shutil
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
import v4_goals  # noqa: E402

MEASURED = {"tensor": "2026-11-27-model-tensor-2xh200-trips.json",
            "expert": "2026-11-27-model-expert-2xh200-trips.json",
            "serve": "2026-11-27-serve-2xh200-direct.json",
            "one": "2026-11-26-model-22-layers-h200-stack-batches.json"}


class Goals(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        for name, log in MEASURED.items():
            (self.folder / name).mkdir()
            shutil.copy(ROOT / "bench/results" / log, self.folder / name / "model.json")

    def change(self, name, change):
        path = self.folder / name / "model.json"
        log = json.loads(path.read_text())
        for sample in log["samples"]:
            change(sample)
        path.write_text(json.dumps(log))

    def table(self, *arguments):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            v4_goals.main(["--from", str(self.folder), *arguments])
        return [[cell.strip() for cell in line.strip("|").split("|")] for line in out.getvalue().splitlines()[2:]]

    def row(self, begin, goal, *arguments):
        rows = [row for row in self.table(*arguments) if row[0].startswith(begin) and row[6].startswith(goal)]
        self.assertEqual(len(rows), 1, begin)
        return rows[0]

    def test_rows_are_those_of_the_page(self):
        stream = self.row("one stream, 2 GPUs, tensors in parallel, context 1,024", "<= 3.4 ms")
        self.assertEqual(stream[1:8], ["5.206", "1.46", "28", "96", "485", "<= 3.4 ms", "no"])
        self.assertEqual(self.row("prompt of 8,192 a GPU", ">= 12,000")[4:8:3], ["13,186", "yes"])
        self.assertEqual(self.row("8,192 in, 1,024 out", ">= 5,000")[3:5], ["45", "5,733"])
        self.assertEqual(self.row("batch 64 a GPU", ">= 60 %")[3:8:4], ["50", "no"])
        self.assertEqual(self.row("batch 64 a GPU", "<= 500")[5:8:2], ["1129", "no"])
        self.assertEqual(self.row("one GPU, batch 64", ">= 60 %")[3:8:4], ["62", "yes"])
        self.assertEqual({row[0].split(",")[0] for row in self.table("--only", "one")}, {"one GPU"})

    def test_what_was_not_timed_has_launches_alone(self):
        self.change("expert", lambda s: s.update(samples_us=[], steps_us=[]))
        self.change("serve", lambda s: s.pop("seconds"))
        self.assertEqual(self.row("batch 64 a GPU", ">= 60 %")[1:8],
                         ["-", "18.3", "-", "-", "1129", ">= 60 % of the floor", "-"])
        self.assertEqual(self.row("batch 64 a GPU", "<= 500")[7], "no")
        self.assertEqual(self.row("8,192 in", ">= 5,000")[7], "-")

    def test_what_does_not_fit_and_what_is_wrong_is_said(self):
        def refuse(sample):
            if sample.get("batch") == 64:
                for key in ("samples_us", "launches", "floor_us"):
                    sample.pop(key)
                sample["refused"] = "no room"
        self.change("expert", refuse)
        self.assertEqual(self.row("batch 64 a GPU", ">= 60 %")[1:8:6], ["no room", "no"])
        self.change("tensor", lambda s: s.update(ok=False))
        with self.assertRaisesRegex(SystemExit, "no numbers"):
            self.table()

    def test_no_logs_and_no_tool_are_said(self):
        with self.assertRaisesRegex(SystemExit, "has no log; expected"):
            v4_goals.main(["--from", str(self.folder / "none")])
        with self.assertRaisesRegex(SystemExit, "No such file"), contextlib.redirect_stdout(io.StringIO()):
            v4_goals.main(["--out", str(self.folder / "out"), "--tool", str(self.folder / "none")])

    def test_a_run_that_fails_fails(self):
        with self.assertRaisesRegex(SystemExit, "failed: serve"), contextlib.redirect_stdout(io.StringIO()):
            v4_goals.main(["--out", str(self.folder / "out"), "--only", "serve", "--tool", shutil.which("false")])


if __name__ == "__main__":
    unittest.main()
