"""The tables that are made from logs, and the log of compile times."""

import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import make_attention_readme  # noqa: E402
import measure_compile  # noqa: E402


def log_of(**seconds):
    return {"toolkit": "13.0.88", "processor": "P",
            "files": [{"file": name, "nvcc_s": nvcc, "ptxas_s": ptxas} for name, (nvcc, ptxas) in seconds.items()]}


class AttentionReadme(unittest.TestCase):
    def test_two_cores_share_the_files(self):
        text = " ".join(make_attention_readme.compile_times(log_of(a=(10, 20), b=(10, 10), c=(20, 10)), "c.json"))
        self.assertIn("in 80 s of processor time (nvcc 13.0.88, P)", text)
        self.assertIn("two cores do in about 40 s; `a` alone takes 30 s", text)

    def test_one_long_file_is_the_least(self):
        text = " ".join(make_attention_readme.compile_times(log_of(a=(30, 20), b=(5, 5)), "c.json"))
        self.assertIn("two cores do in about 50 s", text)

    def test_notes_and_kernels_are_there(self):
        for stem in make_attention_readme.NOTES.values():
            self.assertTrue((ROOT / "docs/notes" / f"{stem}.md").exists(), stem)
        for stem in make_attention_readme.FILES.values():
            self.assertTrue(make_attention_readme.header_sentence(stem))

    def test_kernels_are_measured_with_the_flags_of_the_build(self):
        self.assertIn("-O3", measure_compile.flags())
        self.assertIn(str(ROOT / "src"), measure_compile.flags())


if __name__ == "__main__":
    unittest.main()
