"""python -m tilewright.testing.peers fa3|flashmla|deepgemm|flashinfer|vllm|sglang --folder FOLDER --log FILE

FILE gets the result as JSON. FILE with the ending .jsonl gets a line as each case ends: a run that is killed
is told from it by --sum-up, and --resume goes on where it stopped.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from ._lines import Lines
from ._log import Log

SUITES = ("fa3", "flashmla", "deepgemm", "flashinfer", "vllm", "sglang")
#: Seconds that a case may take beyond the deadline before its process is ended, and between reports.
GRACE, REPORT_EVERY = 20.0, 15.0


def _parser() -> argparse.ArgumentParser:
    assert __doc__ is not None
    parser = argparse.ArgumentParser(
        prog="python -m tilewright.testing.peers", description=__doc__.partition("\n\n")[0]
    )
    parser.add_argument("suite", choices=SUITES)
    parser.add_argument("tests", nargs="*", help="of the suite, such as output, varlen, kvcache")
    parser.add_argument("--folder", type=pathlib.Path, help="of the suite; or TILEWRIGHT_PEERS/SUITE")
    parser.add_argument("--log", type=pathlib.Path, help="where the result goes, as JSON")
    parser.add_argument("--cases", action="store_true", help="list the cases and run none")
    parser.add_argument("--sample", type=int, help="so many cases, drawn by --seed")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--deadline", type=float, help="seconds from now; the rest is told")
    parser.add_argument("--jobs", type=int, default=1, help="processes that share the devices")
    parser.add_argument("--gpus", type=int, default=1, help="of the machine, over which the jobs are spread")
    parser.add_argument("--device", help="sim:h200: on the simulator, for small cases")
    parser.add_argument("--match", help="only cases whose name contains this")
    parser.add_argument("--resume", action="store_true", help="cases that the log has are not run again")
    parser.add_argument("--sum-up", action="store_true", help="of the lines that are there; run nothing")
    parser.add_argument(
        "--through",
        choices=("module", "operators"),
        default="module",
        help="fa3: our module, or our operators below the peer's own module",
    )
    parser.add_argument(
        "--as-published",
        action="store_true",
        help="fa3: kvcache waits for the device at every check, as it is written",
    )
    parser.add_argument("--plan", type=pathlib.Path, help="the cases, of a run before; made if not there")
    parser.add_argument("--shard", help=argparse.SUPPRESS)
    parser.add_argument("--lines", type=pathlib.Path, help=argparse.SUPPRESS)
    parser.add_argument("--end", type=float, default=float("inf"), help=argparse.SUPPRESS)
    return parser


def _folder(parser: argparse.ArgumentParser, options: argparse.Namespace) -> pathlib.Path:
    peers = os.environ.get("TILEWRIGHT_PEERS")
    folder: pathlib.Path | None = options.folder
    if folder is None and peers is not None:
        folder = pathlib.Path(peers) / options.suite
    if folder is None:
        parser.error("no folder with the suite: --folder FOLDER, or TILEWRIGHT_PEERS")
    if not folder.is_dir():
        parser.error(f"--folder {folder}: no such folder")
    return folder


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = _parser()
    options = parser.parse_args(arguments)
    if not options.sum_up:
        options.folder = _folder(parser, options)
    if not 1 <= options.gpus <= options.jobs:
        parser.error(f"--gpus {options.gpus}: expected 1 to --jobs {options.jobs}, a process for each GPU")
    if (options.sum_up or options.resume) and not options.log:
        parser.error("--sum-up and --resume are of a log: --log FILE")
    return options


def _gpu(gpus: int, worker: int) -> dict[str, str]:
    """The environment in which a worker has one of the GPUs for itself and its like: they go round."""
    if gpus == 1:
        return {}
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    devices = visible.split(",") if visible else [str(i) for i in range(gpus)]
    if len(devices) < gpus:
        raise SystemExit(f"--gpus {gpus}: CUDA_VISIBLE_DEVICES={visible} has {len(devices)}; name as many")
    return {"CUDA_VISIBLE_DEVICES": devices[worker % gpus]}


def _workers(options: argparse.Namespace, arguments: list[str], lines: Lines) -> None:
    """Runs every worker's share in a process of its own, and ends those that outlive the deadline."""
    command = [sys.executable, "-m", "tilewright.testing.peers", *arguments]
    if not options.plan.exists():
        from . import _suite

        _suite.plan(options)
    command += ["--lines", str(options.lines), "--end", str(options.end), "--plan", str(options.plan)]
    options.lines.with_suffix(".claims").unlink(missing_ok=True)
    processes = [
        subprocess.Popen(
            [*command, "--shard", f"{i}/{options.jobs}"],
            env={**os.environ, "OMP_NUM_THREADS": "1", **_gpu(options.gpus, i)},
            stdout=subprocess.DEVNULL,
        )
        for i in range(options.jobs)
    ]
    begin = last = time.time()
    while any(process.poll() is None for process in processes):
        time.sleep(0.2)
        now = time.time()
        if now > options.end + GRACE:
            for process in processes:
                process.kill()
        elif now > last + REPORT_EVERY:
            last = now
            print(f"{now - begin:5.0f} s: {Log.of(options.lines).progress()}", file=sys.stderr)
    for i, process in enumerate(processes):
        if process.returncode != 0:
            lines.add(lost=f"worker {i} of {options.jobs} ended with {process.returncode}")


def _run(options: argparse.Namespace, arguments: list[str]) -> None:
    lines = Lines(options.lines)
    if options.jobs > 1 and options.shard is None and not options.cases:
        _workers(options, arguments, lines)
    else:
        from . import _suite  # imports torch and the suite

        _suite.run(options, lines)
    lines.close()


def main(arguments: list[str] | None = None) -> int:
    given = sys.argv[1:] if arguments is None else arguments
    begin = time.time()
    options = _options(given)
    if options.shard is not None:
        _run(options, given)
        return 0
    if options.deadline is not None:
        options.end = begin + options.deadline
    with tempfile.TemporaryDirectory() as folder:
        options.lines = (options.log or pathlib.Path(folder) / "run").with_suffix(".jsonl")
        if options.plan is None:
            options.plan = pathlib.Path(folder) / "plan.json"
        if not options.sum_up:
            if not options.resume:
                options.lines.unlink(missing_ok=True)
            Lines(options.lines).add(begin=begin)
            _run(options, given)
        log = Log.of(options.lines)
    if not options.sum_up:
        log.seconds = round(time.time() - begin, 1)
    if options.log:
        options.log.write_text(json.dumps(log.data(), indent=1) + "\n")
    print(log.text())
    return 1 if log.failures else 0


if __name__ == "__main__":
    sys.exit(main())
