"""`python -m tilewright.bench overhead`: what a call costs on the host, by every way there is."""

from __future__ import annotations

import argparse
import json
import pathlib
import sys

from .. import _core
from . import _objects


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tilewright.bench", description=__doc__)
    parser.add_argument("what", choices=("overhead",))
    parser.add_argument("--device", default="auto", help="such as cuda:0; or sim:h200, without kernels")
    parser.add_argument("--log", type=pathlib.Path, help="where the table goes as JSON")
    options = parser.parse_args(arguments)
    device = _core.Device(options.device)
    print(device.description)
    from . import _functions  # imports torch

    rows = [_functions.Row(what, cost) for what, cost in _objects.overhead(device)]
    rows += _functions.table(device)
    print(_functions.text(rows))
    if options.log:
        options.log.write_text(json.dumps(_functions.data(rows, device.description), indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
