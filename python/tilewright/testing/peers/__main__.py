"""python -m tilewright.testing.peers fa3|flashmla|deepgemm --folder FOLDER --log FILE"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from ._log import Log

SUITES = ("fa3", "flashmla", "deepgemm")


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tilewright.testing.peers", description=__doc__)
    parser.add_argument("suite", choices=SUITES)
    parser.add_argument("tests", nargs="*", help="of the suite, such as output, varlen, kvcache")
    parser.add_argument("--folder", type=pathlib.Path, help="of the suite; or TILEWRIGHT_PEERS/SUITE")
    parser.add_argument("--log", type=pathlib.Path, help="where the result goes, as JSON")
    parser.add_argument("--cases", action="store_true", help="list the cases and run none")
    parser.add_argument("--sample", type=int, help="so many cases, drawn by --seed")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--max-seconds", type=float, help="stop in time; the log has what remains")
    parser.add_argument("--workers", type=int, default=1, help="processes that share the device")
    parser.add_argument("--device", help="sim:h200: on the simulator, for small cases")
    parser.add_argument("--match", help="only cases whose name contains this")
    parser.add_argument(
        "--through",
        choices=("module", "operators"),
        default="module",
        help="fa3: our module, or our operators below the peer's own module",
    )
    parser.add_argument("--shard", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.folder is None:
        folder = os.environ.get("TILEWRIGHT_PEERS")
        if folder is None:
            parser.error("no folder with the suite: --folder FOLDER, or TILEWRIGHT_PEERS")
        options.folder = pathlib.Path(folder) / options.suite
    if not options.folder.is_dir():
        parser.error(f"--folder {options.folder}: no such folder")
    return options


def _workers(options: argparse.Namespace, arguments: list[str]) -> Log:
    """Runs every worker's share in a process of its own and adds up what they found."""
    with tempfile.TemporaryDirectory() as folder:
        logs = [pathlib.Path(folder) / f"{i}.json" for i in range(options.workers)]
        command = [sys.executable, "-m", "tilewright.testing.peers", *arguments]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        processes = [
            subprocess.Popen(
                [*command, "--shard", f"{i}/{options.workers}", "--log", str(log)],
                env=environment,
                stdout=subprocess.DEVNULL,
            )
            for i, log in enumerate(logs)
        ]
        for process in processes:
            try:
                process.wait(max(1.0, options.deadline + 60 - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
        whole = Log.of(options)
        for i, log in enumerate(logs):
            if log.exists():
                whole.add(json.loads(log.read_text()))
            else:
                whole.lost(f"worker {i} of {options.workers} ended with {processes[i].returncode}")
    return whole


def main(arguments: list[str] | None = None) -> int:
    given = sys.argv[1:] if arguments is None else arguments
    begin = time.monotonic()
    options = _options(given)
    options.deadline = begin + (options.max_seconds or 1e9)
    if options.workers > 1 and options.shard is None and not options.cases:
        log = _workers(options, given)
    else:
        from . import _suite  # imports torch and the suite

        log = _suite.run(options)
    log.seconds = round(time.monotonic() - begin, 1)
    if options.log:
        options.log.write_text(json.dumps(log.data(), indent=1) + "\n")
    if options.shard is None:
        print(log.text())
    return 1 if log.has_failed else 0


if __name__ == "__main__":
    sys.exit(main())
