"""What the build reads from ptxas and from PTX."""

import argparse
import pathlib
import struct
import sys
import tempfile
import unittest
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import embed_kernels  # noqa: E402

REPORT = """ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'clean' for 'sm_90a'
ptxas info    : Function properties for clean
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 34 registers, used 2 barriers, 512 bytes smem, 400 bytes cmem[0]
ptxas info    : Compiling entry function 'spilling' for 'sm_90a'
ptxas info    : Function properties for spilling
    96 bytes stack frame, 88 bytes spill stores, 120 bytes spill loads
ptxas info    : Used 255 registers
"""
PTX = """.visible .entry clean(
	.param .u64 clean_param_0
)
{
	// begin inline asm
	{
mbarrier.init.shared::cta.b64 [%r1], %r2;
}
	// end inline asm
	@%p1 wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f1}, %rd1, %rd2, p, 1, 1;
	ret;
}
	// .globl	spilling
.visible .entry spilling(
	.param .u64 spilling_param_0
)
{
	// mma.sync in a comment is no instruction
	ret;
}
"""


def elf(sections):
    """An image with these sections, as far as the embedder reads it."""
    names = b"".join(name.encode() + b"\0" for name in [*sections, ".names"])
    contents = [*sections.values(), names]
    headers, name_at, at = b"", 0, 64
    for name, content in zip([*sections, ".names"], contents):
        headers += struct.pack("<IIQQQQIIQQ", name_at, 1, 0, 0, at, len(content), 0, 0, 1, 0)
        name_at, at = name_at + len(name) + 1, at + len(content)
    header = bytearray(64)
    header[:4] = b"\x7fELF"
    struct.pack_into("<Q", header, 0x28, at)
    struct.pack_into("<3H", header, 0x3a, 64, len(contents), len(sections))
    return bytes(header) + b"".join(contents) + headers


class EmbedKernels(unittest.TestCase):
    def test_facts_are_read_per_entry(self):
        facts = embed_kernels.facts(REPORT)
        self.assertEqual(facts["clean"], dict(registers=34, stack=0, spill_stores=0, spill_loads=0, shared=512,
                                              barriers=2))
        self.assertEqual(facts["spilling"], dict(registers=255, stack=96, spill_stores=88, spill_loads=120,
                                                 shared=0, barriers=0))

    def test_entries_and_tensor_core_use_are_found(self):
        self.assertEqual(embed_kernels.ENTRY.findall(PTX), ["clean", "spilling"])
        self.assertTrue(embed_kernels.TENSOR.search(embed_kernels.entry_body(PTX, "clean")))
        self.assertFalse(embed_kernels.TENSOR.search(embed_kernels.entry_body(PTX, "spilling")))
        for line in ("tcgen05.mma.cta_group::1.kind::f16 [%r1], %rd1, %rd2, %r2, %p1;",
                     "  mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f1}, {%r1}, {%r2}, {%f1};",
                     "@!%p2 tcgen05.mma.ws.cta_group::1.kind::f16 [%r1], %rd1, %rd2, %r2, %p1;"):
            self.assertTrue(embed_kernels.TENSOR.search(line), line)

    def test_only_the_ptx_inside_a_cubin_is_blanked(self):
        text = b".version 9.0 " * 99
        before = {".text": b"code", ".nv_debug_ptx_txt": text, ".debug_line": b"lines", ".info": b"x"}
        after = before | {".nv_debug_ptx_txt": bytes(len(text))}
        self.assertEqual(embed_kernels.without_ptx_text(elf(before)), elf(after))
        self.assertEqual(embed_kernels.without_ptx_text(elf(after)), elf(after))

    def test_kernels_for_tests_have_a_table_of_their_own(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            for stem in ("a", "b"):
                (folder / f"{stem}.sm_90a.ptx").write_text(f".visible .entry {stem}(\n")
                (folder / f"{stem}.sm_90a.cubin").write_bytes(elf({".text": b"code"}))
                (folder / f"{stem}.sm_90a.ptxas").write_text(f"Compiling entry function '{stem}' for 'sm_90a'\n")
            for test in ([], ["b.sm_90a"]):
                embed_kernels.embed(argparse.Namespace(folder=folder, toolkit="13.0.88", test=test,
                                                       specs=["a.sm_90a"]))
            shipped, every = (folder / "table.cpp").read_text(), (folder / "test_table.cpp").read_text()
            self.assertNotIn('{"b", "b", "sm_90a"', shipped)
            self.assertNotIn("image_b_", (folder / "images.S").read_text())
            self.assertNotIn("image_a_", (folder / "test_images.S").read_text())
            for entry in ("a", "b"):
                self.assertIn(f'{{"{entry}", "{entry}", "sm_90a"', every)

    def test_images_are_packed_and_listed_with_their_sizes(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "attention").mkdir()
            base = folder / "attention" / "k.sm_90a"
            base.with_name("k.sm_90a.ptx").write_text(PTX)
            base.with_name("k.sm_90a.cubin").write_bytes(elf({".text": b"code" * 250}))
            base.with_name("k.sm_90a.ptxas").write_text(REPORT)
            size = base.with_name("k.sm_90a.cubin").stat().st_size
            for kind in ("ptx", "cubin"):
                embed_kernels.pack(base.with_name(f"k.sm_90a.{kind}"))
            embed_kernels.embed(argparse.Namespace(folder=folder, toolkit="13.0.88", test=[],
                                                   specs=["attention/k.sm_90a"]))
            self.assertEqual(zlib.decompress(base.with_name("k.sm_90a.ptx.z").read_bytes()).decode(), PTX)
            self.assertEqual(len(zlib.decompress(base.with_name("k.sm_90a.cubin.z").read_bytes())), size)
            assembly, table = (folder / "images.S").read_text(), (folder / "table.cpp").read_text()
            self.assertIn('k.sm_90a.ptx.z"', assembly)
            self.assertIn('{"clean", "attention/k", "sm_90a", packed(tilewright_image_attention_k_sm_90a_ptx, '
                          f"tilewright_image_attention_k_sm_90a_ptx_end, {len(PTX)}),", table)
            self.assertIn(f"_cubin_end, {size}),", table)


if __name__ == "__main__":
    unittest.main()
