import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import markdown_links  # noqa: E402


class MarkdownLinksTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def page(self, name, text):
        path = self.root / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return path

    def findings(self, text):
        return list(markdown_links.findings(self.page("docs/page.md", text)))

    def test_files_and_folders_that_are_there(self):
        self.page("code.h", "")
        self.assertEqual(self.findings("[a](../code.h), [b](..) and [c](page.md)"), [])

    def test_a_file_that_is_not_there(self):
        self.assertEqual(self.findings("\n[a](../gone.h)"), [(2, "../gone.h leads to no file")])

    def test_headings_as_github_names_them(self):
        self.page("docs/other.md", "# What `it` costs: 3 us\n## Of [a link](x)\n# Twice\n# Twice\n")
        good = "what-it-costs-3-us", "of-a-link", "twice", "twice-1"
        self.assertEqual(self.findings("\n".join(f"[a](other.md#{name})" for name in good)), [])
        self.assertEqual(self.findings("[a](other.md#twice-2)"), [(1, "other.md#twice-2 leads to no heading")])

    def test_headings_of_the_page_itself(self):
        self.assertEqual(self.findings("# One\n[a](#one)\n[b](#two)"), [(3, "#two leads to no heading")])

    def test_other_hosts_and_code_are_left_alone(self):
        self.assertEqual(self.findings("[a](https://host/x#y) `[b](gone)`\n```\n[c](gone)\n```\n"), [])


if __name__ == "__main__":
    unittest.main()
