"""What the description of the C interface refuses, and what it would take to break programs."""

import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import make_c_api  # noqa: E402
from c_api import agreement, extension, header, stubs  # noqa: E402
from c_api.description import FILES, FOLDER, Description, DescriptionError  # noqa: E402


def edited(name, before, after):
    """The description with one text of a file replaced."""
    with tempfile.TemporaryDirectory() as folder:
        for file in (*FILES, "tensors"):
            text = (FOLDER / f"{file}.txt").read_text()
            if file == name:
                assert before in text, before
                text = text.replace(before, after, 1)
            (pathlib.Path(folder) / f"{file}.txt").write_text(text)
        return Description(pathlib.Path(folder))


def broken(before, after, name="linear"):
    """What an edit breaks for programs that were compiled with today's header."""
    with tempfile.NamedTemporaryFile("w", suffix=".h") as previous:
        previous.write(header.write(Description()))
        previous.flush()
        return list(agreement.with_previous(header.write(edited(name, before, after)),
                                            pathlib.Path(previous.name)))


def against_cpp(before, after, name="linear"):
    return list(agreement.with_cpp(edited(name, before, after), ROOT / "include/tilewright"))


class DescriptionTest(unittest.TestCase):
    def test_refuses_padding_at_the_end(self):
        with self.assertRaisesRegex(DescriptionError, "tw_quantize_problem ends with 4 bytes of padding"):
            edited("linear", "  flag has_encode_scale_address\n  reserved\n", "  flag has_encode_scale_address\n")

    def test_names_the_line_it_cannot_read(self):
        with self.assertRaisesRegex(DescriptionError, r"linear.txt:\d+: no kind 'i63'"):
            edited("linear", "  i64 m\n", "  i63 m\n")
        with self.assertRaisesRegex(DescriptionError, "no struct tw_nothing"):
            edited("linear", "  i64 m\n", "  struct tw_nothing m\n")
        with self.assertRaisesRegex(DescriptionError, "tw_dtype has no enumerator E9"):
            edited("linear", "dtype(BF16 E4M3)", "dtype(BF16 E9)")

    def test_files_are_up_to_date(self):
        for path, text in make_c_api.outputs(Description()).items():
            self.assertEqual(path.read_text(), text, path)


class TensorRulesTest(unittest.TestCase):
    """What Python is told of tensors, tools/c_api/tensors.txt."""

    def test_a_rule_names_what_there_is(self):
        for wrong, text in (("  nothing dtype [batch]", "no argument nothing"),
                            ("  q dtype [rows]", "no member rows"), ("  q kind [batch]", "no member kind"),
                            ("  q dtype [batch] if wide", "no member wide")):
            changed = edited("tensors", "tw_attention.run\n", f"tw_attention.run\n{wrong}\n")
            with self.subTest(wrong), self.assertRaisesRegex(DescriptionError, text):
                extension.write(changed)

    def test_a_rule_is_read(self):
        with self.assertRaisesRegex(DescriptionError, "cannot read '  q dtype batch'"):
            edited("tensors", "tw_attention.run\n", "tw_attention.run\n  q dtype batch\n")

    def test_a_new_member_is_in_the_table_and_in_the_stubs(self):
        after = "struct tw_linear_arguments"
        changed = edited("linear", after, "  appended\n  i64 more, even\n\n" + after)
        self.assertIn('{"even", KIND_I64, offsetof(tw_linear_problem, even)}', extension.write(changed))
        self.assertIn("        even: int = 0,\n", stubs.write(changed))

    def test_words_of_python_are_no_names(self):
        self.assertIn('{"in_", KIND_INPUT, offsetof(tw_quantize_arguments, in)', extension.write(Description()))
        self.assertIn("        in_: Tensor | None = None,\n", stubs.write(Description()))


class AgreementTest(unittest.TestCase):
    def test_today_agrees(self):
        self.assertEqual(broken("  i64 m\n", "  i64 m\n"), [])
        self.assertEqual(against_cpp("  i64 m\n", "  i64 m\n"), [])

    def test_members_may_be_appended_and_nothing_else(self):
        after = "struct tw_linear_arguments"
        self.assertEqual(broken(after, "  appended\n  i64 more, even\n\n" + after), [])
        self.assertIn("tw_linear_problem: int64_t m moved or is gone", broken("  i64 m\n", "  i64 n, m\n")[0])
        self.assertIn("tw_linear_problem: int64_t m moved or is gone", broken("  i64 m\n", "")[0])
        self.assertIn("moved or is gone", broken("  i64 m\n", "  f64 m\n")[0])
        self.assertIn("struct tw_moe_arguments is gone",
                      broken("struct tw_moe_arguments :", "struct tw_moe_call :")[0])

    def test_enumerators_and_functions_stay(self):
        self.assertIn("enumerator TW_NUMBER_FORMAT_FP8 is not what it is",
                      broken("  FP8 = 1 | e4m3", "  FP8 = 7")[0])
        self.assertIn("function tw_linear_flops is not what it is",
                      broken("  double flops = plan().flops | 2 m n k\n", "")[0])

    def test_members_are_those_of_cpp(self):
        self.assertEqual(against_cpp("  i64 vocab | rows of the table of TW_MOE_ROUTING_HASH\n", ""),
                         ["tw_moe_problem lacks vocab of MoeProblem; append it to tools/c_api"])
        self.assertEqual(against_cpp("  i64 m\n", "  i64 m, rows\n"),
                         ["tw_linear_problem: LinearProblem has no rows"])
        self.assertIn("tw_moe_problem: MoeProblem has the order tokens, topk",
                      against_cpp("  i64 tokens, topk\n", "  i64 topk, tokens\n")[0])
        self.assertEqual(against_cpp("struct tw_moe_problem : MoeProblem", "struct tw_moe_problem : Nothing"),
                         ["tw_moe_problem: no public header has a struct Nothing"])

    def test_older_header_is_smaller(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "older.h"
            make_c_api.write_older(Description(), path)
            older, today = (agreement.c_structs(text) for text in (path.read_text(), header.write(Description())))
            self.assertEqual(set(older), set(today))
            for name in today:
                self.assertEqual(older[name], today[name][:len(older[name])])
                self.assertLess(len(older[name]), len(today[name]))


if __name__ == "__main__":
    unittest.main()
