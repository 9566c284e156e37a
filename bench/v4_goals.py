#!/usr/bin/env python3
"""DeepSeek-V4-Flash at full size beside its goals: every run that they need, and one table.

    python3 bench/v4_goals.py                          # two GPUs; about ten minutes
    python3 bench/v4_goals.py --only one               # what one GPU can do: the first 22 layers
    python3 bench/v4_goals.py --only tensor --only expert
    python3 bench/v4_goals.py --from build/v4_goals    # the table of logs that are there
    python3 bench/v4_goals.py --toy                    # the bundled model on the simulator: launches, no times

Each run is `tilewright bench model`, whose log stays in --out; docs/05-benchmarks.md says what it times. A goal
that a log misses is no failure of this program; a run that fails is. Where nothing was timed, `met` is about
launches alone.
"""

import argparse
import json
import pathlib
import shlex
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
TOOL = ROOT / "build/release/bin/tilewright"
CACHES = ["--kv", "fp8", "--index", "mxfp4"]

# Of each run what it adds to `tilewright bench model`: at full size, and for the toy.
FLASH = ["--synthetic-weights", "flash", *CACHES]
RUNS = {
    "tensor": (["--gpus", "2", "--parallel", "tensor", "--batch", "1", "--context", "1024", "--context",
                "8192", "--prompt", "0"],
               ["--gpus", "2", "--parallel", "tensor", "--batch", "1", "--context", "6", "--context", "8",
                "--prompt", "0"]),
    "expert": (["--gpus", "2", "--parallel", "expert", "--batch", "1", "--batch", "8", "--batch", "64",
                "--context", "8192", "--prompt", "8192", "--prefill-chunk", "4096"],
               ["--gpus", "2", "--parallel", "expert", "--batch", "1", "--batch", "2", "--batch", "5",
                "--context", "6", "--prompt", "6", "--prefill-chunk", "4"]),
    "serve": (["--gpus", "2", "--parallel", "expert", "--serve", "32", "--input", "8192", "--output", "1024",
               "--requests", "8", "--prefill-chunk", "2048"],
              ["--gpus", "2", "--parallel", "expert", "--serve", "2", "--input", "6", "--output", "4",
               "--requests", "2", "--prefill-chunk", "8"]),
    "one": (["--layers", "22", "--batch", "1", "--batch", "64", "--context", "8192", "--prompt", "8192",
             "--prefill-chunk", "4096"],
            ["--batch", "1", "--batch", "5", "--context", "6", "--prompt", "6", "--prefill-chunk", "4"]),
}

MOST_LAUNCHES = 500  # of a decode step
SHARE = 60  # percent of the floor that a step of 64 sequences is to reach


def samples(log, phase):
    return [s for s in log["samples"] if s["phase"] == phase]


def step_us(sample):
    """Of a decode step; of a prompt; of a request of a steady state. None: not timed."""
    if sample["phase"] == "decode":
        return statistics.median(sample["samples_us"]) if sample.get("samples_us") else None
    if sample["phase"] == "prefill":
        return sum(sample["steps_us"]) if sample.get("steps_us") else None
    return 1e6 * sample["seconds"] / sample["requests"] if "seconds" in sample else None


def tokens_of_gpu(log, sample):
    """Of what step_us() takes: ranks that divide the heads share theirs."""
    if sample["phase"] == "decode":
        tokens = sample["batch"]
    elif sample["phase"] == "prefill":
        tokens = sample["tokens"]
    else:
        tokens = sample["input"] + sample["output"]
    return tokens / (log["ranks"]["count"] if log["ranks"]["scheme"] == "tensor parallel" else 1)


class Row:
    def __init__(self, log, sample, what, goal, anchor=""):
        self.what, self.sample, self.anchor = what, sample, anchor
        self.us, self.launches = step_us(sample), sample.get("launches")
        self.refused = sample.get("refused")
        self.is_wrong = not sample.get("ok", True)
        self.rate = tokens_of_gpu(log, sample) / self.us * 1e6 if self.us else None
        self.share = 100 * sample["floor_us"] / self.us if self.us else None
        self.goal, self.is_met = goal(self)

    def cells(self):
        if self.refused:
            return [self.what, self.refused, "", "", "", "", self.goal, "no", self.anchor]

        def number(value, form):
            return "-" if value is None else format(value, form)
        ms = None if self.us is None else self.us / 1e3
        met = "WRONG" if self.is_wrong else "-" if self.is_met is None else "yes" if self.is_met else "no"
        floor = format(self.sample["floor_us"] / 1e3, ".3g")
        return [self.what, number(ms, ".4g"), floor, number(self.share, ".0f"), number(self.rate, ",.0f"),
                number(self.launches, "d"), self.goal, met, self.anchor]


# Goals: what is asked for, and whether a row has it; None: not timed.

def at_most_ms(most):
    return lambda row: (f"<= {most} ms", None if row.us is None else row.us <= 1e3 * most)


def at_least_rate(least):
    return lambda row: (f">= {least:,} tokens/s", None if row.rate is None else row.rate >= least)


def at_least_share(row):
    return f">= {SHARE} % of the floor", None if row.share is None else row.share >= SHARE


def few_launches(row):
    return f"<= {MOST_LAUNCHES} launches", None if row.launches is None else row.launches <= MOST_LAUNCHES


def rows_of(logs):
    """Of the logs that there are, by name of the run."""
    rows = []

    def add(run, sample, what, goal, anchor=""):
        rows.append(Row(logs[run], sample, what, goal, anchor))
    if "tensor" in logs:
        for sample in samples(logs["tensor"], "decode"):
            what = f"one stream, 2 GPUs, tensors in parallel, context {sample['context']:,}"
            add("tensor", sample, what, at_most_ms(3.4), "SGLang with MTP on four: 3.37 ms")
            if "refused" not in sample:
                add("tensor", sample, f"{what}: launches", few_launches, "1,100 to 1,500")
    if "expert" in logs:
        decode = samples(logs["expert"], "decode")
        largest = max(sample["batch"] for sample in decode)
        for sample in decode:
            what = f"batch {sample['batch']} a GPU, 2 GPUs, experts in parallel, context {sample['context']:,}"
            if sample["batch"] == largest:
                add("expert", sample, what, at_least_share, "16 % of the floor")
            if "refused" not in sample:
                add("expert", sample, f"{what}: launches", few_launches, "1,100 to 1,500")
        for sample in samples(logs["expert"], "prefill"):
            add("expert", sample, f"prompt of {sample['tokens']:,} a GPU, 2 GPUs", at_least_rate(12000),
                "8,500 tokens/s")
    if "serve" in logs:
        for sample in samples(logs["serve"], "serve"):
            what = f"{sample['input']:,} in, {sample['output']:,} out, {sample['sequences']} sequences a GPU"
            add("serve", sample, f"{what}, 2 GPUs: a request", at_least_rate(5000),
                "4,600 to 4,900 tokens/s on four")
    if "one" in logs:
        largest = max(sample["batch"] for sample in samples(logs["one"], "decode"))
        for sample in logs["one"]["samples"]:
            if sample["phase"] == "decode":
                what = f"one GPU, batch {sample['batch']}, context {sample['context']:,}"
                add("one", sample, what, at_least_share if sample["batch"] == largest else few_launches)
            else:
                # The share of the floor that 12,000 tokens/s are with all layers on two GPUs.
                add("one", sample, f"one GPU, prompt of {sample['tokens']:,}",
                    lambda row: (">= 33 % of the floor", None if row.share is None else row.share >= 33))
    return rows


def table(logs):
    head = ["", "ms", "floor, ms", "%", "tokens/s a GPU", "launches", "goal", "met", "public"]
    lines = [head, ["---"] * len(head)] + [row.cells() for row in rows_of(logs)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def command_of(name, args):
    full, toy = RUNS[name]
    model = ["--device", "sim:h200", "bench", "model", *CACHES, "--samples", "3"] if args.toy else \
        ["bench", "model", *FLASH]
    return [str(args.tool), *model, *(toy if args.toy else full), "--out", str(args.out / name)]


def read_logs(folder, names):
    logs = {}
    for name in names:
        path = folder / name / "model.json"
        if path.exists():
            logs[name] = json.loads(path.read_text())
    return logs


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=RUNS, help="a run; repeatable; default: all")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build/v4_goals", help="where logs go")
    parser.add_argument("--from", dest="read", type=pathlib.Path,
                        help="run nothing: the table of logs in that folder")
    parser.add_argument("--toy", action="store_true", help="the bundled model on the simulator instead")
    parser.add_argument("--tool", type=pathlib.Path, default=TOOL, help="the tool")
    args = parser.parse_args(argv)
    names, failed = args.only or list(RUNS), []
    if args.read:
        logs = read_logs(args.read, names)
        if not logs:
            sys.exit(f"v4_goals.py: {args.read} has no log; expected {{{','.join(names)}}}/model.json, as --out "
                     "leaves them")
    else:
        for name in names:
            (args.out / name / "model.json").unlink(missing_ok=True)
            command = command_of(name, args)
            print("$ " + shlex.join(command), flush=True)
            try:
                status = subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode
            except OSError as error:
                sys.exit(f"v4_goals.py: {args.tool}: {error.strerror}; ./run builds it")
            if status != 0:
                failed.append(name)
        logs = read_logs(args.out, names)
    print(table(logs))
    if failed:
        sys.exit(f"v4_goals.py: failed: {', '.join(failed)}; what they said is above")
    if any(row.is_wrong for row in rows_of(logs)):
        sys.exit("v4_goals.py: a step's logits are no numbers; see WRONG above")


if __name__ == "__main__":
    main()
