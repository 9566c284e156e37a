"""Links of Markdown that lead nowhere: to files that are not there, and to headings that a page does not have."""

import functools
import re

LINK = re.compile(r"\]\(([^)\s]+)\)")
ELSEWHERE = re.compile(r"[a-z]+:")
CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.M | re.S)


@functools.cache
def anchors(page):
    """What may stand behind # in a link to that page, as GitHub makes it of headings."""
    found = set()
    for heading in re.findall(r"^#+ +(.*)$", page.read_text(), re.M):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
        name = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
        count = sum(other == name or re.fullmatch(rf"{re.escape(name)}-\d+", other) is not None for other in found)
        found.add(f"{name}-{count}" if count else name)
    return found


def findings(page):
    """(line, text) of each link of a page that leads nowhere. Links to other hosts are not followed."""
    text = CODE.sub(lambda code: re.sub(r"[^\n]", " ", code.group()), page.read_text())
    for number, line in enumerate(text.splitlines(), 1):
        for link in LINK.findall(line):
            if ELSEWHERE.match(link):
                continue
            path, _, anchor = link.partition("#")
            target = page.parent / path if path else page
            if not target.exists():
                yield number, f"{link} leads to no file"
            elif anchor and target.suffix == ".md" and anchor not in anchors(target):
                yield number, f"{link} leads to no heading"
