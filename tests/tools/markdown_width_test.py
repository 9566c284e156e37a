"""That wide paragraphs of Markdown are found and broken again, and that nothing else is touched."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import markdown_width  # noqa: E402

WIDE = " ".join(f"word{k:02}" for k in range(30))


class MarkdownWidth(unittest.TestCase):
    def unchanged(self, text):
        self.assertEqual(markdown_width.fixed(text), text)
        self.assertEqual(list(markdown_width.findings(text)), [])

    def fixed(self, text):
        """What comes of a text: it fits, and a second time changes nothing."""
        self.assertEqual(len(list(markdown_width.findings(text))), 1)
        made = markdown_width.fixed(text)
        self.assertLessEqual(max(map(len, made.split("\n"))), 100)
        self.unchanged(made)
        self.assertEqual(made.split(), text.split())
        return made.split("\n")

    def test_a_paragraph_is_broken_and_its_neighbours_are_not(self):
        lines = self.fixed(f"Short\nlines.\n\n{WIDE}\nend.\n\nAlso\nshort.\n")
        self.assertEqual(lines[:3] + lines[-4:], ["Short", "lines.", "", "", "Also", "short.", ""])

    def test_the_finding_names_the_line(self):
        self.assertEqual([line for line, _ in markdown_width.findings(f"a\n\nb\n{WIDE}\n")], [4])

    def test_items_keep_their_marks_and_indentation(self):
        lines = self.fixed(f"- one\n  - {WIDE}\n- two\n")
        self.assertEqual((lines[0], lines[1][:10], lines[2][:9]), ("- one", "  - word00", "    word1"))
        self.assertEqual(lines[-2], "- two")
        self.assertTrue(self.fixed(f"10. {WIDE}")[1].startswith("    word"))

    def test_lines_of_an_item_that_are_not_indented_belong_to_it(self):
        self.assertTrue(all(line.startswith("  ") for line in self.fixed(f"- {WIDE}\nmore of it")[1:]))

    def test_tables_code_headings_html_quotes_and_links_stay(self):
        for text in (f"| a | {WIDE} |", f"```\n{WIDE}\n```", f"a\n\n    {WIDE}", f"# {WIDE}", f"<p>\n{WIDE}\n</p>",
                     f"> {WIDE}", f"[name]: https://example.org/{WIDE.replace(' ', '/')}", "x" * 150,
                     f"- item\n\n  ```\n  {WIDE}\n  ```\n", f"{WIDE}\\\nend"):
            self.unchanged(text)

    def test_prose_after_code_is_prose_again(self):
        self.assertEqual(self.fixed(f"```\ncode\n```\n{WIDE}\n")[:3], ["```", "code", "```"])

    def test_no_line_begins_with_a_mark(self):
        for mark in ("-", "+", "*", "1.", "12)", "#", ">", "|", "=", "---", "```"):
            for width in range(80, 101):
                text = f"{'x' * width} {mark} {WIDE}"
                for line in markdown_width.fixed(text).split("\n")[1:]:
                    self.assertFalse(line.startswith(mark + " "), line)

    def test_code_within_a_line_is_kept_whole(self):
        lines = self.fixed(f"{'x ' * 47}`some code in here` {WIDE}")
        self.assertEqual(sum("`some code in here`" in line for line in lines), 1)


if __name__ == "__main__":
    unittest.main()
