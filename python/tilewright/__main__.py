"""The command `tilewright`: `doctor` is of this package, everything else is the tool that it ships."""

from __future__ import annotations

import os
import pathlib
import sys


def tool() -> pathlib.Path:
    """The tool beside this package."""
    return pathlib.Path(__file__).parent / "bin/tilewright"


def main() -> int:
    arguments = sys.argv[1:]
    if arguments[:1] == ["doctor"]:
        from .doctor import main as examine
        return examine(arguments[1:])
    if not tool().exists():
        print(f"tilewright: {tool()} is missing; this package was built without the tool", file=sys.stderr)
        return 1
    os.execv(tool(), [str(tool()), *arguments])


if __name__ == "__main__":
    sys.exit(main())
