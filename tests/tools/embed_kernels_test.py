"""What the build reads from ptxas and from PTX."""

import argparse
import pathlib
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

    def test_images_are_packed_and_listed_with_their_sizes(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "attention").mkdir()
            base = folder / "attention" / "k.sm_90a"
            base.with_name("k.sm_90a.ptx").write_text(PTX)
            base.with_name("k.sm_90a.cubin").write_bytes(b"\x7fELF" + bytes(1000))
            base.with_name("k.sm_90a.ptxas").write_text(REPORT)
            embed_kernels.embed(argparse.Namespace(folder=folder, toolkit="13.0.88", specs=["attention/k.sm_90a"]))
            self.assertEqual(zlib.decompress(base.with_name("k.sm_90a.ptx.z").read_bytes()).decode(), PTX)
            self.assertEqual(len(zlib.decompress(base.with_name("k.sm_90a.cubin.z").read_bytes())), 1004)
            assembly, table = (folder / "images.S").read_text(), (folder / "table.cpp").read_text()
            self.assertIn('k.sm_90a.ptx.z"', assembly)
            self.assertIn('{"clean", "attention/k", "sm_90a", packed(tilewright_image_attention_k_sm_90a_ptx, '
                          f"tilewright_image_attention_k_sm_90a_ptx_end, {len(PTX)}),", table)
            self.assertIn("_cubin_end, 1004),", table)


if __name__ == "__main__":
    unittest.main()
