"""python -m tilewright.bench overhead [--log FILE]"""

from __future__ import annotations

import argparse
import json
import pathlib
import sys


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tilewright.bench", description=__doc__)
    parser.add_argument("what", choices=("overhead",), help="time of a call on the host")
    parser.add_argument("--log", type=pathlib.Path, help="where the table goes as JSON")
    options = parser.parse_args(arguments)
    from . import _overhead

    rows = _overhead.table()
    print(_overhead.text(rows))
    if options.log:
        options.log.write_text(json.dumps(_overhead.data(rows), indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
