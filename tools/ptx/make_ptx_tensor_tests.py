#!/usr/bin/env python3
"""Writes the files of tests/ptx for tensor copies and tensor maps.

    python3 tools/ptx/make_ptx_tensor_tests.py

Boxes are walked here element by element, as the manual describes them. tests/sim/insn/ptx_case.h says how
data lies in memory, ptx_map.h how tensor maps are written.
"""

import itertools

from ptx_test_bytes import case, write_files
from ptx_test_numbers import FLOATS, codes_of_small, f16_code, f32_code, rng, round_to, swizzled

WAIT = "{\nWAIT: mbarrier.try_wait.parity.shared::cta.b64 %p14, [%r2], 0; @!%p14 bra WAIT;\n}"


# Tensor copies: a box, element by element, as "Tensors" of the manual describes it.

ELEMENT_BYTES = {"u8": 1, "u16": 2, "u32": 4, "s32": 4, "u64": 8, "s64": 8, "f16": 2, "f32": 4, "f64": 8,
                 "bf16": 2}


class Tensor:
    """dims innermost first; rows may be padded."""

    def __init__(self, element, dims, pad_bytes=0, base=0):
        self.element, self.dims, self.base, self.size = element, dims, base, ELEMENT_BYTES[element]
        self.strides, stride = [], dims[0] * self.size + pad_bytes
        for d in dims[1:]:
            self.strides.append(stride)
            stride *= d
        self.bytes = stride if len(dims) > 1 else dims[0] * self.size

    def offset(self, at):
        """Of an element in global memory; None outside of the tensor."""
        if any(not 0 <= x < d for x, d in zip(at, self.dims)): return None
        return self.base + at[0] * self.size + sum(x * s for x, s in zip(at[1:], self.strides))

    def map(self, where, **fields):
        text = f"element={self.element} at={where}+{self.base} dims=" + ",".join(map(str, self.dims))
        if self.strides: text += " strides=" + ",".join(map(str, self.strides))
        for key, value in fields.items():
            text += f" {key}=" + (",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value))
        return text


def box_positions(coords, box, steps):
    """Coordinates of the elements of a box in the order of shared memory. The innermost step counts not."""
    counts = [box[0]] + [-(-b // s) for b, s in zip(box[1:], steps[1:])]
    strides = [1] + list(steps[1:])
    for idx in itertools.product(*(range(c) for c in reversed(counts))):
        yield [c + i * s for c, i, s in zip(coords, reversed(idx), strides)]


def im2col_positions(coords, dims, lower, upper, steps, channels, pixels, offsets):
    """Pixels one after the other through the bounding box; the filter offsets come on top."""
    at = list(coords)
    for _ in range(pixels):
        for c in range(channels):
            yield [coords[0] + c] + [x + o for x, o in zip(at[1:-1], offsets)] + [at[-1]]
        for i in range(1, len(dims)):
            at[i] += steps[i]
            if i == len(dims) - 1 or at[i] <= dims[i] - 1 + upper[i - 1]: break
            at[i] = lower[i - 1]


def gather(tensor, memory, positions, fill=None):
    data = bytearray()
    for at in positions:
        offset = tensor.offset(at)
        if offset is None: data += fill or bytes(tensor.size)
        else: data += memory[offset:offset + tensor.size]
    return data


def swizzle_image(linear, span):
    """16-byte chunks to their places; the image begins at a multiple of 1024."""
    image = bytearray(-(-len(linear) // 1024) * 1024 if span else len(linear))
    for at in range(0, len(linear), 16): image[swizzled(at, span):swizzled(at, span) + 16] = linear[at:at + 16]
    return image


SETUP = """.shared .align 1024 .b8 tile[{size}]; .shared .align 8 .b64 bar;
mov.u32 %r1, tile; mov.u32 %r2, bar; mad.lo.u32 %r3, %r390, 8, %r1;
mov.b64 %d80, map0; cvta.param.u64 %d80, %d80;
@%p15 mbarrier.init.shared::cta.b64 [%r2], 1; fence.mbarrier_init.release.cluster; bar.warp.sync -1;"""


def coordinates(coords):
    return "{" + ", ".join(map(str, coords)) + "}"


def dump(size):
    return "\n".join(f"ld.shared.b64 %d1, [%r3+{i}]; st.global.b64 [%d92+{i}], %d1;" for i in range(0, size, 256))


def load_case(name, tensor, coords, map_text, image, num_bytes, mode="", extra="", before=""):
    size = -(-len(image) // 256) * 256
    memory = tensor.memory
    mode = mode or "tile"
    body = SETUP.format(size=size) + f"""{before}
    {"".join(f"st.shared.b64 [%r3+{i}], 0;" for i in range(0, size, 256))}
    fence.proxy.async.shared::cta; bar.warp.sync -1;
    @%p15 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], {num_bytes};
    @%p15 cp.async.bulk.prefetch.tensor.{len(coords)}d.L2.global.{mode} [%d80, {coordinates(coords)}]{extra};
    @%p15 cp.async.bulk.tensor.{len(coords)}d.shared::cluster.global.{mode}.mbarrier::complete_tx::bytes
        [%r1], [%d80, {coordinates(coords)}], [%r2]{extra};
    {WAIT}
    """ + dump(size)
    case("tensor_load", name, body, memory, bytes(image) + bytes(size - len(image)), maps=[map_text])


def random_bytes(count): return bytes(rng.getrandbits(8) for _ in range(count))


def tiled(name, element, dims, box, coords, swizzle=0, steps=None, pad=0, fill=None):
    tensor = Tensor(element, dims, pad)
    tensor.memory = random_bytes(tensor.bytes)
    steps = steps or [1] * len(dims)
    positions = list(box_positions(coords, box, steps))
    linear = gather(tensor, tensor.memory, positions, fill)
    text = tensor.map("in", box=box, steps=steps, swizzle=f"{swizzle}B" if swizzle else "none",
                      fill="nan" if fill else "zeros")
    load_case(name, tensor, coords, text, swizzle_image(linear, swizzle), len(linear))


def im2col(name, element, dims, lower, upper, channels, pixels, coords, offsets, steps=None, swizzle=0):
    tensor = Tensor(element, dims)
    tensor.memory = random_bytes(tensor.bytes)
    steps = steps or [1] * len(dims)
    positions = im2col_positions(coords, dims, lower, upper, steps, channels, pixels, offsets)
    linear = gather(tensor, tensor.memory, list(positions))
    text = tensor.map("in", lower=lower, upper=upper, channels=channels, pixels=pixels, steps=steps,
                      swizzle=f"{swizzle}B" if swizzle else "none")
    registers_text = "".join(f"mov.u16 %h{i}, {o};" for i, o in enumerate(offsets))
    load_case(name, tensor, coords, text, swizzle_image(linear, swizzle), len(linear), "im2col",
              ", {" + ", ".join(f"%h{i}" for i in range(len(offsets))) + "}", registers_text)


def tensor_loads():
    tiled("load_1d_u8", "u8", [100 + 12], [64], [16])
    tiled("load_1d_past_the_end", "u16", [40], [32], [16])
    tiled("load_2d_f32", "f32", [12, 9], [8, 5], [4, 2], pad=16)
    tiled("load_2d_before_the_start", "u32", [12, 9], [8, 5], [-4, -2])
    tiled("load_2d_steps", "u16", [24, 12], [16, 7], [8, 1], steps=[1, 3])
    tiled("load_3d_f16_nan", "f16", [16, 5, 4], [8, 4, 3], [8, 3, 2], fill=b"\xff\x7f")
    tiled("load_4d_f64", "f64", [4, 3, 3, 3], [2, 2, 2, 2], [2, 1, 1, 2])
    tiled("load_5d_bf16", "bf16", [8, 3, 3, 2, 3], [8, 2, 2, 2, 2], [0, 1, 2, 0, 1], steps=[1, 1, 1, 1, 2])
    for span in (32, 64, 128):
        tiled(f"load_2d_swizzle_{span}", "bf16", [span // 2 + 8, 20], [span // 2, 16], [8, 3], span)
        tiled(f"load_3d_swizzle_{span}", "u8", [span, 7, 3], [span, 5, 2], [0, 1, 1], span)
    im2col("load_im2col_3d", "f16", [16, 9, 3], [-1], [-1], 8, 16, [8, -1, 0], [2])
    im2col("load_im2col_3d_step", "u32", [8, 11, 2], [0], [0], 4, 8, [4, 0, 0], [0], steps=[1, 2, 1])
    im2col("load_im2col_4d", "f16", [16, 6, 5, 3], [-1, -1], [-1, -1], 16, 32, [0, 2, 1, 0], [1, 2])
    im2col("load_im2col_4d_swizzle", "bf16", [32, 5, 4, 2], [-1, 0], [0, -1], 32, 24, [0, -1, 0, 0], [0, 1],
           swizzle=64)
    im2col("load_im2col_5d", "u8", [16, 4, 3, 3, 2], [-1, -1, -1], [-1, -1, -1], 16, 40, [0, 1, 0, 1, 0],
           [2, 0, 1])


def store_case(file, name, tensor, coords, text, shared, before, after, instruction, mode=""):
    size = -(-len(shared) // 256) * 256
    data = bytes(shared) + bytes(size - len(shared)) + bytes(before)
    body = SETUP.format(size=size) + "\n"
    body += "\n".join(f"ld.global.b64 %d1, [%d91+{i}]; st.shared.b64 [%r3+{i}], %d1;" for i in range(0, size, 256))
    if any(before):
        out_size = -(-len(before) // 256) * 256
        body += "\n" + "\n".join(f"ld.global.b64 %d1, [%d91+{size + i}]; st.global.b64 [%d92+{i}], %d1;"
                                 for i in range(0, out_size, 256))
    body += f"""
    fence.proxy.async; bar.warp.sync -1;
    @%p15 {instruction}.bulk_group [%d80, {coordinates(coords)}], [%r1];
    @%p15 cp.async.bulk.commit_group; @%p15 cp.async.bulk.wait_group 0;"""
    case(file, name, body, data, after, maps=[text])


def stored(tensor, before, positions, linear, combine=lambda old, new: new):
    after, size = bytearray(before), tensor.size
    for i, at in enumerate(positions):
        offset = tensor.offset(at)
        if offset is None: continue
        new = linear[i * size:(i + 1) * size]
        after[offset:offset + size] = combine(bytes(after[offset:offset + size]), new)
    return after


def tensor_stores():
    for name, element, dims, box, coords, swizzle in (
            ("store_1d", "u8", [128], [64], [32], 0), ("store_2d", "f32", [12, 9], [8, 5], [4, 6], 0),
            ("store_3d_past_the_end", "u16", [24, 5, 3], [16, 3, 2], [16, 3, 2], 0),
            ("store_4d", "f64", [4, 3, 3, 2], [2, 2, 2, 2], [2, 1, 1, 0], 0),
            ("store_5d", "bf16", [8, 2, 3, 2, 3], [8, 2, 2, 2, 2], [0, 1, 1, 0, 1], 0),
            ("store_swizzle_32", "bf16", [24, 10], [16, 8], [8, 1], 32),
            ("store_swizzle_64", "f32", [16, 10], [16, 8], [0, 1], 64),
            ("store_swizzle_128", "u8", [128, 10], [128, 8], [0, 1], 128)):
        tensor = Tensor(element, dims)
        positions = list(box_positions(coords, box, [1] * len(dims)))
        linear = random_bytes(len(positions) * tensor.size)
        text = tensor.map("out", box=box, swizzle=f"{swizzle}B" if swizzle else "none")
        before = bytes(tensor.bytes)
        store_case("tensor_store", name, tensor, coords, text, swizzle_image(linear, swizzle), before,
                   stored(tensor, before, positions, linear),
                   f"cp.async.bulk.tensor.{len(dims)}d.global.shared::cta.tile")
    tensor = Tensor("f16", [16, 6, 5, 2])
    coords, lower, upper = [8, -1, 0, 0], [-1, 0], [-1, -1]
    coords = [8, 2, 1, 0]
    positions = list(im2col_positions(coords, tensor.dims, lower, upper, [1] * 4, 8, 16, [0, 0]))
    linear, before = random_bytes(len(positions) * 2), bytes(tensor.bytes)
    text = tensor.map("out", lower=lower, upper=upper, channels=8, pixels=16)
    store_case("tensor_store", "store_im2col_no_offs", tensor, coords, text, linear, before,
               stored(tensor, before, positions, linear),
               "cp.async.bulk.tensor.4d.global.shared::cta.im2col_no_offs")


def integer_op(op, size, is_signed):
    read = lambda x: int.from_bytes(x, "little", signed=is_signed)
    f = {"add": lambda o, n: o + n, "min": min, "max": max, "and": lambda o, n: o & n, "or": lambda o, n: o | n,
         "xor": lambda o, n: o ^ n, "inc": lambda o, n: 0 if o >= n else o + 1,
         "dec": lambda o, n: n if o == 0 or o > n else o - 1}[op]
    return lambda o, n: (f(read(o), read(n)) & ((1 << 8 * size) - 1)).to_bytes(size, "little")


def float_op(op, kind):
    bits, value = FLOATS[kind]
    code = {"f16": f16_code, "f32": f32_code, "bf16": lambda v: round_to(v, 7, -126, 8)}[kind]
    f = {"add": lambda o, n: o + n, "min": min, "max": max}[op]
    read = lambda x: value(int.from_bytes(x, "little"))
    return lambda o, n: code(f(read(o), read(n))).to_bytes(bits // 8, "little")


def tensor_reductions():
    ops = [(op, "u32") for op in ("add", "min", "max", "inc", "dec", "and", "or", "xor")]
    ops += [(op, "s32") for op in ("add", "min", "max", "and")]
    ops += [(op, "u64") for op in ("add", "min", "max", "xor")]
    ops += [(op, "s64") for op in ("min", "max")] + [("add", "f32")]
    ops += [(op, t) for t in ("f16", "bf16") for op in ("add", "min", "max")]
    for op, element in ops:
        tensor = Tensor(element, [16, 5], base=0)
        box, coords = [8, 3], [8, 3]  # one row is outside
        positions = list(box_positions(coords, box, [1, 1]))
        is_float = element in FLOATS
        if is_float:
            codes = sorted(codes_of_small("f32" if element == "f32" else element))
            some = lambda n: b"".join(rng.choice(codes).to_bytes(tensor.size, "little") for _ in range(n))
        else: some = lambda n: random_bytes(n * tensor.size)
        linear, before = some(len(positions)), some(tensor.bytes // tensor.size)
        before += bytes(-len(before) % 256)
        combine = float_op(op, element) if is_float else integer_op(op, tensor.size, element[0] == "s")
        store_case("tensor_reduce", f"reduce_{op}_{element}", tensor, coords, tensor.map("out", box=box), linear,
                   before,
                   stored(tensor, before, positions, linear, combine),
                   f"cp.reduce.async.bulk.tensor.2d.global.shared::cta.{op}.tile")
    tensor = Tensor("u32", [8, 6, 5, 2])
    positions = list(im2col_positions([0, 1, 1, 0], tensor.dims, [0, 0], [0, 0], [1] * 4, 8, 16, [0, 0]))
    linear, before = random_bytes(len(positions) * 4), random_bytes(tensor.bytes)
    before += bytes(-len(before) % 256)
    store_case("tensor_reduce", "reduce_im2col_no_offs", tensor, [0, 1, 1, 0],
               tensor.map("out", lower=[0, 0], upper=[0, 0], channels=8, pixels=16), linear, before,
               stored(tensor, before, positions, linear, integer_op("add", 4, False)),
               "cp.reduce.async.bulk.tensor.4d.global.shared::cta.add.im2col_no_offs")


def multicast():
    """Two CTAs, each loads half of a box for both; then each loads one for the other alone."""
    tensor = Tensor("u16", [16, 8])
    tensor.memory = random_bytes(tensor.bytes)
    whole = gather(tensor, tensor.memory, box_positions([0, 0], [16, 8], [1, 1]))
    body = SETUP.format(size=512) + f"""
    mov.u32 %r10, %cluster_ctarank; xor.b32 %r13, %r10, 1; mul.lo.u32 %r11, %r10, 4;
    mad.lo.u32 %r12, %r10, 128, %r1; add.u32 %r15, %r12, 256;
    @%p15 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 384;
    barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;
    mov.u16 %h1, 3; mov.u32 %r14, 1; shl.b32 %r14, %r14, %r13; cvt.u16.u32 %h2, %r14;
    @%p15 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster
        [%r12], [%d80, {{0, %r11}}], [%r2], %h1;
    @%p15 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster
        [%r15], [%d80, {{0, %r11}}], [%r2], %h2;
    {WAIT}
    ld.shared.b64 %d1, [%r3]; mad.lo.u32 %r20, %r13, 128, %r1; mad.lo.u32 %r20, %r390, 4, %r20;
    ld.shared.u32 %r21, [%r20+256];
    mul.wide.u32 %d10, %r10, 512; add.s64 %d92, %d92, %d10; st.global.b64 [%d92], %d1;
    mul.wide.u32 %d11, %r390, 4; sub.s64 %d92, %d92, %d90; add.s64 %d92, %d92, %d11;
    st.global.u32 [%d92+256], %r21;
    barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"""
    half = lambda rank: whole[128 * rank:128 * rank + 128]
    out = whole + half(1) + bytes(128) + whole + half(0) + bytes(128)
    case("tensor_multicast", "tensor_multicast", body, tensor.memory, out, cluster=2,
         maps=[tensor.map("in", box=[16, 4])])
    body = SETUP.format(size=512).replace("mov.b64 %d80, map0; cvta.param.u64 %d80, %d80;", "") + f"""
    mov.u32 %r10, %cluster_ctarank; mad.lo.u32 %r12, %r10, 128, %r1;
    mul.wide.u32 %d10, %r10, 128; add.s64 %d10, %d93, %d10; mov.u16 %h1, 3;
    @%p15 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 256;
    barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;
    @%p15 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r12],
        [%d10], 128, [%r2], %h1;
    {WAIT}
    mul.wide.u32 %d10, %r10, 256; add.s64 %d92, %d92, %d10; ld.shared.b64 %d1, [%r3]; st.global.b64 [%d92], %d1;
    barrier.cluster.arrive.relaxed; barrier.cluster.wait;"""
    case("tensor_multicast", "bulk_multicast", body, tensor.memory, whole + whole, cluster=2)


def tensormap_edits():
    """A map of another tensor becomes the one that is loaded, field by field, in shared and in global memory."""
    tensor = Tensor("f16", [24, 12], pad_bytes=16)
    tensor.memory = random_bytes(tensor.bytes)
    box, coords, steps = [16, 6], [16, 3], [1, 2]
    linear = gather(tensor, tensor.memory, list(box_positions(coords, box, steps)), b"\xff\x7f")
    fields = [("global_address", "b64", None, "%d93"), ("rank", "b32", None, 1), ("box_dim", "b32", 0, 16),
              ("box_dim", "b32", 1, 6), ("global_dim", "b32", 0, 24), ("global_dim", "b32", 1, 12),
              ("global_stride", "b64", 0, tensor.strides[0]), ("element_stride", "b32", 0, 1),
              ("element_stride", "b32", 1, 2), ("elemtype", "b32", None, "6"),
              ("interleave_layout", "b32", None, "0"),
              ("swizzle_mode", "b32", None, "1"), ("fill_mode", "b32", None, "1")]
    template = Tensor("u32", [8, 4, 2]).map("out", box=[4, 2, 1])

    def edits(space, base):
        lines = []
        for name, t, ordinal, value in fields:
            # What is a code must be a constant, what is a number may be a register.
            if isinstance(value, int):
                lines.append(f"mov.{t} {'%d20' if t == 'b64' else '%r20'}, {value};")
                value = "%d20" if t == "b64" else "%r20"
            operands = f"[{base}], " + (f"{ordinal}, " if ordinal is not None else "") + str(value)
            lines.append(f"@%p15 tensormap.replace.tile.{name}.{space}.b1024.{t} {operands};")
        return "\n".join(lines)

    load = f"""st.shared.b64 [%r3], 0; fence.proxy.async.shared::cta; bar.warp.sync -1;
    fence.proxy.tensormap::generic.acquire.gpu [%d81], 128;
    @%p15 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], {len(linear)};
    @%p15 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r1],
        [%d81, {coordinates(coords)}], [%r2];
    {WAIT}
    """ + dump(256)
    image = swizzle_image(linear, 32)[:256]
    scratch = ".global .align 128 .b8 {}_map[128];"
    setup = SETUP.format(size=1024) + """
    .shared .align 128 .b8 edited[128]; mov.u32 %r30, edited;
    setp.lt.u32 %p1, %r390, 16; mad.lo.u32 %r31, %r390, 8, %r30; add.s64 %d82, %d80, %d90;
    mov.u64 %d81, {}_map; cvta.global.u64 %d81, %d81; add.s64 %d83, %d81, %d90;
    @%p1 ld.b64 %d84, [%d82];"""
    case("tensormap", "replace_in_shared", setup.format("replace_in_shared") + f"""
    @%p1 st.shared.b64 [%r31], %d84; bar.warp.sync -1;
    {edits("shared::cta", "%r30")}
    bar.warp.sync -1;
    tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%d81], [%r30], 128;
    """ + load, tensor.memory, image, maps=[template], module=scratch.format("replace_in_shared"))
    case("tensormap", "replace_in_global", setup.format("replace_in_global") + f"""
    @%p1 st.global.b64 [%d83], %d84; bar.warp.sync -1;
    {edits("global", "%d81")}
    fence.proxy.tensormap::generic.release.gpu; bar.warp.sync -1;
    """ + load, tensor.memory, image, maps=[template], module=scratch.format("replace_in_global"))


def main():
    tensor_loads()
    tensor_stores()
    tensor_reductions()
    multicast()
    tensormap_edits()
    write_files("make_ptx_tensor_tests.py")


if __name__ == "__main__":
    main()
