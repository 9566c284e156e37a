#!/usr/bin/env python3
"""Draws the pictures of docs/08-wgmma.md that are no layouts: docs/images/wgmma-*.svg.

    tools/draw_wgmma.py [FOLDER]
"""

import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# light and dark: what a class is filled or drawn with
COLORS = {"page": ("#ffffff", "#182029"), "ink": ("#1d2733", "#e8edf2"), "soft": ("#5d6b7a", "#97a6b5"),
          "line": ("#c9c6bd", "#3d4a58"), "w0": ("#ffc1c9", "#8d3f4b"), "w1": ("#e1d89c", "#6d6423"),
          "w2": ("#9fd8a2", "#2f6d3a"), "w3": ("#a4dfff", "#245f85"), "b": ("#e8b2e9", "#713d76"),
          "mma": ("#2f7fc1", "#2f7fc1"), "mma2": ("#178f8a", "#178f8a"), "soft0": ("#c7dcf0", "#284a68"),
          "soft1": ("#bfe3e0", "#1d504e"), "busy": ("#f3c9bd", "#7a3b2b"), "free": ("#d8efdc", "#25533a"),
          "field": ("#e2e0d9", "#2a3541")}


def style(which):
    c = {name: pair[which] for name, pair in COLORS.items()}
    boxes = "".join(f".{name}{{fill:{value}}}" for name, value in c.items() if name not in ("ink", "soft", "line"))
    return (f"text{{fill:{c['ink']}}} .note{{fill:{c['soft']}}} .tip{{fill:{c['soft']}}}\n"
            f".edge{{stroke:{c['line']}}} .arrow{{stroke:{c['soft']};fill:none}}\n{boxes}\n"
            f".on{{fill:{'#ffffff'}}}\n")


class Picture:
    def __init__(self, width, height, heading):
        self.width, self.height = width, height
        self.parts = [f"<rect class='page' width='{width}' height='{height}'/>"]
        self.text(20, 34, heading, "heading")

    def text(self, x, y, words, kind="", anchor="start"):
        words = words.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        self.parts.append(f"<text class='{kind}' x='{x:g}' y='{y:g}' text-anchor='{anchor}'>{words}</text>")

    def box(self, x, y, w, h, kind, words="", text_kind=""):
        self.parts.append(f"<rect class='{kind} edge' x='{x:g}' y='{y:g}' width='{w:g}' height='{h:g}' rx='2'/>")
        if words:
            self.text(x + w / 2, y + h / 2 + 4, words, text_kind, "middle")

    def arrow(self, x0, y0, x1, y1):
        self.parts.append(f"<path class='arrow' d='M{x0:g} {y0:g} L{x1:g} {y1:g}' marker-end='url(#tip)'/>")

    def line(self, x0, y0, x1, y1):
        self.parts.append(f"<path class='edge' d='M{x0:g} {y0:g} L{x1:g} {y1:g}'/>")

    def svg(self):
        head = (f"<svg xmlns='http://www.w3.org/2000/svg' width='{self.width}' height='{self.height}' "
                f"viewBox='0 0 {self.width} {self.height}' role='img'>\n<style>\n"
                "text{font-family:system-ui,'DejaVu Sans',Helvetica,Arial,sans-serif;font-size:12px}\n"
                ".heading{font-size:16px;font-weight:600} .name{font-weight:600} .note{font-size:11.5px}\n"
                ".arrow{stroke-width:1.4} .on{font-size:11.5px}\n"
                f"{style(0)}@media (prefers-color-scheme: dark){{\n{style(1)}}}\n</style>\n"
                "<marker id='tip' viewBox='0 0 8 8' refX='7' refY='4' markerWidth='7' markerHeight='7' "
                "orient='auto'><path class='tip' d='M0 0 L8 4 L0 8 z'/></marker>\n")
        return head + "\n".join(self.parts) + "\n</svg>\n"


def operands():
    p = Picture(760, 372, "One wgmma.m64n64k16: d[64, 64] += a[64, 16] b[16, 64]")
    top, scale = 150, 3  # of the rows of a and d
    a_x, d_x, b_y = 170, 300, 70
    for warp in range(4):
        y = top + warp * 16 * scale
        p.text(24, y + 21, f"warp {warp}", "name")
        p.text(24, y + 36, f"rows {16 * warp} to {16 * warp + 15}", "note")
        p.box(a_x, y, 16 * scale, 16 * scale, f"w{warp}")
        p.box(d_x, y, 64 * scale, 16 * scale, f"w{warp}", "32 registers a thread")
    p.box(d_x, b_y, 64 * scale, 16 * scale, "b", "b, read by all four")
    p.text(a_x + 24, top - 8, "a", "name", "middle")
    p.text(d_x + 96, top - 8, "d", "name", "middle")
    x = 530
    for i, (name, what) in enumerate((
            ("d: registers", "64 x N x 4 bytes: N / 2 of each thread"),
            ("a: registers", "4 of each thread, or"),
            ("   shared memory", "2 KB, by a descriptor"),
            ("b: shared memory", "32 N bytes, by a descriptor"),
            ("time: N / 2 cycles", "of the SM's tensor cores, bf16"))):
        p.text(x, top + 6 + 38 * i, name, "name")
        p.text(x, top + 21 + 38 * i, what, "note")
    return p


def timeline():
    p = Picture(860, 354, "Who may touch what, and when")
    left, unit = 190, 62
    steps = ("write", "fence", "mma", "mma", "commit", "anything else", "", "wait", "read d")
    for i, step in enumerate(steps):
        if step:
            middle = unit if step == "anything else" else unit / 2
            p.text(left + unit * i + middle, 76, step, "note", "middle")
        p.line(left + unit * i, 84, left + unit * i, 300)
    p.line(left + unit * 9, 84, left + unit * 9, 300)
    rows = (("d, accumulators", (("free", 0, 1, "yours"), ("field", 1, 1, ""),
                                 ("busy", 2, 5.5, "the tensor core's"), ("free", 7.5, 1.5, "yours"))),
            ("a, in registers", (("free", 0, 1, "yours"), ("field", 1, 1, ""),
                                 ("busy", 2, 5.5, "read at any time: do not write"), ("free", 7.5, 1.5, "yours"))),
            ("a, b, in shared memory", (("free", 0, 1, "yours"), ("field", 1, 1, ""),
                                        ("busy", 2, 5.5, "read at any time: do not write"),
                                        ("free", 7.5, 1.5, "yours"))),
            ("all other registers", (("free", 0, 9, "yours, all the time"),)))
    for i, (name, spans) in enumerate(rows):
        y = 96 + 50 * i
        p.text(24, y + 22, name, "name")
        for kind, begin, count, words in spans:
            p.box(left + unit * begin, y, unit * count, 36, kind, words)
    p.text(24, 320, "The wait ends when wgmma.wait_group returns. Shared memory that threads wrote needs",
           "note")
    p.text(24, 338, "fence.proxy.async by the writers and then a barrier, before the first mma.", "note")
    return p


def descriptor():
    p = Picture(1000, 452, "A K-major operand tile, 64 rows of 128 bytes, and its descriptor")
    fields = ((0, 14, "start >> 4"), (16, 14, "leading >> 4"), (32, 14, "stride >> 4"), (49, 3, "base"),
              (62, 2, "swz"))
    left, unit, y = 24, 12.6, 60
    p.box(left, y, 64 * unit, 34, "field")
    for bit, count, name in fields:
        p.box(left + bit * unit, y, count * unit, 34, "mma", name if count > 2 else "", "on")
        p.text(left + bit * unit, y + 50, f"{bit}", "note", "middle")
        p.text(left + (bit + count) * unit, y + 50, f"{bit + count}", "note", "middle")
    p.text(left + 63 * unit, y - 8, "swizzle: 1 = 128 B, 2 = 64 B, 3 = 32 B, 0 = none", "note", "end")
    x0, y0, w, h = 150, 150, 54, 15
    for atom in range(2):
        for row in range(8):
            for chunk in range(8):
                stored = chunk ^ row
                p.box(x0 + chunk * w, y0 + (atom * 9 + row) * h, w, h, f"w{stored // 2}", f"k {8 * stored}")
    p.text(x0 - 10, y0 + 4.5 * h, "rows 0 to 7", "note", "end")
    p.text(x0 - 10, y0 + 13.5 * h, "rows 8 to 15", "note", "end")
    p.text(x0 + 4 * w, y0 + 18.4 * h, "... rows 16 to 63 likewise: 8 KB", "note", "middle")
    x = x0 + 8 * w + 24
    for i, words in enumerate((
            "A row is 64 numbers of 16 bits: 8 chunks of 16",
            "bytes. Row r has chunk c at place c XOR r mod 8.",
            "",
            "stride: 1024 bytes, to the next eight rows.",
            "leading: not used by swizzled K-major tiles.",
            "",
            "One instruction reads 16 k: two chunks of each",
            "row, of one colour here. The next 16 k are 32",
            "bytes further: start >> 4 grows by 2, and the",
            "hardware swizzles the sum, so that the XOR",
            "still fits. Eight rows lie in all 32 banks.")):
        p.text(x, y0 + 14 + 18 * i, words, "note" if i > 1 else "")
    return p


def schedules():
    p = Picture(900, 570, "Two products and a softmax: three ways to arrange them")
    left, unit = 150, 34

    def lane(y, name, spans):
        p.text(24, y + 17, name, "name")
        for kind, begin, count, words in spans:
            p.box(left + unit * begin, y, unit * count, 24, kind, words, "on" if kind.startswith("mma") else "")

    def notes(y, *lines):
        for i, line in enumerate(lines):
            p.text(24, y + 18 * i, line, "note")

    p.text(24, 68, "K4.2: one warpgroup waits for each product", "name")
    lane(78, "tensor core", [s for t in range(3) for s in (("mma", 7 * t, 2, "QK"), ("mma", 7 * t + 5, 2, "PV"))])
    lane(106, "warpgroup", [("soft0", 7 * t + 2, 3, "softmax") for t in range(3)])
    notes(156, "The tensor core idles in every softmax, and while the group waits for loads: 0.24 of the ceiling.")

    p.text(24, 196, "K5: two consumers, apart by luck", "name")
    first = [("mma", x, 2, what) for x, what in ((0, "QK"), (5, "PV"), (9, "QK"), (14, "PV"), (18, "QK"))]
    lane(206, "tensor core", first + [("mma2", x + 2, 2, what) for _, x, _, what in first[:4]])
    lane(234, "consumer 0", [("soft0", 2, 3, "softmax"), ("soft0", 11, 3, "softmax")])
    lane(262, "consumer 1", [("soft1", 4, 3, "softmax"), ("soft1", 13, 3, "softmax")])
    notes(312, "Products of one run under the softmax of the other, where they happen to be apart: 0.58 of it.")

    p.text(24, 352, "K6: turns between consumers, and overlap within each", "name")
    tensor, soft_0, soft_1 = [("mma", 0, 2, "QK0"), ("mma2", 2, 2, "QK0")], [], []
    for t in range(3):
        x = 4 + 8 * t
        if x + 8 <= 21:
            tensor += [("mma", x, 2, f"QK{t + 1}"), ("mma", x + 2, 2, f"PV{t}"), ("mma2", x + 4, 2, f"QK{t + 1}"),
                       ("mma2", x + 6, 2, f"PV{t}")]
            soft_0.append(("soft0", x + 2, 4, f"softmax {t + 1}"))
            soft_1.append(("soft1", x + 6, 4 if t == 0 else 3, f"softmax {t + 1}"))
    soft_0.insert(0, ("soft0", 2, 2, "0"))
    soft_1.insert(0, ("soft1", 4, 4, "softmax 0"))
    lane(362, "tensor core", tensor)
    lane(390, "consumer 0", soft_0)
    lane(418, "consumer 1", soft_1)
    notes(468, "A turn is a named barrier of 256 threads: one consumer issues QK of its next tile and PV of",
          "the last one, and passes it on. The softmax of a tile runs under the products of the other",
          "consumer and under its own PV of the tile before: 0.72 of the ceiling.")
    notes(530, "Units are for the picture's sake; at d = 128 a tile of 64 x 128 scores takes 1024 cycles of",
          "products and 512 of exponentials. Shares of the ceiling are measured, full, n = 4096.")
    return p


PICTURES = {"wgmma-operands.svg": operands, "wgmma-timeline.svg": timeline, "wgmma-descriptor.svg": descriptor,
            "wgmma-schedules.svg": schedules}


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs/images"
    folder.mkdir(parents=True, exist_ok=True)
    for name, draw in PICTURES.items():
        (folder / name).write_text(draw().svg())


if __name__ == "__main__":
    main()
