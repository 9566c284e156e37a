"""Which kernels are mutated, and the programs and shapes that run them.

A shape is a command that runs the operator and compares its results with float64, and how many SMs the device
has (0: all). The first shape of a kernel is small, and every ring of tiles goes around at least twice in it. The
others have long rings, edges, groups of heads or empty tiles; they are for mutants that the first does not find.
"""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Shape:
    command: tuple  # the program's name in build/*/bin, and its arguments
    sms: int


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    title: str
    device: str
    entry: str
    shapes: tuple

    @property
    def target(self):
        """Of the image that the device runs: entries of both chips have two."""
        return "sm_90a" if self.device == "h200" else "sm_100f"


def tool(device, words, sms):
    return Shape(("tilewright", *words.split(), "--check", "--device", f"sim:{device}"), sms)


def attention(name, title, device, entry, options, first, *further):
    words = f"attention --inputs normal {options} --shape "
    shapes = tuple(tool(device, words + shape, sms) for shape, sms in (first, *further))
    return Case(name, title, device, entry, shapes)


def command(name, title, entry, words, first, *further, device="h200"):
    shapes = tuple(tool(device, f"{words} {options}", sms) for options, sms in (first, *further))
    return Case(name, title, device, entry, shapes)


def tests(name, title, entry, *names):
    """Tests that launch the kernel once, with results that are compared."""
    shapes = tuple(Shape(("kernels_tests", f"--gtest_filter=SimTest/{test}/b200", "--gtest_brief=1"), 0)
                   for test in names)
    return Case(name, title, "b200", entry, shapes)


def operator_tests(title_and_names, suite):
    """The same of an operator's tests."""
    for name, title, entry, *found in title_and_names:
        shapes = tuple(Shape(("ops_tests", f"--gtest_filter=SimTest/{suite}.{test}/b200", "--gtest_brief=1"), 2)
                       for test in found)
        yield Case(name, title, "b200", entry, shapes)


MOE_SHAPES = {
    "few": (("--shape 4/2/512/512 --tokens 20", 2), ("--shape 2/2/1024/1024 --tokens 150", 2),
                  ("--shape 8/1/256/128 --tokens 3", 4)),
    "2cta_n256": (("--shape 2/2/512/1024 --tokens 150", 2), ("--shape 2/2/1024/1024 --tokens 300", 2),
                  ("--shape 8/1/256/128 --tokens 3", 4)),
}

CASES = (
    attention("k3", "K3", "h200", "attention_k3_2_bf16_d64", "--kernel k3_2 --causal",
              ("1,1,1,100,500,64", 2), ("1,4,2,70,2300,64", 1)),
    attention("k4_1", "K4.1", "h200", "attention_k4_1_bf16_d64", "--kernel k4_1 --causal",
              ("1,1,1,100,500,64", 2), ("1,4,2,70,2300,64", 1)),
    attention("k4_2", "K4.2", "h200", "attention_k4_2_bf16_d64", "--kernel k4_2 --causal",
              ("1,1,1,100,500,64", 2), ("1,4,2,70,2300,64", 1)),
    attention("k5", "K5", "h200", "attention_k5_bf16_d64", "--kernel k5 --causal",
              ("1,1,1,200,1100,64", 2), ("1,2,1,100,5000,64", 1), ("2,3,1,300,200,64", 1)),
    attention("k6", "K6", "h200", "attention_k6_bf16_d128", "--kernel k6 --causal",
              ("1,1,1,300,700,128", 1), ("1,1,1,200,4200,128", 1), ("2,2,1,400,50,128", 2)),
    attention("k7", "K7", "h200", "attention_k7_d128_rows", "--dtype e4m3 --kernel k7 --causal",
              ("1,1,1,300,500,128", 1), ("1,1,1,250,3300,128", 1), ("2,2,1,400,50,128", 2)),
    command("decode_tma", "decode bf16, TMA", "decode_bf16_d128_r16_tma",
            "decode --kernel r16_tma --heads 4 --kv-heads 1",
            ("--batch 1 --keys 700 --splits 1", 2), ("--batch 1 --keys 3000 --splits 1", 1),
            ("--keys 900 --splits 8 --batch 3 --lengths random", 16),
            ("--batch 1 --keys 300 --splits 1 --append", 2)),
    command("decode_cp_async", "decode bf16, cp.async", "decode_bf16_d128_r16",
            "decode --kernel r16 --heads 4 --kv-heads 1",
            ("--batch 1 --keys 700 --splits 1", 2), ("--batch 1 --keys 3000 --splits 1", 1),
            ("--keys 900 --splits 8 --batch 3 --lengths random", 16),
            ("--batch 1 --keys 300 --splits 1 --append", 2)),
    command("decode_e4m3", "decode e4m3", "decode_e4m3_d128_r16_tma",
            "decode --kv e4m3 --kernel r16_tma --heads 4 --kv-heads 1",
            ("--batch 1 --keys 700 --splits 1", 2), ("--batch 1 --keys 3000 --splits 1", 1),
            ("--keys 1024 --splits 8 --batch 3", 16),
            ("--batch 1 --keys 255 --splits 1 --append", 2)),
    command("sparse_wgmma", "sparse, wgmma", "sparse_decode_wgmma_fp8", "sparse-attention --heads 64",
            ("--batch 1 --window 300 --compressed 100", 1),
            ("--batch 1 --window 2000 --compressed 2000 --check-queries 1", 1),
            ("--batch 4 --window 300 --compressed 100", 1)),
    command("sparse_few_heads", "sparse, few heads", "sparse_few_heads_fp8_h8", "sparse-attention --heads 8",
            ("--batch 1 --window 300 --compressed 100", 2),
            ("--batch 2 --window 6000 --compressed 6000 --check-queries 1", 4)),
    command("sparse_pair", "sparse, pair", "sparse_decode_pair_fp8", "sparse-attention --kernel pair --heads 70",
            ("--batch 1 --window 500 --compressed 100", 2),
            ("--batch 3 --q-len 2 --window 200 --compressed 300 --lengths per_query", 2),
            ("--batch 2 --window 300 --compressed 100", 16), device="b200"),
    command("sparse_pair_bf16", "sparse, pair, bf16", "sparse_decode_pair_bf16",
            "sparse-attention --kernel pair_tiles --heads 40 --format bf16",
            ("--batch 1 --q-len 3 --window 500 --compressed 100", 2),
            ("--batch 3 --q-len 2 --window 200 --compressed 300 --lengths per_query", 2),
            ("--batch 2 --q-len 2 --window 300 --compressed 100", 16), device="b200"),
    command("wide_bf16", "linear wide bf16", "linear_wide_bf16_nvfp4", "linear --kernel",
            ("wide_bf16_t128_s2 --m 130 --n 256 --k 1024", 4), ("wide_bf16_t128_s2 --m 300 --n 640 --k 2048", 4),
            ("wide_bf16_t128_s2 --m 130 --n 1024 --k 1024", 4), ("wide_bf16_t128_r2 --m 256 --n 1024 --k 128", 4),
            ("wide_bf16_t128_r2 --m 256 --n 1024 --k 2048", 4)),
    command("wide_e4m3", "linear wide e4m3", "linear_wide_e4m3_fp4_t128",
            "linear --activations fp8 --kernel wide_e4m3_fp4_t128_s2",
            ("--m 128 --n 256 --k 2048", 4), ("--m 300 --n 640 --k 4096", 4)),
    command("band", "linear band", "linear_band_nvfp4_n32", "linear --kernel band",
            ("--m 40 --n 256 --k 1024", 2), ("--m 70 --n 512 --k 4096", 1)),
    command("direct", "linear direct", "linear_direct_nvfp4_n8", "linear --kernel direct",
            ("--m 8 --n 128 --k 1024", 4), ("--m 5 --n 256 --k 4096", 4)),
    tests("stage_b", "stage B", "attention_sm100_stage_b_bf16_d64", "Sm100StageB.OneRaggedLaunch",
          "Sm100StageB.OneLongLaunch"),
    attention("stage_c", "stage C", "b200", "attention_sm100_stage_c_bf16_d64", "--kernel sm100_c --causal",
              ("1,1,1,200,1100,64", 2), ("1,2,1,100,5000,64", 1), ("2,3,1,300,200,64", 1)),
    tests("stage_d", "stage D", "attention_sm100_stage_d_bf16_deepseek", "Sm100StageD.OneRaggedLaunch",
          "Sm100StageD.OneLongLaunch"),
    attention("stage_e", "stage E", "b200", "attention_sm100_stage_e_bf16_d64", "--kernel sm100_e --causal",
              ("1,1,1,300,1100,64", 2), ("1,2,1,200,5000,64", 1), ("2,3,1,300,200,64", 1)),
    attention("stage_f", "stage F", "b200", "attention_sm100_stage_f_bf16_d256", "--kernel sm100_f --causal",
              ("1,1,1,200,600,256", 2), ("1,1,1,200,3000,256", 2), ("2,3,1,200,200,256", 4)),
    tests("stage_g", "stage G", "attention_sm100_stage_g_bf16_deepseek", "Sm100StageG.OneRaggedLaunch",
          "Sm100StageG.OneLongLaunch"),
    attention("stage_h", "stage H", "b200", "attention_sm100_stage_h_e4m3_d128",
              "--dtype e4m3 --kernel sm100_h --causal",
              ("1,1,1,300,500,128", 1), ("1,1,1,250,3300,128", 1), ("2,2,1,400,50,128", 2)),
    *operator_tests((("pages_e", "stage E, pages", "attention_sm100_pages_bf16_d64", "OneLaunchOfHeads",
                      "OneLongLaunchOfHeads"),
                     ("pages_f", "stage F, pages", "attention_sm100_pages_bf16_d256", "OneLaunchOfWideHeads",
                      "OneLongLaunchOfWideHeads")), "AttentionPagedTest"),
    *operator_tests((("pages_h", "stage H, pages", "attention_sm100_pages_e4m3_d128", "OneLaunchOfE4m3Queries",
                      "OneLongLaunchOfE4m3Queries"),
                     ("pages_widened", "stage E, pages widened", "attention_sm100_pages_bf16_e4m3_d64",
                      "OneLaunchOfWidenedCodes", "OneLongLaunchOfWidenedCodes")), "AttentionPagedE4m3Test"),
    command("decode_tensor", "decode on Blackwell", "decode_tensor_16bit_r16",
            "decode --kernel t16 --heads 4 --kv-heads 1",
            ("--batch 1 --keys 1900 --splits 1", 2), ("--batch 1 --keys 5000 --splits 1", 1),
            ("--keys 900 --splits 8 --batch 3 --lengths random", 16),
            ("--batch 1 --keys 700 --splits 1 --page 3", 2),
            ("--batch 1 --keys 300 --splits 1 --append", 2), device="b200"),
    command("decode_tensor_e4m3", "decode of codes on Blackwell", "decode_tensor_e4m3_r16",
            "decode --kv e4m3 --kernel t16 --heads 4 --kv-heads 1",
            ("--batch 1 --keys 1900 --splits 1", 2), ("--batch 1 --keys 5000 --splits 1", 1),
            ("--keys 1024 --splits 8 --batch 3", 16),
            ("--batch 1 --keys 300 --splits 1 --append", 2), device="b200"),
    tests("nvfp4_1cta", "NVFP4 GEMM 1 CTA", "sm100_nvfp4_gemm_bf16_1cta_n128",
          "Sm100BlockScaledGemm.OneLaunchOfOneCta", "Sm100BlockScaledGemm.OneLongLaunchOfOneCta"),
    tests("nvfp4_2cta", "NVFP4 GEMM 2 CTA", "sm100_nvfp4_gemm_bf16_2cta_n192",
          "Sm100BlockScaledGemm.OneLaunchOfTwoCtas", "Sm100BlockScaledGemm.OneLongLaunchOfTwoCtas"),
    tests("nvfp4_4cta", "NVFP4 GEMM 4 CTA", "sm100_nvfp4_gemm_bf16_4cta_n256",
          "Sm100BlockScaledGemm.OneLaunchOfFourCtas", "Sm100BlockScaledGemm.OneLongLaunchOfFourCtas"),
    command("bf16_2cta", "linear bf16, pair of CTAs", "sm100_bf16_gemm_2cta_n256",
            "linear --format bf16 --kernel tensor_bf16_2cta_n256",
            ("--m 300 --n 384 --k 1024", 2), ("--m 700 --n 592 --k 2048", 2), ("--m 40 --n 1008 --k 192", 6),
            device="b200"),
    command("bf16_few", "linear bf16, few tokens", "sm100_bf16_gemm_few",
            "linear --format bf16 --kernel tensor_bf16_few",
            ("--m 8 --n 384 --k 4096", 8), ("--m 200 --n 208 --k 8192", 8), ("--m 33 --n 496 --k 1024", 4),
            device="b200"),
    command("e4m3_2cta", "linear e4m3, pair of CTAs", "sm100_e4m3_gemm_2cta_n256",
            "linear --format fp8 --activations fp8 --kernel tensor_e4m3_2cta_n256",
            ("--m 300 --n 384 --k 2048", 2), ("--m 700 --n 592 --k 2048", 2), ("--m 40 --n 1008 --k 384", 6),
            device="b200"),
    command("e4m3_few", "linear e4m3, few tokens", "sm100_e4m3_gemm_few",
            "linear --format fp8 --activations fp8 --kernel tensor_e4m3_few",
            ("--m 8 --n 384 --k 8192", 8), ("--m 200 --n 208 --k 8192", 8), ("--m 33 --n 496 --k 2048", 4),
            device="b200"),
    *(command(f"moe_{part}_{tile}", f"experts, {title}, {tile}", f"sm100_moe_nvfp4_{part}_{tile}",
              f"moe --activations block_scaled --kernel {tile}", *shapes, device="b200")
      for tile, shapes in MOE_SHAPES.items() for part, title in (("gate_up", "gate and up"), ("down", "down"))),
    *(command(f"indexer_{form}", f"indexer {form}, tcgen05", f"sm100_indexer_logits_{form}",
              f"indexer --topk 20 --format {form}",
              ("--heads 64 --batch 2 --q-len 8 --keys 900", 1), ("--heads 64 --q-len 1 --keys 4000", 1),
              ("--heads 20 --batch 3 --q-len 5 --keys 300 --page 23 --lengths drawn", 2), device="b200")
      for form in ("fp8", "mxfp4")),
)
