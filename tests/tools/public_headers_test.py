"""The public headers have one word for one notion."""

import pathlib
import re
import unittest

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "include/tilewright"
ENUM = re.compile(r"\benum class (\w+)(?: : [\w:]+)? \{(.*?)\};", re.S)
GONE = ("WeightFormat", "KvCacheFormat", "IndexerFormat", "Fp8ScaleKind", "DecodeDescale", "ActivationScales",
        "keeps_schedule", "CacheStrides")


def without_comments(text):
    return re.sub(r"/\*.*?\*/", "", re.sub(r"//[^\n]*", "", text), flags=re.S)


def enums(text):
    """name -> enumerators."""
    return {name: tuple(re.sub(r"\s*=.*", "", row.strip()) for row in body.split(",") if row.strip())
            for name, body in ENUM.findall(without_comments(text))}


def alike(found):
    """Pairs of enumerations that say the same, in whatever order."""
    names = sorted(found)
    return [(a, b) for i, a in enumerate(names) for b in names[i + 1:] if set(found[a]) == set(found[b])]


class PublicHeadersTest(unittest.TestCase):
    def setUp(self):
        self.texts = {path.name: path.read_text() for path in sorted(FOLDER.glob("*.h"))}

    def test_no_two_enumerations_are_alike(self):
        found = {}
        for text in self.texts.values():
            found |= enums(text)
        self.assertGreater(len(found), 12)
        self.assertEqual(found["NumberFormat"], ("kBf16", "kFp8", "kMxfp4", "kNvfp4"))
        self.assertEqual(alike(found), [])

    def test_finds_enumerations_that_are_alike(self):
        text = "enum class A { kX, kY = 3, ///< y\n};\nenum class B : int { kY, kX };\nenum class C { kX };"
        self.assertEqual(enums(text), {"A": ("kX", "kY"), "B": ("kY", "kX"), "C": ("kX",)})
        self.assertEqual(alike(enums(text)), [("A", "B")])

    def test_no_warning_is_switched_off(self):
        for name, text in self.texts.items():
            self.assertNotIn("#pragma GCC", text, name)

    def test_strides_are_one_struct(self):
        structs = [name for name, text in self.texts.items() if re.search(r"\bstruct \w*Strides \{", text)]
        self.assertEqual(structs, ["tensor.h"])

    def test_former_words_are_gone(self):
        for name, text in self.texts.items():
            for word in GONE:
                self.assertNotRegex(text, rf"\b{word}\b", name)


if __name__ == "__main__":
    unittest.main()
