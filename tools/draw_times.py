#!/usr/bin/env python3
"""Draws predicted times beside measured ones, docs/images/predicted-*.svg, and writes the tables of
docs/12-predicted-times.md, from bench/results/*-predicted-*.json: what `tilewright --json bench timing` printed.

    tools/draw_times.py
"""

import json
import math
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/12-predicted-times.md"
LOGS = ROOT / "bench/results"
TITLES = {"attention": "attention", "long": "attention, 1k to 8k keys", "decode": "decode attention",
          "sparse": "sparse attention", "indexer": "indexer", "moe": "experts", "linear": "linear layers, 64 rows"}
# light and dark
COLORS = {"page": ("#ffffff", "#182029"), "ink": ("#1d2733", "#e8edf2"), "soft": ("#5d6b7a", "#97a6b5"),
          "grid": ("#e2e0d9", "#2a3541"), "band": ("#f1f0ec", "#222c37")}
FAMILIES = (("#2f7fc1", "#62aef0"), ("#178f8a", "#46c2bd"), ("#b9562f", "#e0764e"), ("#8f6bb3", "#b594d8"),
            ("#d03a6a", "#f06a95"), ("#4f9d2f", "#79c95a"), ("#b79268", "#c9a77d"))


# Logs of shapes at which several kernels were measured.
CHOICES = ("attention", "long", "decode", "sparse", "linear", "choices-linear", "moe")


def read_logs(folder=LOGS, families=tuple(TITLES)):
    """Family -> what one run of `bench timing` printed, in the order of `families`."""
    found = {}
    for family in families:
        paths = sorted(folder.glob(f"*-predicted-{family}.json"))
        if paths:
            found[family] = json.loads(paths[-1].read_text())
    return found


def points_of(log):
    return [point for point in log["points"] if "predicted_us" in point]


def range_of(errors):
    """Between what four of five errors lie: the quantiles 0.1 and 0.9, between neighbours in proportion; of fewer
    than 20 the least and the largest, as one in ten says nothing there."""
    errors = sorted(errors)
    if len(errors) < 20:
        return errors[0], errors[-1]

    def at(part):
        place = part * (len(errors) - 1)
        low = math.floor(place)
        high = min(low + 1, len(errors) - 1)
        return errors[low] + (place - low) * (errors[high] - errors[low])

    return at(0.1), at(0.9)


def style(which):
    c = {name: pair[which] for name, pair in COLORS.items()}
    fills = "".join(f".f{i}{{fill:{pair[which]}}}" for i, pair in enumerate(FAMILIES))
    return (f".page{{fill:{c['page']}}} text{{fill:{c['ink']}}} .note{{fill:{c['soft']}}}\n"
            f".band{{fill:{c['band']}}} "
            f".grid{{stroke:{c['grid']}}} .same{{stroke:{c['soft']}}} .bar{{fill:{c['soft']}}}\n"
            f"{fills}\n")


class Picture:
    def __init__(self, width, height, heading, note):
        self.width, self.height = width, height
        self.parts = [f"<rect class='page' width='{width}' height='{height}'/>"]
        self.text(20, 32, heading, "heading")
        self.text(20, 52, note, "note")

    def text(self, x, y, words, kind="", anchor="start"):
        words = words.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        self.parts.append(f"<text class='{kind}' x='{x:.1f}' y='{y:.1f}' text-anchor='{anchor}'>{words}</text>")

    def line(self, kind, x0, y0, x1, y1):
        self.parts.append(f"<path class='{kind}' d='M{x0:.1f} {y0:.1f}L{x1:.1f} {y1:.1f}'/>")

    def box(self, kind, x, y, w, h):
        self.parts.append(f"<rect class='{kind}' x='{x:.1f}' y='{y:.1f}' width='{w:.1f}' height='{h:.1f}'/>")

    def svg(self):
        return (f"<svg xmlns='http://www.w3.org/2000/svg' width='{self.width}' height='{self.height}' "
                f"viewBox='0 0 {self.width} {self.height}' role='img'>\n<style>\n"
                "text{font-family:system-ui,'DejaVu Sans',Helvetica,Arial,sans-serif;font-size:12px}\n"
                ".heading{font-size:16px;font-weight:600} .name{font-weight:600} .note{font-size:11.5px}\n"
                ".grid{stroke-width:1} .same{stroke-width:1.2;stroke-dasharray:5 4} circle{fill-opacity:.75}\n"
                f"{style(0)}@media (prefers-color-scheme: dark){{\n{style(1)}}}\n</style>\n"
                + "\n".join(self.parts) + "\n</svg>\n")


def scatter(logs):
    """Each point is a kernel at a shape."""
    points = [(i, p) for i, log in enumerate(logs.values()) for p in points_of(log)]
    p = Picture(720, 560, "Predicted and measured time on an H200",
                "each dot: a kernel at a shape; dashed: as measured; the band: 20 % more or less")
    values = [point[key] for _, point in points for key in ("predicted_us", "measured_us")]
    low, high = math.log10(min(values)) - 0.08, math.log10(max(values)) + 0.08
    left, top, size = 70, 96, 400

    def place(us):
        return (math.log10(us) - low) / (high - low) * size

    def at(measured, predicted):
        return left + place(measured), top + size - place(predicted)

    corners = [at(10 ** end, 10 ** end * f) for end, f in ((low, 0.8), (low, 1.2), (high, 1.2), (high, 0.8))]
    p.parts.append(f"<clipPath id='in'><rect x='{left}' y='{top}' width='{size}' height='{size}'/></clipPath>")
    outline = "L".join(f"{x:.1f} {y:.1f}" for x, y in corners)
    p.parts.append(f"<path class='band' clip-path='url(#in)' d='M{outline}z'/>")
    for power in range(math.floor(low), math.ceil(high)):
        for digit in (1, 2, 5):
            us = digit * 10 ** power
            if not low <= math.log10(us) <= high:
                continue
            x, y = at(us, us)
            p.line("grid", x, top, x, top + size)
            p.line("grid", left, y, left + size, y)
            p.text(x, top + size + 16, f"{us:g}", "note", "middle")
            p.text(left - 8, y + 4, f"{us:g}", "note", "end")
    p.line("same", left, top + size, left + size, top)
    for i, point in points:
        x, y = at(point["measured_us"], point["predicted_us"])
        title = (f"{point['shape']} {point['kernel']}: {point['predicted_us']:.1f} us predicted, "
                 f"{point['measured_us']:.1f} measured")
        p.parts.append(f"<circle class='f{i}' cx='{x:.1f}' cy='{y:.1f}' r='4'><title>{title}</title></circle>")
    p.text(left + size / 2, top + size + 36, "measured, us", "", "middle")
    p.text(left, top - 8, "predicted, us")
    for i, (family, log) in enumerate(logs.items()):
        y = top + 20 + 62 * i
        summary = log["summary"]
        p.parts.append(f"<circle class='f{i}' cx='516' cy='{y - 4}' r='5'/>")
        p.text(528, y, TITLES[family], "name")
        error = 100 * summary["mean_absolute_error"]
        p.text(528, y + 17, f"{summary['points']} points, mean error {error:.1f} %", "note")
        if summary["pairs"]:
            p.text(528, y + 33, f"{summary['pairs_in_order']} of {summary['pairs']} pairs in order", "note")
    return p


def ladder(logs, shape="full d128 n512"):
    """Variants of one kernel at one shape, the fastest last."""
    points = [point for point in points_of(logs["attention"]) if point["shape"] == shape]
    points.sort(key=lambda point: -point["measured_us"])
    p = Picture(720, 98 + 46 * len(points), f"The order of variants: attention, {shape}",
                "grey: measured, colour: predicted; microseconds")
    left, width = 90, 520
    scale = width / max(x[key] for x in points for key in ("predicted_us", "measured_us"))
    for i, point in enumerate(points):
        y = 72 + 46 * i
        p.text(left - 12, y + 20, point["kernel"], "name", "end")
        for row, (kind, key) in enumerate((("bar", "measured_us"), ("f0", "predicted_us"))):
            p.box(kind, left, y + 16 * row, point[key] * scale, 14)
            words = f"{point[key]:.1f}" + (f"  ({100 * point['error']:+.1f} %)" if row else "")
            p.text(left + point[key] * scale + 8, y + 16 * row + 11, words, "note")
    return p


PICTURES = {"predicted-measured.svg": scatter, "predicted-ladder.svg": ladder}


def summary_table(logs):
    rows = ["| | points | mean error | median | worst | bias | range | rank correlation | pairs in order | "
            "choice costs |", "|---|---|---|---|---|---|---|---|---|---|"]
    for family, log in logs.items():
        s = log["summary"]
        ranks = f"{s['rank_correlation']:.3f}" if s["rank_correlation"] else "-"  # of three kernels and more
        pairs = f"{s['pairs_in_order']} of {s['pairs']}"
        low, high = range_of([point["error"] for point in points_of(log)])
        rows.append(f"| {TITLES[family]} | {s['points']} | {100 * s['mean_absolute_error']:.1f} % | "
                    f"{100 * s['median_absolute_error']:.1f} % | {100 * s['worst_error']:+.1f} % | "
                    f"{100 * s['bias']:+.1f} % | {100 * low:+.0f} to {100 * high:+.0f} % | "
                    + (f"{ranks} | {pairs} | {100 * s['regret']:.1f} % |" if s["pairs"]
                       else "- | - | - |"))
    return rows


def choices_of(points):
    """Of each shape with several kernels: how many, and what the one predicted to be fastest costs more."""
    shapes = {}
    for point in points:
        shapes.setdefault(point["shape"], []).append(point)
    for shape, same in shapes.items():
        if len(same) > 1:
            chosen = min(same, key=lambda point: point["predicted_us"])
            fastest = min(same, key=lambda point: point["measured_us"])
            yield {"shape": shape, "kernels": len(same), "chosen": chosen["kernel"].split(":")[-1],
                   "fastest": fastest["kernel"].split(":")[-1],
                   "cost": chosen["measured_us"] / fastest["measured_us"] - 1,
                   "spread": max(point["measured_us"] for point in same) / fastest["measured_us"]}


def choices_table(logs):
    rows = ["| at | kernels | slowest over fastest | predicted fastest | measured fastest | the choice costs |",
            "|---|---|---|---|---|---|"]
    for family in CHOICES:
        for c in choices_of(points_of(logs[family])) if family in logs else ():
            rows.append(f"| {c['shape']} | {c['kernels']} | {c['spread']:.2f} | `{c['chosen']}` | "
                        f"`{c['fastest']}` | {100 * c['cost']:.1f} % |")
    return rows


def blackwell_table(log):
    rows = ["| for | kernel | predicted us | range | TFLOP/s | TB/s | busiest | warps wait for |",
            "|---|---|---|---|---|---|---|---|"]
    for point in points_of(log):
        bandwidth = f"{point['tb_per_s']:.2f}" if "tb_per_s" in point else ""
        kernel = point["kernel"].split(":")[-1]
        between = "{:.0f} to {:.0f}".format(*point["range_us"]) if "range_us" in point else ""
        rate = f"{point['tflops']:.0f}" if point["tflops"] else ""
        rows.append(f"| {point['shape']} | {kernel} | {point['predicted_us']:.1f} | {between} | {rate} | "
                    f"{bandwidth} | {point['busiest']} | {point['longest_wait']} |")
    return rows


def public_table(log):
    """Published rates of kernels of others beside ours, TFLOP/s."""
    rates = {(p["shape"], p["kernel"].removeprefix("bf16:")): p["tflops"] for p in points_of(log)}
    attention = [rates[f"attention full d128 n{n}", "sm100_e"] for n in (1024, 2048, 4096, 8192)]
    ours = {kernel: rates["linear m4096 n4096 k4096", f"tensor_bf16_{kernel}"]
            for kernel in ("1cta_n128", "2cta_n256", "4cta_n256")}
    large = rates["linear m8192 n8192 k16384", "tensor_bf16_2cta_n256"]
    return ["| TFLOP/s | published | predicted of ours |", "|---|---|---|",
            "| attention, d 128, full, 32k tokens, n = 1024, 2048, 4096, 8192: FlashAttention-4 "
            "| 975, 1131, 1256, 1289 on one box; 1540, 1706, 1796, 1837 on another | "
            f"`sm100_e` {', '.join(f'{x:.0f}' for x in attention)} |",
            f"| the last of these over the first | 1.32; 1.19 | {attention[3] / attention[0]:.2f} |",
            "| bf16 GEMM, 4096^3: cuBLAS; a public ladder of kernels | 1359; 254 to 1326 | "
            + ", ".join(f"`{kernel}` {rate:.0f}" for kernel, rate in ours.items()) + " |",
            "| bf16 GEMM, 8192^2 x 16384: Triton's Gluon tutorial, fp16 | 698 to 1180 | "
            f"`2cta_n256` {large:.0f} |"]


def ladder_table(log):
    """Forms of one public kernel: published and predicted."""
    rows = ["| k a step | buffers | warps | published | predicted | | busiest | warps wait for |",
            "|---|---|---|---|---|---|---|---|"]
    for p in log["points"]:
        difference = 100 * (p["tflops"] / p["published_tflops"] - 1)
        rows.append(f"| {p['k_step']} | {p['buffers']} | {p['warps']} | {p['published_tflops']} | "
                    f"{p['tflops']:.0f} | {difference:+.0f} % | {p['busiest']} | {p['longest_wait']} |")
    return rows


def others_table(log):
    """Kernels of others on an H200: each by itself, of the log of bench/public_times.py."""
    rows = ["| | predicted us | measured us | error | busiest | warps wait for |", "|---|---|---|---|---|---|"]
    for entry in log["sources"]:
        s = entry["summary"]
        rows.append(f"| **{entry['source'].split(',')[0]}**, {s['points']} points: mean "
                    f"{100 * s['mean_absolute_error']:.1f} %, bias {100 * s['bias']:+.1f} % | | | | | |")
        for p in entry["points"]:
            rows.append(f"| {p['shape']} | {p['predicted_us']:.1f} | {p['measured_us']:.1f} | "
                        f"{100 * p['error']:+.1f} % | {p['busiest']} | {p['longest_wait']} |")
    return rows


def fill(page, name, rows):
    """The page with the table of that name in the place between its marks."""
    begin, end = f"<!-- {name}: written by tools/draw_times.py -->", f"<!-- end of {name} -->"
    pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.S)
    return pattern.sub(lambda _: "\n".join([begin, *rows, end]), page)


def page_of(page, logs):
    blackwell = json.loads(sorted(LOGS.glob("*-predicted-b200.json"))[-1].read_text())
    page = fill(page, "summary", summary_table(logs))
    page = fill(page, "choices", choices_table(read_logs(families=CHOICES)))
    ladder_log = json.loads(sorted(LOGS.glob("*-predicted-public-b200.json"))[-1].read_text())
    page = fill(page, "ladder", ladder_table(ladder_log))
    others = sorted(LOGS.glob("*-predicted-public-h200.json"))
    page = fill(page, "others", others_table(json.loads(others[-1].read_text())))
    return fill(fill(page, "b200", blackwell_table(blackwell)), "public", public_table(blackwell))


def main():
    logs = read_logs()
    for name, draw in PICTURES.items():
        (ROOT / "docs/images" / name).write_text(draw(logs).svg())
    PAGE.write_text(page_of(PAGE.read_text(), logs))


if __name__ == "__main__":
    main()
