"""Width of Markdown: finds paragraphs and list items with lines that are too long, and breaks them again.

Tables, code, headings, HTML, quotes, link definitions and whatever cannot be broken stay as they are. Only a
block that is too wide is broken again, so that a change of a sentence is a change of its paragraph. What a reader
sees does not change: no line begins with what Markdown would take for a list, a heading, a quote or a table.
"""

import re

COLUMNS = 100
FENCE = re.compile(r" {0,3}(```|~~~)")
ITEM = re.compile(r"(\s*)([-*+]|\d+[.)])(\s+)(?=\S)")
OTHER = re.compile(r"\s*(#{1,6}(\s|$)|>|\||<|\[[^\]]+\]:\s|(?:[-*_]\s*){3,}$|=+\s*$|-+\s*$)")
# What would begin something else at the beginning of a line.
SPECIAL = re.compile(r"(?:[-*+]|\d+[.)]|#{1,6}|=+|-+|[|<>~`]{3,})$|[>|<]|\[[^\]]+\]:|```|~~~")
# A word, with short code spans whole: a line that ends inside of one is hard to read and to search for.
WORD = re.compile(r"(?:`+[^`]+`+|[^\s`]|`)+")
LONGEST_WHOLE_WORD = 60


def words_of(text):
    """Words between which a line may be broken."""
    words = []
    whole = [word.split() if len(word) > LONGEST_WHOLE_WORD else [word] for word in WORD.findall(text)]
    for word in (word for part in whole for word in part):
        if words and SPECIAL.match(word):
            words[-1] += " " + word
        else:
            words.append(word)
    return words


def filled(first, rest, text):
    """The text as lines of at most COLUMNS, where words allow; `first` and `rest` begin the lines."""
    lines, line = [], first
    is_empty = True
    for word in words_of(text):
        if not is_empty and len(line) + 1 + len(word) > COLUMNS:
            lines.append(line)
            line, is_empty = rest, True
        line += word if is_empty else " " + word
        is_empty = False
    return [*lines, line]


class Block:
    """Lines begin to end of a text; `is_prose` if they may be broken anew, with these beginnings."""

    def __init__(self, begin, first="", rest="", is_prose=False):
        self.begin, self.end, self.first, self.rest, self.is_prose = begin, begin + 1, first, rest, is_prose


def blocks_of(lines):
    """The blocks of a document, in order; blank lines are blocks of their own."""
    blocks, fence, in_list, html = [], None, False, False
    for number, line in enumerate(lines):
        current = blocks[-1] if blocks else None
        opened = FENCE.match(line.lstrip() if in_list else line)
        if fence or opened:
            if fence and opened and opened[1] == fence:
                fence = None
            elif not fence:
                fence = opened[1]
            blocks.append(Block(number))
            continue
        html = bool(line.strip()) and (html or line.lstrip().startswith("<"))
        item = ITEM.match(line)
        indent = len(line) - len(line.lstrip())
        if not line.strip():
            blocks.append(Block(number))
        elif html or OTHER.match(line):
            blocks.append(Block(number))
            in_list = in_list and indent > 0
        elif item and (len(item[1]) < 4 or in_list):
            blocks.append(Block(number, item[0], " " * len(item[0]), True))
            in_list = True
        elif current and current.is_prose:
            current.end = number + 1
        elif indent >= 4 and not in_list or indent >= 6:
            blocks.append(Block(number))  # code
        else:
            blocks.append(Block(number, " " * indent, " " * indent, True))
            in_list = in_list and indent > 0
    return blocks


def broken_anew(lines, block):
    """The lines of a block, which fit if they can."""
    old = lines[block.begin:block.end]
    if not block.is_prose or max(map(len, old)) <= COLUMNS or any(line.endswith(("\\", "  ")) for line in old):
        return old
    text = " ".join([old[0][len(block.first):], *(line.strip() for line in old[1:])])
    return filled(block.first, block.rest, text)


def findings(text):
    """(line, what is wrong) of every block that is too wide and need not be."""
    lines = text.split("\n")
    for block in blocks_of(lines):
        old = lines[block.begin:block.end]
        if broken_anew(lines, block) != old:
            longest = max(range(len(old)), key=lambda k: len(old[k]))
            yield block.begin + longest + 1, (f"{len(old[longest])} columns of Markdown, at most {COLUMNS}; "
                                              "tools/check_format.py --fix breaks the paragraph")


def fixed(text):
    lines = text.split("\n")
    return "\n".join(line for block in blocks_of(lines) for line in broken_anew(lines, block))
