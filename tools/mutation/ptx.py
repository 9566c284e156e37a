"""A PTX module as text: the lines of one kernel, and where in the source each of them comes from."""

import pathlib
import re

ENTRY = re.compile(r"^\s*(?:\.visible\s+|\.weak\s+)?\.entry\s+([\w$]+)")
FUNCTION = re.compile(r"^\s*(?:\.visible\s+|\.weak\s+)?\.func\b")
FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"([^"]*)"')
LOC = re.compile(r"^\s*\.loc\s+(\d+) (\d+) (\d+)(?:, function_name [^,]*, inlined_at (\d+) (\d+) (\d+))?")
SECTIONS = re.compile(r"^\s*\.(?:file|section)\b")


class Module:
    """The text without its other kernels, on the same lines."""

    def __init__(self, text, entry):
        self.entry = entry
        lines = text.splitlines()
        self.files = {int(m[1]): m[2] for m in map(FILE.match, lines) if m}
        names = [match and match[1] for match in map(ENTRY.match, lines)]
        if entry not in names:
            raise ValueError(f"the module has no .entry {entry}")
        is_other = False
        for index, line in enumerate(lines):
            if names[index] is not None:
                is_other = names[index] != entry
            elif is_other and (FUNCTION.match(line) or SECTIONS.match(line)):
                is_other = False
            if is_other:
                lines[index] = ""
        self.lines = lines
        self.places = self._places()

    def text(self):
        return "\n".join(self.lines) + "\n"

    def with_line(self, index, line):
        """The text in which the line of this index is another one."""
        return "\n".join([*self.lines[:index], line, *self.lines[index + 1:]]) + "\n"

    def _places(self):
        """index of a line -> ((file, line), ...), the innermost first, then where it is inlined."""
        chains, chain, places = {}, (), {}
        for index, text in enumerate(self.lines):
            match = LOC.match(text)
            if not match:
                places[index] = chain
                continue
            file, line, column, *at = (int(part) if part else 0 for part in match.groups())
            outer = chains.get(tuple(at), ((at[0], at[1]),)) if at[0] else ()
            chain = ((file, line), *outer)
            chains[file, line, column] = chain
        return places

    def register_value(self, index, register):
        """The number that the last mov before a line puts into a register; None if that is none."""
        write = re.compile(rf"^\s*(?:@\S+\s+)?\S+\s+{re.escape(register)}\s*,\s*(.*);")
        for line in reversed(self.lines[:index]):
            if match := write.match(line):
                is_number = line.strip().startswith("mov.") and re.fullmatch(r"-?\d+", match[1].strip())
                return int(match[1]) if is_number else None
        return None


class Sources:
    """Text of the lines that .loc names, by which places are called whatever line they move to."""

    def __init__(self, root):
        self.root = root
        self.texts = {}

    def _lines(self, path):
        if path not in self.texts:
            # The path is that of the machine that compiled the kernels.
            parts = pathlib.PurePath(path).parts
            inside = pathlib.Path(*parts[parts.index("src"):]) if "src" in parts else pathlib.Path(path)
            file = self.root / inside
            self.texts[path] = file.read_text().splitlines() if file.is_file() else []
        return self.texts[path]

    def describe(self, module, place):
        """'k5.cu: full.wait(phase); < k5.cu: produce(ring);', without the wrappers of instructions."""
        words = []
        for file, line in place:
            path = module.files.get(file, "?")
            lines = self._lines(path)
            text = " ".join(lines[line - 1].split()) if 0 < line <= len(lines) else f"line {line}"
            if ("/src/ptx/" in path or "/src/" not in path) and len(place) > 1:
                continue
            words.append(f"{pathlib.PurePath(path).name}: {text}")
        return " < ".join(words[:-1] or words) or "?"

    def name(self, module, place):
        """'k5_warp_specialized.cu:125 < ...' for people."""
        return " < ".join(f"{pathlib.PurePath(module.files.get(f, '?')).name}:{line}" for f, line in place)
