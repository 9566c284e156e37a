#!/usr/bin/env python3
"""How fast the simulator runs real kernels, on one core and in processor time; and, with --before, by how
much faster than another build: runs of the two alternate, so that what else the machine does meets both.

    python3 tools/sim_speed.py                                   # this build, without checks
    python3 tools/sim_speed.py --checks all --only sparse,k6
    python3 tools/sim_speed.py --before OLD/lib/sim/libcuda.so.1 --runs 5
    python3 tools/sim_speed.py --time --out log.json         # and predictions of times, see below

The processor time of a launch comes from TILEWRIGHT_SIM_TIMES; of a build that does not know it, only the
time of the whole program is compared. Instructions and FLOP come from one run with a report.

--time also runs launches of one CTA whose time is predicted, so that each of its instructions is played: what the
run of that CTA takes while it is written down, and what the prediction takes behind it.
"""

import argparse
import json
import os
import pathlib
import re
import resource
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
CASES = {
    "sparse": "sparse-attention --heads 64 --format fp8 --batch 64 --q-len 2 --window 128 --compressed 512 "
              "--device sim:h200",
    "k6": "attention --inputs normal --shape 1,8,8,2048,2048,128 --kernel k6 --device sim:h200",
    "decode": "decode --keys 16000 --batch 8 --heads 16 --kv-heads 4 --device sim:h200",
    "linear wide": "linear --m 256 --n 4096 --k 4096 --device sim:h200",
    "indexer": "indexer --heads 64 --keys 65536 --topk 512 --q-len 2 --device sim:h200",
    "sm100": "attention --inputs normal --shape 1,4,4,1024,1024,128 --kernel sm100_c --device sim:b200",
    "moe": "moe --tokens 16 --shape 8/2/512/256 --device sim:h200",
}
TIMED = {
    "k5, 8192 keys": "attention --inputs normal --shape 1,1,1,128,8192,128 --kernel k5 --device sim:h200",
    "k4.2, 4096 keys": "attention --inputs normal --shape 1,1,1,64,4096,128 --kernel k4_2 --device sim:h200",
    "k2, 512 keys": "attention --inputs normal --shape 1,1,1,64,512,64 --kernel k2 --device sim:h200",
    "sm100_e, 8192 keys": "attention --inputs normal --shape 1,1,1,256,8192,128 --kernel sm100_e "
                          "--device sim:b200",
}
PREDICTING = "(times predicted)"
TIME = re.compile(r"^sim: time\s+([0-9.]+) s\s+(\d+)\s+(.*)$", re.M)


def run(program, library, arguments, **variables):
    """Standard error and the processor time of the whole program in seconds."""
    environment = dict(os.environ, TILEWRIGHT_SIM_LIBRARY=str(library), TILEWRIGHT_SIM_THREADS="1",
                       TILEWRIGHT_SIM_TIMES="1", TILEWRIGHT_SIM_REPORT="")
    environment.update(variables)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([program, *arguments.split()], env=environment, capture_output=True, text=True,
                          check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        sys.exit(f"sim_speed: {arguments}: exit {done.returncode}\n{done.stderr[-2000:]}")
    return done.stderr, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def numbers(node, key):
    """All numbers of this name in JSON."""
    if isinstance(node, dict):
        for name, value in node.items():
            if name == key and isinstance(value, (int, float)):
                yield value
            else:
                yield from numbers(value, key)
    elif isinstance(node, list):
        for value in node:
            yield from numbers(value, key)


def counts(program, library, arguments):
    """Thread instructions and tensor FLOP of all launches: what the tool says, whose totals are the largest."""
    environment = dict(os.environ, TILEWRIGHT_SIM_LIBRARY=str(library), TILEWRIGHT_SIM_CHECK="none",
                       TILEWRIGHT_SIM_REPORT="memory")
    done = subprocess.run([program, "--json", *arguments.split()], env=environment, capture_output=True,
                          text=True, check=True)
    said = json.loads(done.stdout)
    return tuple(max(numbers(said, key), default=0) for key in ("thread_instructions", "tensor_flop"))


def predict(program, library, arguments):
    """Of a launch of one CTA whose time is predicted: thread instructions, seconds of the launch and of the
    prediction."""
    environment = dict(os.environ, TILEWRIGHT_SIM_LIBRARY=str(library), TILEWRIGHT_SIM_CHECK="none",
                       TILEWRIGHT_SIM_TIME="1", TILEWRIGHT_SIM_TIMES="1", TILEWRIGHT_SIM_REPORT="memory")
    done = subprocess.run([program, "--json", *arguments.split()], env=environment, capture_output=True,
                          text=True, check=True)
    counted = json.loads(done.stdout)["counted"]
    if counted["predicted"]["ctas"] != 1:
        sys.exit(f"sim_speed: {arguments}: {counted['predicted']['ctas']:.0f} CTAs, of which not all are played; "
                 "expected one")
    seconds = sum(float(s) for s, _, what in TIME.findall(done.stderr) if what == PREDICTING)
    return counted["total"]["thread_instructions"], launch_seconds(done.stderr), seconds


def measure_predictions(args):
    print("\none CTA             thread instructions    its launch   the prediction   M thread instr/s of both")
    rows = []
    for name, arguments in TIMED.items():
        runs = [predict(args.program, args.library, arguments) for _ in range(args.runs)]
        instructions = runs[0][0]
        launch, prediction = (statistics.median(run[i] for run in runs) for i in (1, 2))
        rate = instructions / (launch + prediction)
        rows.append({"case": name, "arguments": arguments, "thread_instructions": instructions,
                     "launch_seconds": launch, "prediction_seconds": prediction,
                     "thread_instructions_per_second": rate})
        print(f"{name:20} {instructions:18,.0f} {launch:12.3f} s {prediction:14.3f} s {rate / 1e6:18.1f}")
    return rows


def launch_seconds(text):
    times = [float(seconds) for seconds, _, what in TIME.findall(text) if not what.startswith("(")]
    return sum(times) if times else None


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=ROOT / "build/release/bin/tilewright")
    parser.add_argument("--library", default=ROOT / "build/release/lib/sim/libcuda.so.1")
    parser.add_argument("--before", help="libcuda.so.1 of another build")
    parser.add_argument("--checks", default="none")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--time", action="store_true", help="also what predictions of times take")
    parser.add_argument("--out", help="a log of it all, JSON")
    parser.add_argument("--only", default="", help="names of cases, with commas between them")
    args = parser.parse_args()
    wanted = [name for name in args.only.split(",") if name] or list(CASES)
    libraries = {"before": args.before, "now": args.library} if args.before else {"now": args.library}
    print("case          thread instructions    in launches   G thread instr/s   GFLOP/s   program before    now")
    rows = []
    for name in wanted:
        launches = {which: [] for which in libraries}
        programs = {which: [] for which in libraries}
        for _ in range(args.runs):
            for which, library in libraries.items():
                text, seconds = run(args.program, library, CASES[name], TILEWRIGHT_SIM_CHECK=args.checks)
                launches[which].append(launch_seconds(text))
                programs[which].append(seconds)
        instructions, flop = counts(args.program, args.library, CASES[name])
        seconds = statistics.median(launches["now"])
        before = f"{statistics.median(programs['before']):8.3f} s" if args.before else ""
        now = statistics.median(programs["now"])
        print(f"{name:12} {instructions:20,.0f} {seconds:13.3f} s {instructions / seconds / 1e9:17.3f} "
              f"{flop / seconds / 1e9:9.1f}   {before:>14} {now:7.3f} s")
        old = [t for t in launches.get("before", []) if t is not None]
        rows.append({"case": name, "arguments": CASES[name], "thread_instructions": instructions,
                     "tensor_flop": flop, "launch_seconds": launches["now"], "program_seconds": programs["now"],
                     "launch_seconds_before": old, "program_seconds_before": programs.get("before", [])})
        if old:
            ratio = statistics.median(old) / seconds
            print(f"{'':12} {'':20} {statistics.median(old):13.3f} s before, {ratio:.2f} times")
    predictions = measure_predictions(args) if args.time else []
    if args.out:
        log = {"schema": 1, "tool": "tools/sim_speed.py", "checks": args.checks, "threads": 1, "launches": rows,
               "predictions": predictions}
        pathlib.Path(args.out).write_text(json.dumps(log, indent=1) + "\n")


if __name__ == "__main__":
    main()
