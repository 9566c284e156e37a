"""The pictures and tables of docs/12-predicted-times.md, and what the page refers to."""

import pathlib
import re
import sys
import unittest
import xml.etree.ElementTree as xml

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import draw_times  # noqa: E402


class PredictedTimes(unittest.TestCase):
    def setUp(self):
        self.logs = draw_times.read_logs()

    def test_committed_pictures_and_tables_are_those_of_the_script(self):
        for name, draw in draw_times.PICTURES.items():
            committed = (ROOT / "docs/images" / name).read_text()
            self.assertEqual(committed, draw(self.logs).svg(), "run tools/draw_times.py")
        page = draw_times.PAGE.read_text()
        self.assertEqual(page, draw_times.page_of(page, self.logs), "run tools/draw_times.py")

    def test_pictures_are_svg_in_light_and_dark_that_needs_nothing_else(self):
        for path in re.findall(r"\]\((images/\S+\.svg)\)", draw_times.PAGE.read_text()):
            text = (ROOT / "docs" / path).read_text()
            self.assertTrue(xml.fromstring(text).tag.endswith("svg"), path)
            self.assertIn("prefers-color-scheme: dark", text)
            self.assertNotRegex(text, r"var\(|<script|href")

    def test_dots_lie_where_their_times_are(self):
        # A point on the dashed line is one whose times are equal; slower ones lie further right.
        log = {"points": [{"shape": "s", "kernel": k, "predicted_us": t, "measured_us": t, "error": 0} for k, t in
                          (("a", 10.0), ("b", 100.0), ("c", 1000.0))],
               "summary": {"points": 3, "mean_absolute_error": 0, "pairs": 3, "pairs_in_order": 3}}
        picture = draw_times.scatter({"attention": log}).svg()
        dots = re.findall(r"<circle class='f0' cx='(\S+)' cy='(\S+)' r='4'>", picture)
        (x0, y0), (x1, y1), (x2, y2) = [(float(x), float(y)) for x, y in dots]
        self.assertAlmostEqual(x1 - x0, x2 - x1, 1)
        self.assertAlmostEqual(x1 - x0, y0 - y1, 1)
        self.assertAlmostEqual(x2 - x1, y1 - y2, 1)

    def test_a_table_is_replaced_between_its_marks_alone(self):
        page = "a\n<!-- t: written by tools/draw_times.py -->\nold\n<!-- end of t -->\nb\n"
        self.assertEqual(draw_times.fill(page, "t", ["| 1 |"]), page.replace("old", "| 1 |"))

    def test_links_lead_somewhere(self):
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", draw_times.PAGE.read_text()):
            self.assertTrue((ROOT / "docs" / target).exists(), target)


if __name__ == "__main__":
    unittest.main()
