#!/usr/bin/env python3
"""Writes tests/golden/tokenizer: a small tokenizer.json of DeepSeek-V4's form, and what the library `tokenizers`
makes of texts with it; and the tokenizer of the bundled model, whose 256 tokens are bytes.

    tools/golden/make_tokenizer_golden.py            (needs tokenizers 0.23)

The tokenizer is trained here on the held-out text of the bundled model and a few sentences in other scripts.
Texts are drawn at random from what the patterns tell apart: words, digits of several scripts, Han and kana, marks,
punctuation, white space, names of added tokens, whole and cut, and any character of Unicode.
tests/python/text/tokenizer_test.py draws more of them.
"""

import json
import pathlib
import random

from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, processors,
                        trainers)

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FOLDER = ROOT / "tests/golden/tokenizer"
SEEDS = FOLDER / "seeds"  # of the fuzzer
MODEL = ROOT / "examples/models/tiny-dsv4"
TEXT = MODEL / "heldout.txt"
SENTENCES = ["Ein Kern liest jedes Byte nur einmal, und zwar für alle Köpfe.",
             "Ядро читает каждую строку кэша один раз.", "Ο πυρήνας διαβάζει κάθε γραμμή μία φορά.",
             "内核只读取每一行缓存一次,然后计算注意力。", "カーネルはキャッシュの各行を一度だけ読みます。",
             "커널은 캐시의 각 행을 한 번만 읽습니다.", "הליבה קוראת כל שורה פעם אחת.", "تقرأ النواة كل سطر مرة واحدة.",
             "कर्नेल हर पंक्ति को एक बार पढ़ता है।", "π ≈ 3.14159, ½ + ¼ = ¾, 10⁻³ s, 1,000.50 €"]
VOCAB = 1200
FEW = 290
PATTERNS = (r"\p{N}{1,3}", "[一-龥\u3040-ゟ゠-ヿ]+",
            "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+|"
            " ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+")
BEGIN, END, PAD = "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜▁pad▁｜>"
# name, special, normalized: as the real file has them
ADDED = ((BEGIN, True, False), (END, True, False), (PAD, True, False), ("<｜User｜>", False, True),
         ("<｜Assistant｜>", False, True), ("<think>", False, True), ("</think>", False, True),
         ("｜DSML｜", False, True), ("<｜image｜>", True, False), ("<｜image｜><think>", True, False))
NUM_TEXTS = 600


def untrained(model):
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(pattern), "isolated") for pattern in PATTERNS] +
        [pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    return tokenizer


def make_byte_tokenizer():
    to_visible = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    visible = {}
    for code in range(0x800):  # the 194 bytes of characters up to U+07FF; the others stand for themselves
        for byte, character in zip(chr(code).encode(), to_visible.pre_tokenize_str(chr(code))[0][0]):
            visible[byte] = character
    return untrained(models.BPE({visible.get(byte, chr(byte)): byte for byte in range(256)}, []))


def make_tokenizer(vocab=VOCAB):
    tokenizer = untrained(models.BPE())
    trainer = trainers.BpeTrainer(vocab_size=vocab, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                                  special_tokens=[BEGIN, END, PAD], show_progress=False)
    # The sentences count as much as the text: merges of several scripts.
    tokenizer.train_from_iterator([TEXT.read_text(), *SENTENCES * 20], trainer)
    for name, is_special, is_normalized in ADDED:
        token = AddedToken(name, special=is_special, normalized=is_normalized)
        (tokenizer.add_special_tokens if is_special else tokenizer.add_tokens)([token])
    return tokenizer


class TextSource:
    """Random texts; `names` are those of added tokens."""

    def __init__(self, seed, names):
        self.random = random.Random(seed)
        self.names = names
        self.words = " ".join([*SENTENCES,
                               "isn't it's don't naïve café 12345 ａｂｃ Ⅷ 〇 ㈱ ー ・ ゛ 🙂 👨‍👩‍👧 e\u0301"]).split()

    def character(self):
        draw = self.random.random
        kind = draw()
        if kind < .3:
            return chr(self.random.randrange(0x20, 0x7F))
        if kind < .4:
            return self.random.choice(" \t\n\r\x0b\x0c\x85\xa0\u2003\u3000\u2028 \u200b\u1680\x1c")
        for bound, begin, end in ((.5, 0x3000, 0x3100), (.6, 0x4E00, 0x9FFF), (.7, 0, 0x600), (.78, 0x300, 0x370)):
            if kind < bound:
                return chr(self.random.randrange(begin, end))
        if kind < .82:
            return chr(self.random.choice((0x660, 0xFF10, 0x966, 0x2160)) + self.random.randrange(10))
        while True:
            code = self.random.randrange(0x110000 if kind > .9 else 0x20000)
            if not 0xD800 <= code < 0xE000:
                return chr(code)

    def part(self):
        kind = self.random.random()
        if kind < .4:
            return self.random.choice(self.words) + self.random.choice((" ", "", "  ", "\n", " \n\n ", "\r\n"))
        if kind < .5:
            return self.random.choice(self.names)
        if kind < .6:
            name = self.random.choice(self.names)
            return name[:self.random.randrange(len(name) + 1)]
        if kind < .75:
            return self.character() * self.random.choice((1, 2, 3, 7, 50))
        return self.character()

    def text(self):
        draw = self.character if self.random.random() < .4 else self.part
        return "".join(draw() for _ in range(self.random.choice((1, 2, 3, 5, 8, 13, 30))))


def without_added(text):
    """The same tokenizer for text in which no added token is looked for."""
    file = json.loads(text)
    file["added_tokens"] = []
    return Tokenizer.from_str(json.dumps(file))


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    tokenizer = make_tokenizer()
    text = tokenizer.to_str(pretty=False)
    (FOLDER / "tokenizer.json").write_text(text + "\n")
    SEEDS.mkdir(exist_ok=True)
    (SEEDS / "few_merges.json").write_text(make_tokenizer(FEW).to_str(pretty=False) + "\n")
    (SEEDS / "words.txt").write_text("\n".join([*SENTENCES, "<think>it's\n\n  12345</think>"]) + "\n")
    (MODEL / "tokenizer.json").write_text(make_byte_tokenizer().to_str(pretty=False) + "\n")
    plain = without_added(text)
    source = TextSource(1, [name for name, _, _ in ADDED])
    cases = []
    for _ in range(NUM_TEXTS):
        given = source.text()
        ids = tokenizer.encode(given).ids
        case = {"text": given, "ids": ids, "decoded": tokenizer.decode(ids, skip_special_tokens=False)}
        if (as_text := plain.encode(given).ids) != ids:
            case["as_text"] = as_text
        if case["decoded"] == given:
            del case["decoded"]
        cases.append(case)
    ids = range(tokenizer.get_vocab_size())
    broken = [[source.random.choice(ids) for _ in range(6)] for _ in range(200)]
    golden = {"texts": cases,
              "decoded": [{"ids": each, "text": tokenizer.decode(each, skip_special_tokens=False)}
                          for each in broken]}
    (FOLDER / "texts.json").write_text(json.dumps(golden, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
