"""The pictures of docs/08-wgmma.md, and what the page refers to."""

import pathlib
import re
import sys
import unittest
import xml.etree.ElementTree as xml

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import draw_wgmma  # noqa: E402


class Pictures(unittest.TestCase):
    def test_committed_ones_are_those_of_the_script(self):
        for name, draw in draw_wgmma.PICTURES.items():
            self.assertEqual((ROOT / "docs/images" / name).read_text(), draw().svg(), "run tools/draw_wgmma.py")

    def test_they_are_svg_in_light_and_dark_that_needs_nothing_else(self):
        for name, draw in draw_wgmma.PICTURES.items():
            text = draw().svg()
            self.assertTrue(xml.fromstring(text).tag.endswith("svg"), name)
            self.assertIn("prefers-color-scheme: dark", text)
            self.assertNotRegex(text, r"var\(|<script|href")

    def test_nothing_lies_outside(self):
        for name, draw in draw_wgmma.PICTURES.items():
            picture = draw()
            box = r"<rect class='\S+ edge' x='(\S+)' y='(\S+)' width='(\S+)' height='(\S+)'"
            for x, y, w, h in re.findall(box, picture.svg()):
                self.assertLessEqual(float(x) + float(w), picture.width, name)
                self.assertLessEqual(float(y) + float(h), picture.height, name)

    def test_the_page_names_programs_that_are_found_by_that_check(self):
        page = (ROOT / "docs/08-wgmma.md").read_text()
        rows = re.findall(r"^\| [^|]+ \| (`\w+`(?:, `\w+`)*) \| (`\w+\.ptx`(?:, `\w+\.ptx`)*) \|$", page, re.M)
        self.assertEqual(10, len(rows))
        for checks, programs in rows:
            named = set(re.findall(r"`(\w+)`", checks))
            found = {re.search(r"^// check: (\w+)", (ROOT / "tests/ptx/bad" / program).read_text(), re.M)[1]
                     for program in re.findall(r"`(\w+\.ptx)`", programs)}
            self.assertEqual(named, found)

    def test_links_lead_somewhere(self):
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", (ROOT / "docs/08-wgmma.md").read_text()):
            self.assertTrue((ROOT / "docs" / target).exists(), target)


if __name__ == "__main__":
    unittest.main()
