"""The parts of the mutation tester that need no simulator: the text of a kernel, its changes, the verdicts."""

import contextlib
import io
import pathlib
import sys
import tempfile
import types
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import mutate  # noqa: E402
from mutation import judge, known, ptx, sites, table  # noqa: E402
from mutation.cases import CASES  # noqa: E402
from mutation.runner import Outcome  # noqa: E402

TEXT = """\
.version 9.0
.visible .entry first(
)
{
	bar.sync 	0;
}
.visible .entry second(
)
{
	.loc	1 40 3
	mov.u32 	%r1, 1;
	.loc	2 7 3, function_name $L__info_string0, inlined_at 1 40 3
	mbarrier.init.shared::cta.b64 [%r2], %r1;
	mbarrier.init.shared::cta.b64 [%r2], %r9;
	.loc	1 41 3
	{
.reg .pred p;
mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%r2], %r3;
}
	@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 4096;
	elect.sync _|p, 0xffffffff;
	wgmma.wait_group.sync.aligned 1;
	fence.proxy.async.shared::cta;
	setmaxnreg.dec.sync.aligned.u32 40;
	setmaxnreg.inc.sync.aligned.u32 256;
	tcgen05.mma.cta_group::1.kind::f16 [%r5], %rd1, %rd2, %r6, p;
}
.func helper()
{
	bar.sync 	1;
}
	.file	1 "/a/b/src/kernels/k.cu"
	.file	2 "/a/b/src/ptx/mbarrier.h"
"""


def line_of(text):
    return next(i for i, line in enumerate(TEXT.splitlines(), 1) if text in line)


def changes(text, kinds=sites.KINDS):
    """action -> changed line, for the first instruction with this text"""
    module = ptx.Module(TEXT, "second")
    return {m.action: m.line for m in sites.mutants_of(module, {line_of(text)}, kinds)}


class Text(unittest.TestCase):
    def test_other_kernels_become_empty_lines(self):
        lines = ptx.Module(TEXT, "second").text().splitlines()
        self.assertEqual(len(lines), len(TEXT.splitlines()))
        self.assertEqual(lines[1:6], [""] * 5)
        self.assertIn("\tbar.sync \t1;", lines)  # functions stay
        with self.assertRaisesRegex(ValueError, "no .entry third"):
            ptx.Module(TEXT, "third")

    def test_places_go_from_the_inside_out(self):
        module = ptx.Module(TEXT, "second")
        self.assertEqual(module.places[line_of("[%r2], %r1") - 1], ((2, 7), (1, 40)))
        self.assertEqual(module.places[line_of("elect.sync") - 1], ((1, 41),))
        name = ptx.Sources(pathlib.Path("/")).name(module, ((2, 7), (1, 40)))
        self.assertEqual(name, "mbarrier.h:7 < k.cu:40")

    def test_a_place_is_called_by_the_text_of_its_line(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "src/kernels/k.cu"
            file.parent.mkdir(parents=True)
            file.write_text("\n" * 39 + "  init(full,   1);\n}\n")
            sources = ptx.Sources(pathlib.Path(folder))
            # Wrappers of instructions say nothing.
            said = sources.describe(ptx.Module(TEXT, "second"), ((2, 7), (1, 40)))
            self.assertEqual(said, "k.cu: init(full, 1);")


class Changes(unittest.TestCase):
    def test_counts(self):
        self.assertEqual(set(changes("[%r2], %r1")), {"delete", "count + 1"})  # 0 is no count
        more = changes("[%r2], %r9")
        self.assertEqual(set(more), {"delete", "count + 1", "count - 1"})
        self.assertEqual(more["count - 1"], "{ .reg .b32 mutated; add.s32 mutated, %r9, -1; "
                                            "mbarrier.init.shared::cta.b64 [%r2], mutated; }")

    def test_waits(self):
        wait = changes("try_wait")
        self.assertEqual(wait["fall through"], "setp.eq.u32 p, 0, 0;")
        self.assertIn("xor.b32 mutated, %r3, 1;", wait["other parity"])
        self.assertIn(".parity.relaxed.cluster.shared", wait["relaxed"])
        self.assertIn(".parity.acquire.cta.shared", wait["cta scope"])

    def test_literals_and_guards(self):
        self.assertEqual(changes("expect_tx")["bytes - 16"],
                         "@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 4080;")

    def test_others(self):
        self.assertEqual(changes("elect.sync"), {"all lanes": "setp.eq.u32 p, 0, 0;"})
        self.assertEqual(changes("wait_group")["one more"], "wgmma.wait_group.sync.aligned 2;")
        self.assertEqual(changes("fence.proxy")["other space"], "fence.proxy.async.global ;")
        self.assertEqual(changes("setmaxnreg.dec"),
                         {"count + 8": "setmaxnreg.dec.sync.aligned.u32 48;", "delete": ""})
        self.assertEqual(changes("setmaxnreg.inc"), {})  # there is no more than 256
        self.assertEqual(changes("tcgen05.mma"), {})
        self.assertIn("xor.b64 mutated, %rd2, 13835058055282163712;",
                      changes("tcgen05.mma", sites.DESCRIPTOR_KINDS)["layout 64B of B"])

    def test_one_of_each_place(self):
        module = ptx.Module(TEXT, "second")
        mutants = sites.mutants_of(module, {line_of("[%r2], %r1"), line_of("[%r2], %r9")})
        self.assertEqual({m.index + 1 for m in mutants}, {line_of("[%r2], %r1")})


class FakeRunner:
    """how(shape number, timing, checks) -> Outcome of the changed text; the unchanged one is right"""

    def __init__(self, how, unchanged):
        self.how, self.unchanged, self.runs = how, unchanged, []

    def run(self, case, shape, text, *, checks, timing):
        if text == ptx.Module(TEXT, "second").text():
            return self.unchanged
        self.runs.append((case.shapes.index(shape), timing, checks))
        return self.how(*self.runs[-1])


def judged(how, entries=(), is_quick=True, unchanged=Outcome("silent")):
    case, module = CASES[0], ptx.Module(TEXT, "second")
    mutant = sites.mutants_of(module, {line_of("elect.sync")})[0]
    result = judge.Result(case.name, mutant.index + 1, mutant.kind, mutant.action, mutant.op, "k.cu: elect()",
                          "k.cu:41")
    runner = FakeRunner(how, unchanged)
    judge.Judge(runner, list(entries), is_quick).judge(case, module, mutant, result)
    return result, runner.runs


class Verdicts(unittest.TestCase):
    def test_named_at_once(self):
        result, runs = judged(lambda *_: Outcome("named", "race", "race on x [race]"))
        self.assertEqual((result.verdict, result.check, len(runs)), ("named", "race", 1))
        _, runs = judged(lambda *_: Outcome("named", "race", "race on x [race]"), is_quick=False)
        self.assertEqual([run[1] for run in runs], ["eager", "late"])

    def test_named_in_late_timing_only(self):
        result, runs = judged(lambda _, timing, *__: Outcome("named" if timing == "late" else "silent"))
        self.assertEqual((result.verdict, len(runs)), ("named", 2))

    def test_named_at_another_shape_or_by_strict(self):
        result, _ = judged(lambda shape, *_: Outcome("named", "sync") if shape == 1 else Outcome("silent"))
        self.assertEqual(result.verdict, "elsewhere")
        result, _ = judged(lambda *run: Outcome("named" if "strict" in run[2] else "silent"))
        self.assertEqual(result.verdict, "strict")

    def test_what_the_unchanged_kernel_is_named_for_counts_for_nothing(self):
        message = "k3 unchanged, shape 1, eager, --check all: .* found named: a race"
        with self.assertRaisesRegex(RuntimeError, message):
            judged(lambda *_: Outcome("named", "race"), unchanged=Outcome("named", "race", "a race"))

    def test_quick_runs_two_timings_of_other_shapes_and_one_of_strict(self):
        _, runs = judged(lambda *_: Outcome("silent"))
        self.assertEqual(runs, [(0, "eager", "all"), (0, "late", "all"), (0, "random", "all"), (1, "late", "all"),
                                (1, "random", "all"),
                                (0, "eager", "all,strict"), (1, "eager", "all,strict")])
        self.assertEqual(len(judged(lambda *_: Outcome("silent"), is_quick=False)[1]), 10)

    def test_one_that_never_ends_is_run_once(self):
        result, runs = judged(lambda *_: Outcome("slow"))
        self.assertEqual((result.verdict, result.text, len(runs)), ("missed", "never ends", 1))

    def test_survivors(self):
        self.assertEqual(judged(lambda *_: Outcome("silent"))[0].verdict, "missed")
        result, _ = judged(lambda s, timing, c: Outcome("wrong" if timing == "late" else "silent"))
        self.assertEqual(result.verdict, "values")

    def test_listed_ones_cost_little_and_are_called_what_the_list_says(self):
        entry = known.Entry("equivalent", 5, "all lanes elect*", at=["*elect*"], because="lanes do the same")
        result, runs = judged(lambda *_: Outcome("silent"), [entry])
        self.assertEqual(runs, [(0, "eager", "all"), (0, "eager", "all,strict")])
        listed = result.listed([entry])
        self.assertEqual((listed.verdict, listed.because), ("equivalent", "known.txt:5: lanes do the same"))
        self.assertEqual(result.listed([]).verdict, "missed")

    def test_a_listed_one_that_strict_names_is_called_so(self):
        entry = known.Entry("equivalent", 5, "all lanes elect*", at=["*elect*"], because="lanes do the same")
        result, _ = judged(lambda *run: Outcome("named" if "strict" in run[2] else "silent", "strict"), [entry])
        self.assertEqual(result.listed([entry]).verdict, "strict")


class KnownList(unittest.TestCase):
    def read(self, text):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "known.txt"
            file.write_text(text)
            return known.read(file)

    def test_the_list_of_the_repository_is_well_formed(self):
        names = [case.name for case in CASES]
        for entry in known.read():
            for word in entry.kernels.split():
                self.assertTrue(any(known.like(word, name) for name in names), f"known.txt:{entry.line}: {word}")

    def test_patterns(self):
        entry, = self.read("# why\nmissed  delete bar.sync\n  kernels k5 stage_*\n  at  *full[s]*\n  at  b\n"
                           "  because  nobody\n    looks\n")
        self.assertEqual(entry.because, "nobody looks")
        self.assertTrue(entry.fits("stage_c", "delete bar.sync", "k.cu: full[s].wait();"))
        self.assertFalse(entry.fits("k6", "delete bar.sync", "b"))
        self.assertFalse(entry.fits("k5", "delete bar.sync.aligned", "b"))
        self.assertFalse(entry.fits("k5", "delete bar.sync", "fulls"))

    def test_mistakes_name_their_line(self):
        for text, message in (("missing x\n", ":1: 'missing' is no class"), ("missed x\n at y\n", ":1: no reason"),
                              ("missed x\n when y\n", ":2: 'when'")):
            with self.assertRaisesRegex(ValueError, message):
                self.read(text)


def result(kernel, verdict, kind="expect_tx"):
    return judge.Result(kernel, 1, kind, "delete", "op", "place", "source", verdict=verdict)


class OlderLogs(unittest.TestCase):
    def test_only_what_was_named_is_taken_over_and_of_the_same_text(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "old.jsonl"
            log = mutate.Log(path, "library", {"expect_tx": 3})
            for kernel, verdict in (("k3", "named"), ("k5", "missed"), ("k6", "elsewhere")):
                log.add(result(kernel, verdict))
            older = mutate.named_in([path])
        mutant = result("k3", "")
        self.assertEqual(sorted(r.kernel for r in older.values()), ["k3", "k6"])
        self.assertEqual(older[mutant.name, mutant.module].verdict, "named")
        self.assertNotIn((mutant.name, "another text"), older)


class Tables(unittest.TestCase):
    RESULTS = [result("k3", "named"), result("k3", "equivalent"), result("stage_b", "elsewhere"),
               result("stage_b", "strict"), result("stage_b", "missed", "tcgen05.fence")]

    def test_score(self):
        self.assertEqual(table.score(self.RESULTS), (2, 4))
        self.assertEqual(table.score_lines(self.RESULTS)[1:3],
                         [["`all`, one small shape a kernel", "25.0 %", "100.0 %", "0.0 %"],
                          ["`all`, the other shapes too", "50.0 %", "100.0 %", "33.3 %"]])

    def test_a_sample_of_each_kind_stands_for_all_of_it(self):
        """100 waits of which 2 of 4 are named, and all of 10 fences: 60 of 110, +- 196 sqrt(100 96 / 4 / 3 s2)."""
        drawn = [result("k3", verdict, "waits") for verdict in ("named", "named", "missed", "strict")]
        drawn += [result("k3", "named", "fences")] * 10
        sample = table.Sample({"waits": 100, "fences": 10}, {"waits": 4, "fences": 10})
        share, error = sample.share(drawn, ("named",))
        self.assertAlmostEqual(share, 60 / 110)
        self.assertAlmostEqual(error, (100 * 96 / 4 / 3) ** 0.5 / 110)
        line = table.score_lines(drawn, {"waits": 100, "fences": 10})[1]
        self.assertEqual(line[1:], ["54.5 % +- 50.4"] * 2 + ["-"])

    def test_nothing_is_certain_of_what_was_not_drawn(self):
        drawn = [result("k3", "named", "waits")] * 4
        share, error = table.Sample({"waits": 100}, {"waits": 4}).share(drawn, ("named",))
        self.assertEqual(share, 1)
        self.assertGreater(error, 0)
        self.assertEqual(table.Sample({"waits": 4}, {"waits": 4}).share(drawn, ("named",)), (1, 0))

    def test_markdown(self):
        text = table.markdown(self.RESULTS)
        self.assertIn("\n| K3 | 2 | 1 |  |  |  |  |  | 1 |  |\n", text)
        self.assertIn("\n| **all** | **5** |", text)
        self.assertNotIn("K5", text)

    def test_survivors_that_are_not_listed_fail(self):
        args = types.SimpleNamespace(markdown=False, survivors=False, sample=9, kernel=[], kind="*", places=False)
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            self.assertEqual(mutate.print_results(args, self.RESULTS[:2]), 0)
            self.assertEqual(mutate.print_results(args, self.RESULTS), 1)
        self.assertIn("missed: stage_b:1:delete", said.getvalue())
        self.assertIn("python3 tools/mutate.py --show stage_b:1:delete", said.getvalue())


if __name__ == "__main__":
    unittest.main()
