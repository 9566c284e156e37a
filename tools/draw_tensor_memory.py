#!/usr/bin/env python3
"""Draws who has which columns of Tensor Memory: docs/images/tensor-memory-*.svg.

    tools/draw_tensor_memory.py [FOLDER]

First columns and widths are the constants of the kernels: a plan names the files that define them, and
expressions over those names. A name that is gone, or columns that overlap or leave the allocation, end
the program.
"""

import argparse
import pathlib
import re
import sys

from draw_wgmma import Picture

ROOT = pathlib.Path(__file__).resolve().parent.parent
KERNELS = ROOT / "src/kernels"
COLUMNS, LANES = 512, 128
NAMES = {"packed_columns": lambda elems: elems // 2}


class Constants:
    """Integer constants that are defined in C++ files, evaluated when they are asked for."""

    def __init__(self, files, given):
        self.given = dict(given)
        self.text = {}
        for file in files:
            code = re.sub(r"//[^\n]*", "", (KERNELS / file).read_text())
            for statement in re.findall(r"constexpr\s+(?:int|std::u?int32_t)\s+(k\w+\s*=[^;{]*);", code):
                for name, value in re.findall(r"(k\w+)\s*=\s*((?:\([^()]*\)|[^,()])*)", statement):
                    self.text.setdefault(name, value.strip())

    def value(self, expression):
        if isinstance(expression, int):
            return expression
        expression = re.sub(r"\b(?:\w+::)+", "", expression).replace("/", "//")
        names = {name: self.named(name) for name in set(re.findall(r"\b[kA-Z]\w*", expression))}
        return int(eval(expression, {"__builtins__": {}}, {**NAMES, **names}))

    def named(self, name):
        if name in self.given:
            return self.given[name]
        if name not in self.text:
            sys.exit(f"draw_tensor_memory: no constant {name} in the files of the plan")
        return self.value(self.text[name])


class Plan:
    """`parts`: what, class of its colour, first column, number of columns."""

    def __init__(self, title, files, given, allocated, parts):
        self.title, self.allocated = title, allocated
        self.constants = Constants(files, given)
        self.parts = [(what, kind, self.constants.value(first), self.constants.value(count))
                      for what, kind, first, count in parts]
        self.allocated = self.constants.value(allocated)
        self.check()

    def check(self):
        end = 0
        for what, _, first, count in sorted(self.parts, key=lambda part: part[2]):
            if first < end or first + count > self.allocated:
                sys.exit(f"draw_tensor_memory: {self.title}: {what} has columns {first} to {first + count - 1}; "
                         f"the one before ends at {end}, the allocation at {self.allocated}")
            end = first + count


SCORES, OPERAND, RESULTS, QUERIES = "w0", "w1", "w3", "w2"
TENSOR = "attention_sm100/one_tile.h"
PAIR = "sparse_attention/pair/shared.h"
ROWS = ["sparse_attention/decode.h", "../formats/kv_page.h"]
INDEXER = ["sparse_attention/indexer/sm100/shared.h", "sparse_attention/indexer/sm100/sm100_indexer_logits.h"]
PICTURES = {
    "attention": ("Tensor Memory of the attention kernels", [
        Plan("sm100_c, head_dim 128: one tile of scores, its probabilities beside it", [TENSOR], {"Keys": 128},
             512, [
            ("S, f32", SCORES, "kScores", "Keys"),
            ("P, 16 bits", OPERAND, "kOperand", "packed_columns(Keys)"),
            ("O, f32", RESULTS, "kResults", 128)]),
        Plan("sm100_f, head_dim 256: a pair of CTAs, two tiles, P over S", ["attention_sm100/stage_f_cta_pair.cu"],
             {"HeadDim": 256, "kLanesOfRow": 1, "kOwnKeys": 128}, 512, [
            ("S and P, tile 0", SCORES, 0, "kOwnKeys"), ("S and P, tile 1", OPERAND, "kOwnKeys", "kOwnKeys"),
            ("O, f32", RESULTS, "kResults", "kResultColumns")]),
        Plan("stage G, head_dim 512: 64 heads a CTA of a pair, dims 256 to 511 of O in lanes 64 to 127",
             ["attention_sm100/stage_g_paged_pair.cu"], {"kHeadDim": 512, "kKeys": 64}, "kColumns", [
            ("S 0", SCORES, 0, "kScores"), ("S 1", OPERAND, "kScores", "kScores"),
            ("O, f32", RESULTS, "kResults", "kHeadDim / 2"),
            ("Q, six boxes of eight", QUERIES, "kHeld", "kHeldBoxes * 32")]),
    ]),
    "dsv4": ("Tensor Memory of DeepSeek-V4's kernels", [
        Plan("pair, pair_tiles: lanes 0..63 are the rows with dimensions 0..255, lanes 64..127 with 256..511",
             [PAIR, *ROWS], {"Dims": 512}, "kPairColumns", [
            ("S, P 0", SCORES, 0, "kScores"), ("S, P 1", OPERAND, "kScores", "kScores"),
            ("Q, 16 bits", QUERIES, "kQueries", "kPairResults - kQueries"),
            ("O, f32", RESULTS, "kPairResults", "kPairColumns - kPairResults")]),
        Plan("the same for rows of 576: S 0 and S 1 share columns 48..63; P 0 is in 0..31, P 1 in 80..111",
             [PAIR, *ROWS], {"Dims": 576}, "kPairColumns", [
            ("S, P 0", SCORES, 0, "kScores"), ("+", QUERIES, "kScores", "kSparseBlockKeys - kScores"),
            ("S, P 1", OPERAND, "kSparseBlockKeys", "kScores"),
            ("Q, 16 bits", QUERIES, "kQueries", "kPairResults - kQueries"),
            ("O, f32", RESULTS, "kPairResults", "kPairColumns - kPairResults")]),
        Plan("indexer, e4m3: 128 keys by two tokens of 64 heads, four times; four tokens take two", INDEXER,
             {"kColumns": 128}, 512, [
            ("products 0, f32", SCORES, 0, "kColumns"), ("products 1, f32", OPERAND, "kColumns", "kColumns"),
            ("products 2, f32", SCORES, "2 * kColumns", "kColumns"),
            ("products 3, f32", OPERAND, "3 * kColumns", "kColumns")]),
        Plan("indexer, MXFP4: two tokens, three times; then scales of queries and of keys", INDEXER,
             {"kColumns": 128}, 512, [
            ("products 0", SCORES, 0, "kColumns"), ("products 1", OPERAND, "kColumns", "kColumns"),
            ("products 2", RESULTS, "2 * kColumns", "kColumns"),
            ("q", QUERIES, "kQueryScales", "4 * kScaleColumns"),
            ("k", SCORES, "kKeyScales", "kTensorIndexerMaxStages * kScaleColumns")]),
    ]),
}


def draw(heading, plans):
    scale, left, bar, step = 1.5, 20, 56, 118
    picture = Picture(int(2 * left + COLUMNS * scale), 74 + step * len(plans), heading)
    picture.text(left, 56, f"{LANES} lanes by {COLUMNS} columns of 32 bits; numbers are columns", "note")
    for i, plan in enumerate(plans):
        top = 92 + step * i
        picture.text(left, top, plan.title, "name")
        picture.box(left, top + 10, plan.allocated * scale, bar, "field")
        for what, kind, first, count in plan.parts:
            picture.box(left + first * scale, top + 10, count * scale, bar, kind)
            middle = left + (first + count / 2) * scale
            words = what if len(what) * 6.4 < count * scale else what.split(",")[0]
            picture.text(middle, top + 34, words, "", "middle")
            columns = f"{first}..{first + count - 1}" if count > 31 else str(first)
            picture.text(middle, top + 52, columns, "note", "middle")
    return picture.svg()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("folder", nargs="?", type=pathlib.Path, default=ROOT / "docs/images")
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    for name, (heading, plans) in PICTURES.items():
        (folder / f"tensor-memory-{name}.svg").write_text(draw(heading, plans))


if __name__ == "__main__":
    main()
