"""The instructions whose numbers record_tensor_numbers.py records, and a kernel of PTX for each.

A kernel takes (in, out); CTA i does product i. Its words of `in` are, for mma.sync, those of A, B and C of lane
0, of lane 1 and so on; for wgmma the image of A and B in shared memory, then the same of A (if it is in
registers) and C of 128 threads. Its words of `out` are those of D, thread by thread.
"""

import dataclasses

E4M3, E5M2 = "e4m3", "e5m2"
BITS = {"f64": 64, "tf32": 32, "f16": 16, "bf16": 16, E4M3: 8, E5M2: 8, "s8": 8, "u8": 8, "s4": 4, "u4": 4,
        "b1": 1}


@dataclasses.dataclass
class Form:
    name: str
    m: int
    n: int
    k: int
    d: str
    a: str
    b: str
    modifiers: str = ""  # before the types
    suffix: str = ""  # behind them
    is_wgmma: bool = False
    is_a_in_registers: bool = False
    scales: str = ""  # of wgmma: scale-d, then the immediates
    repeats: int = 1  # the same product added again and again
    is_variant: bool = False  # of a form that computes alike

    @property
    def threads(self):
        return 128 if self.is_wgmma else 32

    @property
    def a_words(self):
        """Registers of A of a thread, in words."""
        if self.is_wgmma and not self.is_a_in_registers:
            return 0
        return self.m * self.k * BITS[self.a] // 32 // self.threads

    @property
    def b_words(self):
        return 0 if self.is_wgmma else self.n * self.k * BITS[self.b] // 32 // 32

    @property
    def d_words(self):
        return self.m * self.n * (16 if self.d == "f16" else 64 if self.d == "f64" else 32) // 32 // self.threads

    @property
    def image_words(self):
        if not self.is_wgmma:
            return 0
        return (8 * self.n if self.is_a_in_registers else 8 * (64 + self.n))

    @property
    def in_words(self):
        return self.image_words + self.threads * (self.a_words + self.b_words + self.d_words)

    @property
    def out_words(self):
        return self.threads * self.d_words


def mma_forms():
    def add(name, m, k, d, a, b, **more):
        forms.append(Form(name, m, 8, k, d, a, b, **more))
    forms = []
    for k in (8, 16):
        add(f"mma_k{k}_f32_bf16", 16, k, "f32", "bf16", "bf16")
        add(f"mma_k{k}_f32_f16", 16, k, "f32", "f16", "f16")
        add(f"mma_k{k}_f16_f16", 16, k, "f16", "f16", "f16")
    for k in (4, 8):
        add(f"mma_k{k}_f32_tf32", 16, k, "f32", "tf32", "tf32")
    for k in (16, 32):
        for d in ("f32", "f16"):
            for a in (E4M3, E5M2):
                for b in (E4M3, E5M2):
                    add(f"mma_k{k}_{d}_{a}_{b}", 16, k, d, a, b)
    for m, k in ((8, 4), (16, 4), (16, 8), (16, 16)):
        add(f"mma_m{m}k{k}_f64", m, k, "f64", "f64", "f64")
    for saturates in ("", ".satfinite"):
        name = saturates.replace(".satfinite", "_sat")
        for m, k, a, b in ((8, 16, "s8", "s8"), (16, 16, "u8", "s8"), (16, 32, "s8", "u8"), (8, 32, "s4", "u4"),
                           (16, 32, "s4", "s4"), (16, 64, "u4", "s4")):
            add(f"mma_m{m}k{k}_{a}_{b}{name}", m, k, "s32", a, b, modifiers=saturates)
    for op in ("and", "xor"):
        for m, k in ((8, 128), (16, 128), (16, 256)):
            add(f"mma_m{m}k{k}_b1_{op}", m, k, "s32", "b1", "b1", suffix=f".{op}.popc")
    return forms


def wgmma_forms():
    def add(name, d, a, b, **more):
        is_variant = name.count("_") > 3 or (a in (E4M3, E5M2) and a == b) or (a == b and name.count("_") > 2)
        forms.append(Form(name, 64, 8, 256 // BITS[a], d, a, b, is_wgmma=True, is_variant=is_variant, **more))
    forms = []
    dense, plain = "1, 1, 1, 0, 0", "1, 1, 1"
    add("wgmma_f32_bf16", "f32", "bf16", "bf16", scales=dense)
    add("wgmma_f32_f16", "f32", "f16", "f16", scales=dense)
    add("wgmma_f16_f16", "f16", "f16", "f16", scales=dense)
    add("wgmma_f32_tf32", "f32", "tf32", "tf32", scales=plain)
    for d in ("f32", "f16"):
        for a in (E4M3, E5M2):
            for b in (E4M3, E5M2):
                add(f"wgmma_{d}_{a}_{b}", d, a, b, scales=plain)
    add("wgmma_f32_bf16_registers", "f32", "bf16", "bf16", scales="1, 1, 1, 0", is_a_in_registers=True)
    add("wgmma_f32_e4m3_e5m2_registers", "f32", E4M3, E5M2, scales=plain, is_a_in_registers=True)
    add("wgmma_f32_bf16_without_c", "f32", "bf16", "bf16", scales="0, 1, 1, 0, 0")
    add("wgmma_f16_f16_negated_a", "f16", "f16", "f16", scales="1, -1, 1, 0, 0")
    add("wgmma_f32_e4m3_e4m3_negated_b", "f32", E4M3, E4M3, scales="1, 1, -1")
    add("wgmma_f32_bf16_thrice", "f32", "bf16", "bf16", scales=dense, repeats=3)
    add("wgmma_f32_e4m3_e4m3_thrice", "f32", E4M3, E4M3, scales=plain, repeats=3)
    add("wgmma_f16_e5m2_e5m2_thrice", "f16", E5M2, E5M2, scales=plain, repeats=3)
    add("wgmma_s8_s8", "s32", "s8", "s8", scales="1")
    add("wgmma_u8_s8_sat", "s32", "u8", "s8", modifiers=".satfinite", scales="1")
    add("wgmma_b1_and", "s32", "b1", "b1", suffix=".and.popc", scales="1")
    return forms


def forms():
    return mma_forms() + wgmma_forms()


def registers(letter, count):
    return "{" + ", ".join(f"%{letter}{i}" for i in range(count)) + "}"


def moves(form, letter, count, space, base, offset, is_store=False):
    """Loads or stores of a thread's registers, one by one."""
    size = 8 if form.d == "f64" else 4
    kind = "f64" if form.d == "f64" else "b32"
    lines = []
    for i in range(count * 4 // size):
        place = f"[{base}+{offset + size * i}]"
        lines.append(f"st.{space}.{kind} {place}, %{letter}{i};" if is_store
                     else f"ld.{space}.{kind} %{letter}{i}, {place};")
    return lines


def results(form, letter):
    return [f"mad.wide.u32 %u, %t, {4 * form.d_words}, %u;",
            *moves(form, letter, form.d_words, "global", "%u", 0, True)]


def wgmma_product(form, count):
    a = registers("a", form.a_words) if form.is_a_in_registers else "%ad"
    types = f"{form.modifiers}.{form.d}.{form.a}.{form.b}{form.suffix}"
    head = f"wgmma.mma_async.sync.aligned.m64n{form.n}k{form.k}{types}"
    scale_d, *immediates = [part.strip() for part in form.scales.split(",")]
    rest = "".join(f", {value}" for value in immediates)
    return [f"setp.ne.u32 %p, {scale_d}, 0;", "wgmma.fence.sync.aligned;",
            *[f"{head} {registers('c', count)}, {a}, %bd, %p{rest};"] * form.repeats,
            "wgmma.commit_group.sync.aligned;", "wgmma.wait_group.sync.aligned 0;"]


def wgmma_body(form):
    a_bytes = 0 if form.is_a_in_registers else 2048
    per_thread = 4 * (form.a_words + form.d_words)
    lines = ["mov.u32 %s, image;", "shl.b32 %o, %t, 2;", "add.u32 %q, %s, %o;", "cvt.u64.u32 %w, %o;",
             "add.u64 %w, %i, %w;"]
    for first in range(0, form.image_words, 128):
        if form.image_words - first < 128:
            lines.append(f"setp.ge.u32 %p, %t, {form.image_words - first};")
            lines.append("@%p bra filled;")
        lines += [f"ld.global.b32 %x, [%w+{4 * first}];", f"st.shared.b32 [%q+{4 * first}], %x;"]
    lines += ["filled:", "fence.proxy.async.shared::cta;", "bar.sync 0;",
              f"mad.wide.u32 %i, %t, {per_thread}, %i;", f"add.u64 %i, %i, {4 * form.image_words};"]
    lines += moves(form, "a", form.a_words, "global", "%i", 0)
    lines += moves(form, "c", form.d_words, "global", "%i", 4 * form.a_words)
    # Core matrices of 8 rows of 16 bytes; the two of a row's 32 bytes are neighbours.
    lines += ["shr.u32 %x, %s, 4;", "cvt.u64.u32 %ad, %x;", "or.b64 %ad, %ad, 0x1000080000;",
              f"add.u64 %bd, %ad, {a_bytes // 16};"]
    lines += wgmma_product(form, form.d_words)
    return lines + results(form, "c")


def mma_body(form):
    per_thread = 4 * (form.a_words + form.b_words + form.d_words)
    size = 2 if form.d == "f64" else 1
    counts = [words // size for words in (form.d_words, form.a_words, form.b_words, form.d_words)]
    operands = ", ".join(registers(letter, count) for letter, count in zip("dabc", counts))
    return [f"mad.wide.u32 %i, %t, {per_thread}, %i;", *moves(form, "a", form.a_words, "global", "%i", 0),
            *moves(form, "b", form.b_words, "global", "%i", 4 * form.a_words),
            *moves(form, "c", form.d_words, "global", "%i", 4 * (form.a_words + form.b_words)),
            f"mma.sync.aligned.m{form.m}n8k{form.k}.row.col{form.modifiers}.{form.d}.{form.a}.{form.b}.{form.d}"
            f"{form.suffix} {operands};",
            *results(form, "d")]


def kernel(form):
    kind = "f64" if form.d == "f64" else "b32"
    lines = [".reg .pred %p;", ".reg .b32 %t, %x, %s, %o, %q;", ".reg .b64 %i, %u, %w, %ad, %bd;",
             f".reg .{kind} %a<16>, %b<16>, %c<16>, %d<16>;"]
    if form.is_wgmma:
        lines.append(f".shared .align 128 .b8 image[{4 * form.image_words}];")
    lines += ["ld.param.u64 %i, [in];", "ld.param.u64 %u, [out];", "mov.u32 %t, %ctaid.x;",
              f"mad.wide.u32 %i, %t, {4 * form.in_words}, %i;", f"mad.wide.u32 %u, %t, {4 * form.out_words}, %u;",
              "mov.u32 %t, %tid.x;"]
    lines += (wgmma_body if form.is_wgmma else mma_body)(form) + ["ret;"]
    return (f".visible .entry {form.name}(.param .u64 in, .param .u64 out) {{\n  " + "\n  ".join(lines) + "\n}\n")


def module():
    head = ("// Made by tools/ptx/record_tensor_numbers.py: one product per CTA "
            "(tools/ptx/tensor_number_forms.py says which words).\n"
            ".version 8.7\n.target sm_90a\n.address_size 64\n\n")
    return head + "\n".join(kernel(form) for form in forms())
