"""The reviewed list of mutants that no check has to name, or that none does: tools/mutation/known.txt."""

import dataclasses
import pathlib
import re

FILE = pathlib.Path(__file__).with_name("known.txt")
CLASSES = {"equivalent": "argued by place: the change alters nothing that can go wrong",
           "idle": "what it orders does not exist at any shape tried; left out like an equivalent one",
           "manual": "only the manual demands it, as far as anybody knows; nothing names it",
           "missed": "a real mistake that no check names yet"}


@dataclasses.dataclass
class Entry:
    """Patterns, in which * stands for any text; each of the places is one way to fit."""

    name: str  # of the class
    line: int
    change: str = "*"
    kernels: str = "*"
    at: list = dataclasses.field(default_factory=list)
    because: str = ""
    shapes: str = "first"

    def fits(self, kernel, what, place):
        return (any(like(word, kernel) for word in self.kernels.split()) and like(self.change, what)
                and any(like(pattern, place) for pattern in self.at or ["*"]))


def like(pattern, text):
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), text) is not None


def read(path=FILE):
    """Entries of the file. Errors   ValueError with the line"""
    entries, field = [], ""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        word, _, rest = line.strip().partition(" ")
        rest = rest.strip()
        if not word or word.startswith("#"):
            continue
        if not line[0].isspace():
            if word not in CLASSES:
                raise ValueError(f"{path}:{number}: {word!r} is no class; expected one of {', '.join(CLASSES)}")
            entries.append(Entry(word, number, rest or "*"))
        elif entries and word == "at":
            entries[-1].at.append(rest)
        elif entries and word in ("kernels", "shapes", "because"):
            setattr(entries[-1], word, rest)
        elif entries and field == "because":  # a reason goes on
            entries[-1].because += " " + line.strip()
            continue
        else:
            raise ValueError(f"{path}:{number}: {word!r}; expected kernels, at, shapes or because below a change")
        field = word
    for entry in entries:
        if not entry.because:
            raise ValueError(f"{path}:{entry.line}: no reason; expected a line that begins with 'because'")
    return entries


def find(entries, kernel, what, place):
    """The first entry that fits, or None."""
    return next((entry for entry in entries if entry.fits(kernel, what, place)), None)
