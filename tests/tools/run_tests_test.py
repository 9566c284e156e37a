"""What the runner of the tests prints at its end."""

import contextlib
import io
import pathlib
import re
import sys
import tempfile
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import run_tests  # noqa: E402
import test_jobs  # noqa: E402


def summary(*results):
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        run_tests.print_summary(list(results), 7)
    return text.getvalue()


def result(name, passed, failed=0, skipped=()):
    made = run_tests.Result(name, "release")
    made.passed, made.failed, made.skipped = passed, failed, list(skipped)
    return made


class RunTests(unittest.TestCase):
    def test_the_last_line_is_plain_counts(self):
        text = summary(result("base", 5), result("device", 2, 1, ["GpuTest.One", "Other.Two"]))
        self.assertEqual(text.splitlines()[-1], "7 passed, 1 failed, 2 skipped")
        self.assertTrue(text.endswith("\n"))
        self.assertIn("1 tests need a GPU", text)

    def test_no_other_line_looks_like_it(self):
        text = summary(result("base", 5))
        self.assertEqual(len(re.findall(r"^\d+ passed, \d+ failed, \d+ skipped$", text, re.M)), 1)
        self.assertEqual(text.splitlines()[-1], "5 passed, 0 failed, 0 skipped")

    def test_what_failed_is_named_at_the_end_and_skips_do_not_hide_it(self):
        failing = result("ops 1/2", 5)
        failing.output = "a_test.cpp:7: Failure\n" + "b_test.cpp:30: Skipped\nno GPU: none\n" * 100
        failing.fail("Suite.Name")
        text = summary(result("base", 5), failing)
        self.assertIn("a_test.cpp:7: Failure", text)
        self.assertNotIn("Skipped", text)
        self.assertNotIn("no GPU", text)
        self.assertIn("\nfailed:\n  release ops 1/2: Suite.Name\n", text)


class Progress(unittest.TestCase):
    def test_a_line_a_minute_where_there_is_no_terminal(self):
        clock, text = [0.0], io.StringIO()
        progress = run_tests.Progress(40, text, lambda: clock[0])
        for clock[0], done in ((30, 1), (61, 2), (90, 3), (125, 9)):
            progress.show(done)
        progress.clear()
        self.assertEqual(text.getvalue(), "tilewright: 2 of 40 suites of tests after 61 s\n"
                                          "tilewright: 9 of 40 suites of tests after 125 s\n")


class Lists(unittest.TestCase):
    def job(self, *patterns):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "some_tests"
            path.write_text("#!/bin/sh\nprintf 'Sim/Suite.\\n  One/h200  # GetParam() = 1\\n  Two\\n'\n")
            path.chmod(0o755)
            return test_jobs.check_list(path, "asan", "release_only.txt", list(patterns))

    def test_patterns_that_name_tests_pass(self):
        made = self.job("*Suite.One*", "Sim/Suite.Two")
        self.assertEqual((made.passed, made.failed), (2, 0))

    def test_a_pattern_without_a_test_fails_by_name(self):
        made = self.job("*Suite.Three*")
        self.assertEqual(made.failed, 1)
        self.assertIn("*Suite.Three*", made.output)


class Jobs(unittest.TestCase):
    """Of programs that are not there: nothing is run."""

    def jobs(self, *arguments):
        """(build, program) -> its runs."""
        runs = {}
        names = ["ops_tests", "sim_tests", "kernels_tests", "base_tests"]
        with mock.patch.object(sys, "argv", ["run_tests.py", *arguments]), \
                mock.patch.object(run_tests, "programs", lambda build: [pathlib.Path(build) / n for n in names]):
            for function, *rest in run_tests.collect(run_tests.arguments()):
                if function is test_jobs.run_gtest:
                    runs.setdefault((rest[0].build, rest[0].path.name), []).append(rest[0])
        return runs

    def test_sanitized_launches_are_on_the_optimised_simulator_and_the_sample_on_both(self):
        runs = self.jobs()[("asan", "ops_tests")]
        whole = [run for run in runs if run.note != "sample"]
        self.assertEqual({run.part for run in whole}, set(range(whole[0].parts)))
        for run in whole:
            self.assertIn("/release/", run.environment["TILEWRIGHT_SIM_LIBRARY"])
            self.assertEqual(run.environment["TILEWRIGHT_SIM_CHECK"], "mem")
        sample, = [run for run in runs if run.note == "sample"]
        self.assertEqual(sample.environment, {})
        self.assertIn("AttentionSm100Test.*", sample.filter)
        for run in self.jobs()[("release", "ops_tests")]:
            self.assertEqual(run.environment, {})

    def test_sanitized_launches_are_on_one_chip_that_the_seed_draws(self):
        names = [f"SimTest/Suite.Test{i}/{chip}" for i in range(20) for chip in ("h200", "b200")]
        single = ["SimTest/Suite.Hopper/h200", "GpuTest/Suite.Test1/cuda", "Plain.Test/7", "Plain.Test/8"]
        left_out = {seed: test_jobs.other_chips(names + single, seed) for seed in (1, 2)}
        for names_of_seed in left_out.values():
            self.assertEqual(len({name.rpartition("/")[0] for name in names_of_seed}), 20)
            self.assertEqual({name.rpartition("/")[2] for name in names_of_seed}, {"h200", "b200"})
        self.assertNotEqual(*left_out.values())
        with mock.patch.object(test_jobs, "list_tests", lambda path: names):
            runs = self.jobs("--seed", "2")[("asan", "ops_tests")]
        for run in runs:
            self.assertTrue(run.filter.endswith(":".join(left_out[2])))
            self.assertEqual(run.filter.count("-"), 1)

    def test_tests_of_the_simulator_itself_never_leave_it(self):
        for run in self.jobs()[("asan", "sim_tests")]:
            self.assertEqual(run.environment, {})

    def test_thorough_has_no_other_simulator(self):
        for run in self.jobs("--thorough")[("asan", "ops_tests")]:
            self.assertEqual((run.environment, run.note), ({}, ""))

    def test_a_text_goes_to_every_program_whole(self):
        runs = self.jobs("Moe")
        self.assertEqual([run.filter for run in runs[("asan", "ops_tests")]], ["*Moe*"])
        self.assertEqual([run.filter for run in runs[("release", "kernels_tests")]], ["*Moe*"])
        self.assertNotIn(("asan", "kernels_tests"), runs)

    def test_quick_has_the_release_build_alone(self):
        runs = self.jobs("--quick")
        self.assertEqual({build for build, _ in runs}, {"release"})
        self.assertNotIn(("release", "kernels_tests"), runs)
        self.assertEqual(len(runs[("release", "ops_tests")]), 2)

    def test_the_longest_begin(self):
        with mock.patch.object(sys, "argv", ["run_tests.py"]), \
                mock.patch.object(run_tests, "programs", lambda build: [pathlib.Path("ops_tests")]):
            jobs = run_tests.collect(run_tests.arguments())
        self.assertIs(jobs[0][0], test_jobs.run_gtest)
        kinds = [job[0] for job in jobs]
        self.assertLess(kinds.index(test_jobs.run_mutants), kinds.index(test_jobs.run_install))
        files = [job[1].stem for job in jobs if job[0] is test_jobs.run_pytest]
        self.assertEqual(files[0], "package_test")
        checks = [job[1] for job in jobs if job[0] is test_jobs.run_command]
        self.assertEqual(checks[0], "generated ptx")

    def test_what_is_told_of_seconds_is_there(self):
        files = {path.stem.removesuffix("_test") for path in test_jobs.python_tests()}
        self.assertLessEqual(set(run_tests.PYTHON), files)
        self.assertLessEqual(set(run_tests.COMMANDS), set(test_jobs.tree_checks()))

    def test_processor_time_is_that_of_the_program_and_its_children(self):
        busy = "import time\nwhile time.process_time() < 0.2: pass\nprint('done')"
        result = test_jobs.Result("busy", "tree")
        parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {busy!r}]); sys.exit(3)"
        command = [sys.executable, "-c", parent]
        self.assertEqual(test_jobs.run_process(result, command), 3)
        self.assertEqual(result.output, "done\n")
        self.assertGreaterEqual(result.processor_seconds, 0.2)
        self.assertGreaterEqual(result.seconds, 0.2)

    def test_results_of_pytest_are_counted(self):
        report = self.enterContext(tempfile.NamedTemporaryFile("w", suffix=".xml"))
        report.write("<testsuites><testsuite>"
                     "<testcase classname='tests.python.a_test' name='good'/>"
                     "<testcase classname='tests.python.a_test' name='bad'><failure/></testcase>"
                     "<testcase classname='tests.python.a_test' name='broken'><error/></testcase>"
                     "<testcase classname='tests.python.a_test' name='not here'><skipped message='no torch'/>"
                     "</testcase></testsuite></testsuites>")
        report.flush()
        result = test_jobs.Result("python a", "release")
        test_jobs.read_junit(pathlib.Path(report.name), result)
        self.assertEqual((result.passed, result.failed), (1, 2))
        self.assertEqual(result.failures, ["a_test.bad", "a_test.broken"])
        self.assertEqual(result.skipped, ["a_test.not here (no torch)"])


if __name__ == "__main__":
    unittest.main()
