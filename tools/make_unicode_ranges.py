#!/usr/bin/env python3
"""Writes src/tokenizer/unicode_ranges.h: the classes of characters that the patterns of the tokenizer ask for.

They are those of the library `tokenizers` (0.23, Unicode 16.0): its regular expressions are asked about every
character. A table of another version of Unicode would cut texts with newer letters at other places.

    tools/make_unicode_ranges.py [--check]
"""

import sys

from generated_header import write_or_check
from tokenizers import Regex, pre_tokenizers

HEADER = "src/tokenizer/unicode_ranges.h"
# Numbers as in char_class.h; a later row wins.
CLASSES = [(1, r"\p{L}"), (2, r"\p{M}"), (3, r"\p{N}"), (4, r"[\p{P}\p{S}]"), (5, r"\s"), (6, r"[\r\n]")]
END = 0x110000


def classes_of_all():
    codes = [code for code in range(END) if not 0xD800 <= code < 0xE000]
    text = "".join(map(chr, codes))
    classes = [0] * END
    for number, pattern in CLASSES:
        inside = [True] * len(codes)
        splitter = pre_tokenizers.Split(Regex(pattern), "removed")
        for _, (begin, end) in splitter.pre_tokenize_str(text):
            inside[begin:end] = [False] * (end - begin)
        for code, is_in in zip(codes, inside):
            if is_in:
                classes[code] = number
    return classes


def header():
    classes = classes_of_all()
    firsts = [code for code in range(END) if code == 0 or classes[code] != classes[code - 1]]
    words = [f"0x{code << 3 | classes[code]:06x}," for code in firsts]
    rows = [" ".join(words[i:i + 9]) for i in range(0, len(words), 9)]
    lines = "\n".join(f"    {row}" for row in rows)
    return f"""\
// Classes of characters, Unicode 16.0; made by tools/make_unicode_ranges.py, do not edit.
#pragma once

#include <cstdint>

namespace tilewright::tokenizer {{

/// The first code of a range times 8, plus its CharClass; it ends where the next begins.
// clang-format off
inline constexpr std::uint32_t kUnicodeRanges[] = {{
{lines}
}};
// clang-format on

}}  // namespace tilewright::tokenizer
"""


if __name__ == "__main__":
    sys.exit(write_or_check(__doc__, __file__, HEADER, header()))
