#!/usr/bin/env python3
"""Writes the files of tests/ptx for control flow, calls, barriers and contraction.

    python3 tools/ptx/make_ptx_control_tests.py

tests/sim/insn/ptx_case.h says how data lies in memory.
"""

import struct

from ptx_test_bytes import LANES, case, write_files
from ptx_test_numbers import FLOATS, f16_code, f32_code, rng, round_to


def words(values): return b"".join((v & (1 << 64) - 1).to_bytes(8, "little") for v in values)


# Contraction: what becomes fma is rounded once, what does not twice. Which is which: ptxas's SASS.

def bf16_code(v): return round_to(v, 7, -126, 8)
def f64_code(v): return round_to(v, 52, -1022, 11)


def f64_value(code):
    return __import__("fractions").Fraction(struct.unpack("<d", struct.pack("<Q", code))[0])


KINDS = {"f32": (32, FLOATS["f32"][1], f32_code), "f64": (64, f64_value, f64_code),
         "f16": (16, FLOATS["f16"][1], f16_code), "bf16": (16, FLOATS["bf16"][1], bf16_code)}


def near_one(kind):
    """Codes of random numbers from 0.5 to 2, all bits used."""
    bits = KINDS[kind][0]
    mantissa = {"f32": 23, "f64": 52, "f16": 10, "bf16": 7}[kind]
    bias = {"f32": 127, "f64": 1023, "f16": 15, "bf16": 127}[kind]
    return rng.getrandbits(1) << (bits - 1) | (bias - rng.getrandbits(1)) << mantissa | rng.getrandbits(mantissa)


def thrice(f, x): return f(f(f(x)))


def contraction(name, kind, text, result, file="contract", machine=None, pair=False, target="sm_90a"):
    """result(r, a, b, c) gives the values; r rounds once and is called where the instruction rounds.
    %x0 .. %x2 are inputs a, b, c, %y0 and %y1 the results."""
    bits, value, code = KINDS[kind]
    lanes = 2 if pair else 1
    inputs = [[[near_one(kind) for _ in range(lanes)] for _ in range(LANES)] for _ in range(3)]
    outputs = [[], []]
    r = lambda v: value(code(v))
    for lane in range(LANES):
        packed = [0, 0]
        for part in range(lanes):
            got = result(r, *(value(inputs[i][lane][part]) for i in range(3)))
            got = got if isinstance(got, tuple) else (got, 0)
            for i in range(2): packed[i] |= code(got[i]) << bits * part
        for i in range(2): outputs[i].append(packed[i])
    width = bits * lanes
    prefix = {16: "%h", 32: "%f" if kind == "f32" else "%r", 64: "%d"}[width]
    store = f"b{width}"
    declared = ""
    if kind == "f64": declared, prefix = ".reg .f64 %e<16>;", "%e"
    body = declared + "\n" + "\n".join(f"ld.global.{store} {prefix}{i}, [%d91+{256 * i}];" for i in range(3))
    body += f"\nmov.{store} {prefix}9, {prefix}0;\n" + text.replace("%x", prefix).replace("%y", prefix + "1")
    body += "".join(f"\nst.global.{store} [%d92+{256 * i}], {prefix}1{i};" for i in range(2))
    data = b"".join(words(v[part] if lanes == 1 else v[0] | v[1] << bits for v in row for part in [0])
                    for row in inputs)
    none = {"f32": "0f00000000", "f64": "0d0000000000000000"}.get(kind, "0")
    zero = "" if "%y1" in text else f"mov.{store} {prefix}11, {none};"
    body = body.replace(f"mov.{store} {prefix}9, {prefix}0;", zero)
    case(file, name, body, data, b"".join(words(o) for o in outputs), machine=machine, target=target)


def contractions(file="contract", machine=None):
    """With machine = separate_mul_add every operation is rounded on its own."""
    fuse = (lambda r, v: v) if machine is None else (lambda r, v: r(v))  # what happens to a product
    name = lambda n: n if machine is None else "separate_" + n
    def add(n, kind, text, result, **more): contraction(name(n), kind, text, result, file, machine, **more)
    for kind in KINDS:
        add(f"add_{kind}", kind, f"mul.{kind} %x3, %x0, %x1; add.{kind} %y0, %x3, %x2;",
            lambda r, a, b, c: r(fuse(r, a * b) + c))
        add(f"add_commuted_{kind}", kind, f"mul.{kind} %x3, %x0, %x1; add.{kind} %y0, %x2, %x3;",
            lambda r, a, b, c: r(fuse(r, a * b) + c))
        add(f"sub_{kind}", kind, f"mul.{kind} %x3, %x0, %x1; sub.{kind} %y0, %x3, %x2;",
            lambda r, a, b, c: r(fuse(r, a * b) - c))
        add(f"sub_from_{kind}", kind, f"mul.{kind} %x3, %x0, %x1; sub.{kind} %y0, %x2, %x3;",
            lambda r, a, b, c: r(c - fuse(r, a * b)))
        add(f"rounding_named_{kind}", kind, f"mul.rn.{kind} %x3, %x0, %x1; add.{kind} %y0, %x3, %x2; "
            f"mul.{kind} %x4, %x0, %x1; add.rn.{kind} %y1, %x4, %x2;",
            lambda r, a, b, c: (r(r(a * b) + c), r(r(a * b) + c)))
    for kind in ("f16", "bf16"):
        add(f"add_{kind}x2", kind, f"mul.{kind}x2 %x3, %x0, %x1; add.{kind}x2 %y0, %x3, %x2;",
            lambda r, a, b, c: r(fuse(r, a * b) + c), pair=True)
        add(f"sub_from_{kind}x2", kind, f"mul.{kind}x2 %x3, %x0, %x1; sub.{kind}x2 %y0, %x2, %x3;",
            lambda r, a, b, c: r(c - fuse(r, a * b)), pair=True)
    add("two_additions", "f32", "mul.f32 %x3, %x0, %x1; add.f32 %y0, %x3, %x2; sub.f32 %y1, %x3, %x0;",
        lambda r, a, b, c: (r(fuse(r, a * b) + c), r(fuse(r, a * b) - a)))
    add("product_also_stored", "f32", "mul.f32 %x3, %x0, %x1; add.f32 %y0, %x3, %x2; mov.f32 %y1, %x3;",
        lambda r, a, b, c: (r(r(a * b) + c), r(a * b)))
    add("product_twice", "f32", "mul.f32 %x3, %x0, %x1; add.f32 %y0, %x3, %x3;",
        lambda r, a, b, c: r(2 * r(a * b)))
    add("two_products", "f32", "mul.f32 %x3, %x0, %x1; mul.f32 %x4, %x1, %x2; add.f32 %y0, %x3, %x4; "
        "mul.f32 %x5, %x0, %x1; mul.f32 %x6, %x1, %x2; sub.f32 %y1, %x6, %x5;",
        lambda r, a, b, c: (r(fuse(r, a * b) + r(b * c)), r(fuse(r, b * c) - r(a * b))))
    add("single_use_first", "f32", "mul.f32 %x3, %x0, %x1; mul.f32 %x4, %x1, %x2; add.f32 %y1, %x3, %x0; "
        "add.f32 %y0, %x3, %x4;", lambda r, a, b, c: (r(r(a * b) + fuse(r, b * c)), r(r(a * b) + a)))
    add("dot3", "f32", "mul.f32 %x3, %x0, %x0; mul.f32 %x4, %x1, %x1; mul.f32 %x5, %x2, %x2; "
        "add.f32 %x6, %x3, %x4; add.f32 %y0, %x6, %x5;",
        lambda r, a, b, c: r(r(fuse(r, a * a) + r(b * b)) + fuse(r, c * c)))
    add("guarded_addition", "f32", "mul.f32 %x3, %x0, %x1; setp.gt.f32 %p1, %x0, %x2; mov.f32 %y0, %x2; "
        "@%p1 add.f32 %y0, %x3, %x2;", lambda r, a, b, c: r(fuse(r, a * b) + c) if a > c else c)
    add("guarded_product", "f32", "mov.f32 %x3, %x2; setp.gt.f32 %p1, %x0, %x2; @%p1 mul.f32 %x3, %x0, %x1; "
        "add.f32 %y0, %x3, %x2;", lambda r, a, b, c: r((r(a * b) if a > c else c) + c))
    add("other_block", "f32", "mul.f32 %x3, %x0, %x1; setp.gt.f32 %p1, %x0, %x2; @%p1 bra PAST;\n"
        "  bar.warp.sync -1;\nPAST: add.f32 %y0, %x3, %x2;", lambda r, a, b, c: r(r(a * b) + c))
    add("label_nobody_jumps_to", "f32", "mul.f32 %x3, %x0, %x1;\nNEXT: add.f32 %y0, %x3, %x2;",
        lambda r, a, b, c: r(fuse(r, a * b) + c))
    add("loop", "f32", "mov.u32 %r1, 0; mov.f32 %y0, %x2;\nAGAIN: mul.f32 %x3, %y0, %x1; add.f32 %y0, %x3, %x0; "
        "add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 3; "
        "@%p1 bra AGAIN;", lambda r, a, b, c: thrice(lambda y: r(fuse(r, y * b) + a), c))
    add("stale_product_in_a_loop", "f32", "mov.u32 %r1, 0; mov.f32 %y0, %x2; mul.f32 %x3, %x0, %x1;\n"
        "AGAIN: add.f32 %y0, %x3, %y0; add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 2; @%p1 bra AGAIN;",
        lambda r, a, b, c: r(r(a * b) + r(r(a * b) + c)))
    add("register_used_again", "f32", "mul.f32 %x3, %x0, %x1; add.f32 %x3, %x3, %x2; mul.f32 %x4, %x3, %x1; "
        "add.f32 %x4, %x4, %x0; mov.f32 %y0, %x3; mov.f32 %y1, %x4;", lambda r, a, b, c: (r(fuse(r, a * b) + c),
            r(fuse(r, r(fuse(r, a * b) + c) * b) + a)))
    add("factor_is_constant", "f32", "mul.f32 %x3, %x0, 0f40490fdb; sub.f32 %y0, 0f3f800000, %x3;",
        lambda r, a, b, c: r(1 - fuse(r, a * FLOATS["f32"][1](0x40490fdb))))
    add("saturated", "f32", "mul.f32 %x3, %x0, %x1; add.sat.f32 %y0, %x3, %x2; mul.sat.f32 %x4, %x0, %x1; "
        "add.f32 %y1, %x4, %x2;", lambda r, a, b, c: (min(max(r(fuse(r, a * b) + c), 0), 1),
            r(min(max(r(a * b), 0), 1) + c)))


def f32x2():
    for name, product, total in (("unnamed", "", ""), ("named", ".rn", ".rn"), ("mixed", "", ".rn")):
        data = [[near_one("f32") | near_one("f32") << 32 for _ in range(LANES)] for _ in range(3)]
        value = FLOATS["f32"][1]
        half = lambda lane, part: f32_code(value(data[0][lane] >> part & 0xffffffff) *
                                           value(data[1][lane] >> part & 0xffffffff) +
                                           value(data[2][lane] >> part & 0xffffffff))
        out = [half(lane, 0) | half(lane, 32) << 32 for lane in range(LANES)]
        case("contract_f32x2", f"f32x2_{name}", f"""ld.global.b64 %d1, [%d91]; ld.global.b64 %d2, [%d91+256];
        ld.global.b64 %d3, [%d91+512]; mul{product}.f32x2 %d4, %d1, %d2; add{total}.f32x2 %d5, %d4, %d3;
        st.global.b64 [%d92], %d5;""", b"".join(map(words, data)), words(out), target="sm_100")


# Recursion. The functions stand before the kernel that calls them.

def result_of(name, module, call, f, inputs):
    """A kernel that calls {k}_f with the lane's word and stores what it gives."""
    body = f"""ld.global.b64 %d1, [%d91]; cvt.u32.u64 %r1, %d1;
    {{
    .param .b32 p; .param .b32 q;
    st.param.b32 [p], %r1;
    {call}
    ld.param.b32 %r2, [q];
    }}
    st.global.u32 [%d92], %r2;"""
    case("recursion", name, body, words(inputs), words(f(x) & 0xffffffff for x in inputs), module=module)


def recursion():
    rising = [l % 11 for l in range(LANES)]
    factorial = lambda x: 1 if x == 0 else x * factorial(x - 1)
    result_of("factorial", """
.func (.param .b32 out) factorial_f(.param .b32 n)
{
  .reg .pred %p; .reg .b32 %n, %m, %r;
  ld.param.b32 %n, [n];
  setp.eq.u32 %p, %n, 0;
  mov.u32 %r, 1;
  @%p bra DONE;
  sub.u32 %m, %n, 1;
  { .param .b32 a; .param .b32 b; st.param.b32 [a], %m; call (b), factorial_f, (a); ld.param.b32 %r, [b]; }
  mul.lo.u32 %r, %r, %n;
DONE:
  st.param.b32 [out], %r;
  ret;
}""", "call (q), factorial_f, (p);", factorial, rising)
    fibonacci = lambda x: x if x < 2 else fibonacci(x - 1) + fibonacci(x - 2)
    result_of("fibonacci", """
.func (.param .b32 out) fibonacci_f(.param .b32 n)
{
  .reg .pred %p; .reg .b32 %n, %m, %x, %y; .reg .pred %kept;
  ld.param.b32 %n, [n];
  setp.lt.u32 %p, %n, 2;
  st.param.b32 [out], %n;
  @%p ret;
  and.b32 %x, %n, 1; setp.eq.u32 %kept, %x, 1;
  sub.u32 %m, %n, 1;
  { .param .b32 a; .param .b32 b; st.param.b32 [a], %m; call (b), fibonacci_f, (a); ld.param.b32 %x, [b]; }
  sub.u32 %m, %m, 1;
  { .param .b32 a; .param .b32 b; st.param.b32 [a], %m; call (b), fibonacci_f, (a); ld.param.b32 %y, [b]; }
  add.u32 %x, %x, %y;
  and.b32 %y, %n, 1; @%kept sub.u32 %y, %y, 1; add.u32 %x, %x, %y;
  st.param.b32 [out], %x;
  ret;
}""", "call (q), fibonacci_f, (p);", fibonacci, rising)
    result_of("even_and_odd", """
.func (.param .b32 out) even_and_odd_odd(.param .b32 n);
.func (.param .b32 out) even_and_odd_f(.param .b32 n)
{
  .reg .pred %p; .reg .b32 %n, %r;
  ld.param.b32 %n, [n]; setp.eq.u32 %p, %n, 0; mov.u32 %r, 100;
  sub.u32 %n, %n, 1;
  { .param .b32 a; .param .b32 b; st.param.b32 [a], %n; st.param.b32 [b], %r;
  @!%p call (b), even_and_odd_odd, (a); ld.param.b32 %r, [b]; }
  add.u32 %r, %r, 1; st.param.b32 [out], %r; ret;
}
.func (.param .b32 out) even_and_odd_odd(.param .b32 n)
{
  .reg .pred %p; .reg .b32 %n, %r;
  ld.param.b32 %n, [n]; setp.eq.u32 %p, %n, 0; mov.u32 %r, 200; @%p bra END;
  sub.u32 %n, %n, 1;
  { .param .b32 a; .param .b32 b; st.param.b32 [a], %n; call (b), even_and_odd_f, (a); ld.param.b32 %r, [b]; }
END: add.u32 %r, %r, 1; st.param.b32 [out], %r; ret;
}""", "call (q), even_and_odd_f, (p);", lambda x: (100 if x % 2 == 0 else 200) + x + 1, rising)

    def sums(x):
        """Each level adds its number to an array of the first level, which is then summed up."""
        return sum(level * level for level in range(x + 1))
    result_of("pointer_into_another_frame", """
.func pointer_into_another_frame_add(.param .b64 to, .param .b32 n)
{
  .reg .pred %p; .reg .b32 %n, %s; .reg .b64 %to, %own; .local .align 4 .b8 cell[4];
  ld.param.b64 %to, [to]; ld.param.b32 %n, [n]; mul.lo.u32 %s, %n, %n;
  mov.u64 %own, cell; cvta.local.u64 %own, %own; st.u32 [%own], %s; ld.local.u32 %s, [cell];
  { .reg .b64 %at; mad.wide.u32 %at, %n, 4, %to; st.u32 [%at], %s; }
  setp.eq.u32 %p, %n, 0; @%p ret;
  sub.u32 %n, %n, 1;
  { .param .b64 a; .param .b32 b; st.param.b64 [a], %to; st.param.b32 [b], %n;
  call pointer_into_another_frame_add, (a, b); }
  ret;
}
.func (.param .b32 out) pointer_into_another_frame_f(.param .b32 n)
{
  .reg .pred %p; .reg .b32 %n, %i, %s, %x; .reg .b64 %to, %at; .local .align 4 .b8 squares[64];
  ld.param.b32 %n, [n]; mov.u64 %to, squares; cvta.local.u64 %to, %to;
  { .param .b64 a; .param .b32 b; st.param.b64 [a], %to; st.param.b32 [b], %n;
  call pointer_into_another_frame_add, (a, b); }
  mov.u32 %s, 0; mov.u32 %i, 0;
MORE: mad.wide.u32 %at, %i, 4, %to; ld.u32 %x, [%at]; add.u32 %s, %s, %x; add.u32 %i, %i, 1;
setp.le.u32 %p, %i, %n;
  @%p bra MORE;
  st.param.b32 [out], %s; ret;
}""", "call (q), pointer_into_another_frame_f, (p);", sums, rising)
    tripled = lambda x: 7 if x == 0 else 3 * tripled(x - 1) + x
    result_of("by_pointer", """
.func (.param .b32 out) by_pointer_f(.param .b32 n);
.global .u64 by_pointer_table[1] = { by_pointer_f };
.func (.param .b32 out) by_pointer_f(.param .b32 n)
{
  .reg .pred %p; .reg .b32 %n, %m, %r; .reg .b64 %f;
  ld.param.b32 %n, [n]; setp.eq.u32 %p, %n, 0; mov.u32 %r, 7; @%p bra DONE;
  sub.u32 %m, %n, 1; ld.global.u64 %f, [by_pointer_table];
  { .param .b32 a; .param .b32 b; st.param.b32 [a], %m;
  KIND: .callprototype (.param .b32 _) _ (.param .b32 _);
  call (b), %f, (a), KIND; ld.param.b32 %r, [b]; }
  mad.lo.u32 %r, %r, 3, %n;
DONE: st.param.b32 [out], %r; ret;
}""", "call (q), by_pointer_f, (p);", tripled, rising)


def store_words(*rows): return "\n".join(f"st.global.b64 [%d92+{256 * i}], {r};" for i, r in enumerate(rows))


def control():
    index = [rng.randrange(4) for _ in range(LANES)]
    case("branches", "brx_idx", """ld.global.u32 %r1, [%d91]; mov.u64 %d1, 0;
    TABLE: .branchtargets ZERO, ONE, TWO, ONE;
    brx.idx %r1, TABLE;
    ZERO: add.s64 %d1, %d1, 5;
    ONE: add.s64 %d1, %d1, 70; bra.uni END;
    TWO: add.s64 %d1, %d1, 900;
    END: st.global.b64 [%d92], %d1;""", words(index), words({0: 75, 1: 70, 2: 900, 3: 70}[i] for i in index))
    case("branches", "exit_of_some_lanes", """ld.global.u32 %r1, [%d91]; setp.eq.u32 %p1, %r1, 2;
    mov.u64 %d1, 1; st.global.b64 [%d92], %d1; @%p1 exit; activemask.b32 %r2; mov.b64 %d1, {%r2, %r1};
    st.global.b64 [%d92], %d1;""", words(index),
         words(1 if i == 2 else sum(1 << l for l in range(LANES) if index[l] != 2) | i << 32 for i in index))
    case("branches", "ret_of_some_lanes", """setp.lt.u32 %p1, %r390, 9; mov.u64 %d1, 1; @!%p1 ret;
    st.global.b64 [%d92], %d1;""", b"", words(int(l < 9) for l in range(LANES)))
    case("branches", "setmaxnreg", """setmaxnreg.dec.sync.aligned.u32 40; bar.sync 0;
    setmaxnreg.inc.sync.aligned.u32 64;
    cvt.u64.u32 %d1, %r390; st.global.b64 [%d92], %d1;""", b"", words(range(128)), threads=128,
         directives=".maxntid 128\n.maxnreg 64\n")

    for size in (1, 2):
        case("branches", f"is_explicit_cluster_{size}", """mov.pred %p1, %is_explicit_cluster;
        selp.u64 %d1, 7, 8, %p1;
        mov.u32 %r1, %cluster_ctarank; setp.eq.u32 %p2, %r1, 0; @%p2 st.global.b64 [%d92], %d1;""", b"",
             words([7 if size > 1 else 8] * LANES), cluster=size)


def barriers():
    threads = 96
    values = [rng.getrandbits(1) for _ in range(threads)]
    ones = sum(values)
    load = "ld.global.u32 %r1, [%d91]; setp.ne.u32 %p1, %r1, 0;"
    for word in ("bar", "barrier", "barrier.cta"):
        aligned = "" if word == "bar" else ".aligned"
        for form, suffix in (("", ""), (", 96", "_count")):
            case("barriers", f"{word}_red{suffix}", f"""{load}
            {word}.red.popc{aligned}.u32 %r2, 1{form}, %p1; {word}.red.and{aligned}.pred %p2, 2{form}, %p1;
            {word}.red.or{aligned}.pred %p3, 3{form}, !%p1; selp.u32 %r3, 1, 0, %p2; selp.u32 %r4, 2, 0, %p3;
            add.u32 %r3, %r3, %r4; mov.b64 %d1, {{%r2, %r3}}; st.global.b64 [%d92], %d1;""",
                 words(values), words([ones | (int(ones == threads) + 2 * int(ones < threads)) << 32] * threads),
                 threads=threads)
        arrive = "bar" if word == "bar" else word
        case("barriers", f"{word}_arrive", f""".shared .align 8 .b64 cell[96]; mov.u32 %r5, cell;
        mad.lo.u32 %r6, %r390, 8, %r5;
        ld.global.b64 %d1, [%d91]; setp.ge.u32 %p1, %r390, 64; mov.u64 %d3, 0;
        @%p1 bra CONSUME;
        st.shared.b64 [%r6], %d1; {arrive}.arrive{aligned} 4, 96; bra.uni END;
        CONSUME: {arrive}.sync{aligned} 4, 96; ld.shared.b64 %d3, [%r6+-256]; ld.shared.b64 %d4, [%r6+-512];
        add.s64 %d3, %d3, %d4;
        END: st.global.b64 [%d92], %d3;""", words(values),
             words(0 if l < 64 else values[l - 32] + values[l - 64] for l in range(threads)), threads=threads)
    case("barriers", "barrier_by_lanes", """.shared .align 8 .b64 cell[32]; mov.u32 %r5, cell;
    mad.lo.u32 %r6, %r390, 8, %r5;
    and.b32 %r1, %r390, 1; setp.eq.u32 %p1, %r1, 0; cvt.u64.u32 %d1, %r390; @%p1 bra EVEN;
    st.shared.b64 [%r6], %d1; barrier.sync 1; bra.uni END;
    EVEN: mul.lo.u64 %d1, %d1, 3; st.shared.b64 [%r6], %d1; barrier.sync 1;
    END: xor.b32 %r7, %r6, 8; ld.shared.b64 %d2, [%r7]; st.global.b64 [%d92], %d2;""", b"",
         words((l ^ 1) * (3 if l % 2 else 1) for l in range(LANES)))
    remote = """.shared .align 8 .b64 cell[32]; mov.u32 %r5, cell; mad.lo.u32 %r6, %r390, 8, %r5;
    mov.u32 %r7, %cluster_ctarank; mad.lo.u32 %r8, %r7, 1000, %r390; cvt.u64.u32 %d1, %r8;
    xor.b32 %r9, %r7, 1; mapa.shared::cluster.u32 %r10, %r6, %r9;"""
    end = """mul.wide.u32 %d3, %r7, 256; add.s64 %d3, %d92, %d3; ld.shared.b64 %d2, [%r6];
    st.global.b64 [%d3], %d2;"""
    for name, arrive, wait in (("plain", "", ""), ("orders", ".release", ".acquire"),
                               ("aligned", ".release.aligned", ".acquire.aligned")):
        case("barriers", f"cluster_{name}", f"""{remote}
        barrier.cluster.arrive{".relaxed" + arrive.replace(".release", "") if name == "orders" else arrive};
        barrier.cluster.wait{wait};
        st.shared::cluster.b64 [%r10], %d1;
        barrier.cluster.arrive{arrive}; barrier.cluster.wait{wait}; {end}""", b"",
             words((1000 * (1 - c) + l) for c in range(2) for l in range(LANES)), cluster=2)
    case("barriers", "membar_proxy", """ld.global.b64 %d1, [%d91]; membar.proxy.alias;
    st.global.b64 [%d92], %d1;""", words(values[:32]),
         words(values[:32]))


def bulk_stores():
    case("st.bulk", "st_bulk", """.shared .align 16 .b8 cell[512]; mov.u32 %r5, cell;
    mad.lo.u32 %r6, %r390, 8, %r5;
    ld.global.b64 %d1, [%d91]; st.shared.b64 [%r6], %d1; st.shared.b64 [%r6+256], %d1; bar.warp.sync -1;
    cvt.u64.u32 %d4, %r5; @%p15 st.bulk.weak.shared::cta [%d4+64], 256, 0; bar.warp.sync -1;
    ld.shared.b64 %d2, [%r6]; ld.shared.b64 %d3, [%r6+256]; st.global.b64 [%d92], %d2;
    st.global.b64 [%d92+256], %d3;""",
         words(range(1, 33)), words([*range(1, 9)] + [0] * 24 + [0] * 8 + [*range(9, 33)]), target="sm_100")


def main():
    contractions()
    contractions("contract_off", "separate_mul_add")
    f32x2()
    recursion()
    control()
    barriers()
    bulk_stores()
    write_files("make_ptx_control_tests.py")


if __name__ == "__main__":
    main()
