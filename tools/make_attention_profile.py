#!/usr/bin/env python3
"""Makes a log of what Nsight Compute says of each rung of the attention ladder, and a table of it.

    for K in k1 k2 k3_1 k3_2 k3_3 k4_1 k4_2 k5 k6_1 k6_2 k6_3 k6; do
      ncu --page details --csv --launch-count 3 $SECTIONS build/release/bin/tilewright attention \\
        --inputs normal --shape 1,16,16,4096,4096,128 --dtype bf16 --causal --kernel $K --runs 1 \\
        > FOLDER/ncu_$K.csv
    done
    tools/make_attention_profile.py FOLDER --commit COMMIT > bench/results/DATE-attention-profile.json

SECTIONS stands below. With --metrics 'regex:smsp__average_warps_issue_stalled_.*_per_issue_active' as well, the
log and the table have all reasons for waiting; without it only those that the profiler's rules name. Of a kernel
that is launched more than once (to check and to time it), the first launch counts.
tools/make_attention_readme.py prints the table.
"""

import argparse
import csv
import json
import pathlib
import re

PROBLEM = {"batch": 1, "heads": 16, "q_len": 4096, "kv_len": 4096, "head_dim": 128, "dtype": "bf16",
           "causal": True}
SECTIONS = ("SpeedOfLight", "LaunchStats", "Occupancy", "WarpStateStats", "MemoryWorkloadAnalysis",
            "ComputeWorkloadAnalysis", "SchedulerStats", "SourceCounters")
COMMAND = ("ncu --page details --csv --launch-count 3 " + " ".join(f"--section {name}" for name in SECTIONS)
           + " tilewright attention --inputs normal --shape 1,16,16,4096,4096,128 --dtype bf16 --causal "
           "--kernel KERNEL --runs 1")
# Name in the log, Nsight Compute's section and metric. Units are those that it prints.
METRICS = (
    ("duration_ns", "GPU Speed Of Light Throughput", "Duration"),
    ("elapsed_cycles", "GPU Speed Of Light Throughput", "Elapsed Cycles"),
    ("sm_hz", "GPU Speed Of Light Throughput", "SM Frequency"),
    ("l1_percent", "GPU Speed Of Light Throughput", "L1/TEX Cache Throughput"),
    ("l2_percent", "GPU Speed Of Light Throughput", "L2 Cache Throughput"),
    ("dram_percent", "GPU Speed Of Light Throughput", "DRAM Throughput"),
    ("dram_bytes_per_s", "Memory Workload Analysis", "Memory Throughput"),
    ("memory_busy_percent", "Memory Workload Analysis", "Mem Busy"),
    ("l1_hit_percent", "Memory Workload Analysis", "L1/TEX Hit Rate"),
    ("l2_hit_percent", "Memory Workload Analysis", "L2 Hit Rate"),
    ("spilling_requests", "Memory Workload Analysis", "Local Memory Spilling Requests"),
    ("ipc_elapsed", "Compute Workload Analysis", "Executed Ipc Elapsed"),
    ("issue_slots_percent", "Compute Workload Analysis", "Issue Slots Busy"),
    ("no_eligible_percent", "Scheduler Statistics", "No Eligible"),
    ("cycles_per_instruction", "Warp State Statistics", "Warp Cycles Per Issued Instruction"),
    ("registers", "Launch Statistics", "Registers Per Thread"),
    ("shared_bytes", "Launch Statistics", "Dynamic Shared Memory Per Block"),
    ("waves", "Launch Statistics", "Waves Per SM"),
    ("ctas_by_registers", "Occupancy", "Block Limit Registers"),
    ("ctas_by_shared", "Occupancy", "Block Limit Shared Mem"),
    ("ctas_by_warps", "Occupancy", "Block Limit Warps"),
    ("ctas_by_sm", "Occupancy", "Block Limit SM"),
    ("theoretical_warps", "Occupancy", "Theoretical Active Warps per SM"),
    ("achieved_warps", "Occupancy", "Achieved Active Warps Per SM"),
)
# Products that the tensor core computes, where it is not the busiest pipe and the profiler gives no share of it:
# K4.1 visits every tile of q k^T.
UNNAMED_TENSOR_FLOP = {"k4_1": 2 * 16 * 4096 * 4096 * 128}
TENSOR_FLOP_PER_CYCLE = 4096 * 132  # of an H200, bf16


def number(text):
    value = float(text.replace(",", ""))
    return int(value) if value.is_integer() else value


def read_rules(rows):
    """What the profiler concludes: the busiest pipe, stalls that it names, wasteful accesses."""
    said = {"stalls": [], "excess": []}
    for row in rows:
        text = row["Rule Description"]
        if found := re.search(r"\b(\w+) is the highest-utilized pipeline \(([\d.]+)%\)", text):
            # "Shared" is several pipes in one; the text says which of them dominates.
            is_tensor = "Tensor (FP) sub-pipeline" in text
            said["busiest_pipe"] = "tensor" if is_tensor else found[1]
            said["busiest_pipe_percent"] = float(found[2])
        for cycles, reason, share in re.findall(
                r"spends ([\d.]+) cycles being stalled waiting for (.*?)\. .*?represents about ([\d.]+)%", text):
            said["stalls"].append({"reason": reason, "cycles": float(cycles), "percent": float(share)})
        for more, what, total in re.findall(r"total of (\d+) excessive (\w+) \(\d+% of the total (\d+) ", text):
            said["excess"].append({"rule": row["Rule Name"], "what": what, "excessive": int(more),
                                   "total": int(total)})
    return said


def read_stalls(values):
    """Reason -> cycles that a warp waits for it between two instructions; empty if they were not asked for."""
    found = {}
    for (_, metric), value in values.items():
        if match := re.fullmatch(r"smsp__average_warps_issue_stalled_(\w+)_per_issue_active(\.ratio)?", metric):
            found[match[1]] = number(value)
    return found


def read_launches(path):
    kernel = path.stem.removeprefix("ncu_")
    by_launch = {}
    with path.open() as lines:
        for row in csv.DictReader(line for line in lines if line.startswith('"')):
            by_launch.setdefault((row["ID"], row["Kernel Name"]), []).append(row)
    launches, seen = [], set()
    for (_, entry), rows in by_launch.items():
        if entry in seen:
            continue
        seen.add(entry)
        values = {(row["Section Name"], row["Metric Name"]): row["Metric Value"] for row in rows}
        waits = read_stalls(values)
        launches.append({"kernel": kernel, "entry": entry, "block": rows[0]["Block Size"],
                         "grid": rows[0]["Grid Size"],
                         **{name: number(values[section, metric]) for name, section, metric in METRICS},
                         **({"waits": waits} if waits else {}),
                         **read_rules(row for row in rows if row["Rule Name"])})
    return launches


def limits(launch):
    """CTAs an SM, and what allows no more."""
    by = {"registers": launch["ctas_by_registers"], "shared memory": launch["ctas_by_shared"],
          "warps": launch["ctas_by_warps"], "CTAs": launch["ctas_by_sm"]}
    least = min(by.values())
    return least, ", ".join(name for name, ctas in by.items() if ctas == least)


def tensor_percent(launch):
    if launch.get("busiest_pipe") == "tensor":
        return launch["busiest_pipe_percent"]
    flop = UNNAMED_TENSOR_FLOP.get(launch["kernel"], 0)
    return 100 * flop / (TENSOR_FLOP_PER_CYCLE * launch["elapsed_cycles"])


def launch_name(launch):
    if launch["kernel"] != "k1":
        return launch["kernel"]
    return "k1, " + re.sub(r"_(bf16|f16)_d\d+$", "", launch["entry"]).removeprefix("attention_k1_")


def busiest(launch):
    """The pipe that the profiler names, if it is not the tensor core, which has a column of its own."""
    name = launch.get("busiest_pipe", "tensor")
    return "" if name == "tensor" else f"{name} {launch['busiest_pipe_percent']:.0f}"


def stall_text(launch):
    """The three largest of all reasons for waiting, or what the profiler's rules name; in % of the waiting."""
    if waits := launch.get("waits"):
        # "selected" is the instruction that is issued, not a wait.
        reasons = {name: cycles for name, cycles in waits.items() if name != "selected"}
        largest = sorted(reasons.items(), key=lambda item: -item[1])[:3]
        total = sum(reasons.values())
        return "; ".join(f"{name.replace('_', ' ')}: {100 * cycles / total:.0f}" for name, cycles in largest)
    named = "; ".join(f"{s['reason'].split(' (')[0]}: {s['percent']:.0f}" for s in launch["stalls"])
    return named.replace("a scoreboard dependency on a L1TEX", "data from L1TEX") or "none"


def profile_table(log):
    yield ("| rung | us | registers | shared KB | CTAs an SM | limited by | warps an SM: most, found | "
           "issue slots | tensor | busiest other pipe | L1, shared | L2 | DRAM | no warp ready | stall named |")
    yield "|---" * 15 + "|"
    for launch in log["launches"]:
        ctas, limited_by = limits(launch)
        yield (f"| {launch_name(launch)} | {launch['duration_ns'] / 1000:.0f} | {launch['registers']} | "
               f"{launch['shared_bytes'] / 1024:.0f} | {ctas} | {limited_by} | {launch['theoretical_warps']}, "
               f"{launch['achieved_warps']:.1f} | {launch['issue_slots_percent']:.0f} | "
               f"{tensor_percent(launch):.1f} | {busiest(launch)} | {launch['l1_percent']:.0f} | "
               f"{launch['l2_percent']:.1f} | "
               f"{launch['dram_percent']:.1f} | {launch['no_eligible_percent']:.0f} | {stall_text(launch)} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("folder", type=pathlib.Path, help="of ncu_KERNEL.csv")
    parser.add_argument("--commit", required=True)
    args = parser.parse_args()
    launches = [launch for path in sorted(args.folder.glob("ncu_*.csv")) for launch in read_launches(path)]
    print(json.dumps({"schema": 1, "kind": "attention profile", "tool": "Nsight Compute", "commit": args.commit,
                      "device": "NVIDIA H200", "command": COMMAND, "problem": PROBLEM, "launches": launches},
                     indent=1))


if __name__ == "__main__":
    main()
