#!/usr/bin/env python3
"""Predicts the logs bench/results/*-predicted-*.json anew, by `tilewright bench timing`, and from them the ranges
in src/bench/timing/recorded_errors.h, the pictures docs/images/predicted-*.svg and the tables of
docs/12-predicted-times.md. Needs a build and no GPU.

    tools/make_predicted_times.py                          all logs, one after the other
    tools/make_predicted_times.py --only linear b200       these; b200:linear is one part of a log
    tools/make_predicted_times.py --list                   what there is, and how long each took
    tools/make_predicted_times.py --check                  which are older than what they were predicted from
    tools/make_predicted_times.py --tables                 tables, pictures and ranges from the logs as they are

A log says what it is made from ("made_from"): a digest of the model's sources and of what draws the operands, and
one of the PTX of its kernels, without lines that name source files. --check exits with 1 if one is older, or says
nothing. The tables are written when a run ends, and also if some of it failed. recorded_errors.h is source: build
once more before ranges are predicted that have the new errors.

Logs of public kernels need more and are not made here: predicted-public-b200.json Triton,
predicted-public-h200.json their sources (bench/public_times.py).
"""

import argparse
import datetime
import hashlib
import json
import pathlib
import re
import subprocess
import sys
import time

import draw_times

ROOT = pathlib.Path(__file__).resolve().parent.parent
LOGS = ROOT / "bench/results"
ERRORS = ROOT / "src/bench/timing/recorded_errors.h"
# What decides a prediction besides the kernels: the model, what is counted for it, and the operands.
MODEL = ("src/sim/time", "src/sim/model", "src/sim/report/access_cost.cpp", "src/sim/report/prediction.cpp",
         "src/bench/timing/operators.cpp", "src/bench/timing/experts.cpp", "src/bench/timing/model_parts.cpp")
POINTS_OF_B200 = ("src/bench/timing/blackwell_points.cpp",)

# The rungs of the ladder: of what lies in attention/ the logs have no other kernels.
LADDER = ("attention/k[1-6]_*", "attention/forward/k6_forward")
# Logs of an H200, options of `bench timing`, folders of its kernels, or files without their endings.
H200 = {
    "attention": (["2026-11-28-attention-timed-h200.json"], ["--lengths", "512"], LADDER),
    "long": (["2026-11-28-attention-timed-h200.json", "2026-11-28-attention-long-timed-h200.json"],
             ["--lengths", "1024,2048,4096,8192"], LADDER),
    "decode": (["2026-11-28-decode-timed-h200.json", "2026-11-28-decode-timed-r16-tma-h200.json",
                "2026-11-28-decode-timed-r64-h200.json"], ["--most-us", "100"], ("attention/decode",)),
    "sparse": (["2026-11-28-sparse-code-timed-h200.json",
                "2026-11-28-sparse-code-timed-kernels-h200.json"],
               ["--most-us", "115"], ("sparse_attention",)),
    "indexer": (["2026-11-28-indexer-timed-h200.json"], ["--most-us", "50"],
                ("sparse_attention/indexer",)),
    "moe": (["2026-11-28-moe-timed-h200.json"], ["--rows", "1,8", "--kernels", "direct,band", "--sample", "4"],
            ("moe", "linear")),
    "linear": (["2026-11-28-linear-timed-h200.json"], ["--rows", "64"], ("linear", "quantize")),
    # More shapes at which several kernels were measured: what the choice of one costs.
    "choices-linear": (["2026-11-28-linear-timed-h200.json"], ["--rows", "16", "--sample", "4"],
                       ("linear", "quantize")),
}
# Parts of `bench timing --b200`, and folders of their kernels.
B200 = {
    "attention": ("attention_sm100",), "pages": ("attention_sm100/pages",),
    "linear": ("linear", "quantize", "moe"), "block-scaled": ("linear",), "quantize": ("quantize",),
    "decode": ("attention_sm100/decode", "attention/decode"),
    "sparse": ("sparse_attention",), "latent": ("sparse_attention",), "indexer": ("sparse_attention",),
    "experts": ("moe", "linear"), "model": ("sparse_attention/cache", "model"),
}
B200_SAMPLE = 4  # clusters of a launch: persistent kernels run alike in all, and a point stays below a minute


def names():
    return [*H200, *(f"b200:{part}" for part in B200)]


def path_of(name):
    """The newest log of that name, or today's: numbers change, links to it stay."""
    found = sorted(LOGS.glob(f"????-??-??-predicted-{name}.json"))
    return found[-1] if found else LOGS / f"{datetime.date.today()}-predicted-{name}.json"


def digest(paths, lines_of=lambda path: path.read_text().splitlines()):
    state = hashlib.sha256()
    for path in sorted(paths):
        state.update(path.name.encode())
        for line in lines_of(path):
            state.update(line.encode() + b"\n")
    return state.hexdigest()[:16]


def model_digest(is_b200):
    paths = []
    for name in (*MODEL, *(POINTS_OF_B200 if is_b200 else ())):
        path = ROOT / name
        paths += [p for p in path.iterdir() if p.suffix in (".h", ".cpp")] if path.is_dir() else [path]
    return digest(paths)


def ptx_lines(path):
    """Without what differs between two builds of the same kernel: names and lines of source files."""
    return (line for line in path.read_text().splitlines() if not re.match(r"\s*(\.file|\.loc|//|$)", line))


def kernels_digest(build, folders, is_b200):
    """None without a build."""
    target = "sm_100f" if is_b200 else "sm_90a"
    paths = [p for folder in folders for end in (f"/**/*.{target}.ptx", f".{target}.ptx")
             for p in (build / "kernels").glob(folder + end)]
    return digest(paths, ptx_lines) if paths else None


def made_from(name, build):
    is_b200 = name.startswith("b200:")
    folders = B200[name.removeprefix("b200:")] if is_b200 else H200[name][2]
    return {"model": model_digest(is_b200), "kernels": kernels_digest(build, folders, is_b200)}


def read_log(name):
    path = path_of(name)
    return json.loads(path.read_text()) if path.exists() else {}


def record_of(name):
    """What the log of that name says that it was made from, or {}."""
    if name.startswith("b200:"):
        return read_log("b200").get("made_from", {}).get(name.removeprefix("b200:"), {})
    return read_log(name).get("made_from", {})


def state_of(name, build):
    record, now = record_of(name), made_from(name, build)
    if not record:
        return "says nothing of what it was made from"
    if now["kernels"] is None:
        return f"there is no PTX in {build}: build first"
    older = [what for what in ("model", "kernels") if record.get(what) != now[what]]
    return f"is older than the {' and the '.join(older)}" if older else ""


def predict(name, build, limit):
    """What one run of `bench timing` prints, as JSON; how long it took. Raises RuntimeError with its message."""
    command = [str(build / "bin/tilewright"), "--json", "bench", "timing"]
    if name.startswith("b200:"):
        command += ["--b200", "--sample", str(B200_SAMPLE), "--parts", name.removeprefix("b200:")]
    else:
        logs, options, _ = H200[name]
        command += [*(str(LOGS / log) for log in logs), *options]
    began = time.monotonic()
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"took more than {limit} s; see --limit") from None
    try:
        result = json.loads(done.stdout)
    except ValueError:
        result = {}
    if done.returncode != 0 or "points" not in result:
        raise RuntimeError(f"{' '.join(command)}: {done.stdout.strip() or done.stderr.strip()}")
    return result, time.monotonic() - began


def compact(result):
    """Without digits that say nothing."""
    if isinstance(result, float):
        return float(f"{result:.7g}")
    if isinstance(result, dict):
        return {key: compact(value) for key, value in result.items()}
    return [compact(value) for value in result] if isinstance(result, list) else result


def write_log(name, result, seconds, build):
    record = made_from(name, build) | {"seconds": round(seconds, 1)}
    result = compact(result)
    if not name.startswith("b200:"):
        text = {**result, "made_from": record}
    else:
        part, old = name.removeprefix("b200:"), read_log("b200")
        points = {p: [x for x in old.get("points", []) if x.get("part") == p] for p in B200}
        points[part] = result["points"]
        text = {"device": "b200", "sample": result["sample"],
                "points": [point for some in points.values() for point in some],
                "made_from": old.get("made_from", {}) | {part: record}}
    path = path_of(name.partition(":")[0])
    path.write_text(json.dumps(text, indent=1, sort_keys=True) + "\n")
    return path


def errors_table(logs):
    """recorded_errors.h: quantiles of each family's errors."""
    families = {family: [p["error"] for p in draw_times.points_of(log)] for family, log in logs.items()}
    families["all"] = [error for errors in families.values() for error in errors]
    rows = []
    for family, errors in families.items():
        low, high = draw_times.range_of(errors)
        rows.append(f'    {{"{family}", {len(errors)}, {low:.3f}, {high:.3f}}},')
    return "\n".join(["// Written by tools/make_predicted_times.py from bench/results/*-predicted-*.json: see "
                      "ranges.h.", "#pragma once", "", '#include "bench/timing/ranges.h"', "",
                      "namespace tilewright::cli {", "",
                      "// clang-format off", "inline constexpr RecordedErrors kRecordedErrors[] = {", *rows, "};",
                      "// clang-format on", "", "}  // namespace tilewright::cli", ""])


def write_tables():
    draw_times.main()
    text = errors_table(draw_times.read_logs())
    if not ERRORS.exists() or ERRORS.read_text() != text:
        ERRORS.write_text(text)
        print(f"{ERRORS.relative_to(ROOT)} has new errors: build once more", file=sys.stderr)


def chosen(only):
    all_names = names()
    if not only:
        return all_names
    out = []
    for wanted in only:
        found = [n for n in all_names if n == wanted or n.partition(":")[0] == wanted]
        if not found:
            sys.exit(f"make_predicted_times: there is no {wanted}; expected of {', '.join(all_names)}, or b200")
        out += found
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", metavar="NAME", default=[])
    parser.add_argument("--stale", action="store_true", help="only those that --check names")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--tables", action="store_true")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--limit", type=float, default=3600, help="seconds of one run")
    args = parser.parse_args()
    wanted = chosen(args.only)
    if args.list:
        for name in wanted:
            seconds = record_of(name).get("seconds")
            took = f"{seconds:8.1f} s" if seconds is not None else "         -"
            print(f"{name:20}{took}  {state_of(name, args.build) or 'up to date'}")
        return 0
    stale = [name for name in wanted if state_of(name, args.build)]
    if args.check:
        for name in stale:
            print(f"{name} {state_of(name, args.build)}")
        print(f"make_predicted_times: {len(wanted)} logs and parts, {len(stale)} to be made again")
        return 1 if stale else 0
    failed = 0
    if not args.tables:
        for name in stale if args.stale else wanted:
            try:
                result, seconds = predict(name, args.build, args.limit)
            except RuntimeError as error:
                print(f"{name}: {error}", file=sys.stderr)
                failed += 1
                continue
            path = write_log(name, result, seconds, args.build)
            print(f"{name:20}{seconds:8.1f} s  {len(result['points'])} points, {path.relative_to(ROOT)}",
                  flush=True)
    write_tables()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
