// Attention on sm_100f, stage by stage, on the simulated B200 with all its checks.
#include "kernels/attention_sm100/stage_a_qk.h"
#include "kernels/attention_sm100/stage_b_two_mma.h"
#include "kernels/attention_sm100/stage_c_online_softmax.h"
#include "kernels/attention_sm100/stage_e_two_tiles.h"
#include "kernels/attention_sm100/stage_f_cta_pair.h"
#include "tests/kernels/attention_sm100_check.h"

#include <limits>

#include <gmock/gmock.h>

namespace tilewright::kernels {
namespace {

const Sm100KernelUnderTest kStageB = {"attention_sm100_stage_b", stage_b_tile};
const Sm100KernelUnderTest kStageC = {"attention_sm100_stage_c", stage_c_tile};

const Sm100KernelUnderTest kStageE = {"attention_sm100_stage_e", stage_e_tile};
const Sm100KernelUnderTest kStageF = {.stem = "attention_sm100_stage_f",
                                      .tile = stage_f_tile,
                                      .ctas = [](int) { return 2; },
                                      .box_keys = kStageFBoxKeys};

class Sm100StageA : public BlackwellKernelTest {
 protected:
  static device::abi::CUtensorMap map(const Device& device, device::abi::CUdeviceptr address,
                                      device::TensorMapType type, int rows, int columns) {
    const std::uint32_t bytes = type == device::TensorMapType::kFloat32 ? 4 : 2;
    return device::encode_tensor_map(
        device, {.name = "stage A",
                 .type = type,
                 .address = address,
                 .dims = {static_cast<std::uint64_t>(columns), static_cast<std::uint64_t>(rows)},
                 .strides_bytes = {static_cast<std::uint64_t>(columns) * bytes},
                 .box = {128 / bytes, 128},
                 .swizzle = device::TensorMapSwizzle::k128B});
  }

  void check(int q_len, int kv_len, int head_dim, const FormatSpec& format) {
    SCOPED_TRACE(fmt::format("{} x {} x {}", q_len, kv_len, head_dim));
    const std::vector<double> q = draw_normal(1, std::int64_t{q_len} * head_dim, format),
                              k = draw_normal(2, std::int64_t{kv_len} * head_dim, format);
    const Buffer q_buffer = Buffer::from(device(), encode_all<std::uint16_t>(format, q)),
                 k_buffer = Buffer::from(device(), encode_all<std::uint16_t>(format, k));
    const Output<float> s(device(), static_cast<std::size_t>(q_len) * kv_len);
    const auto type =
        format == kBf16 ? device::TensorMapType::kBfloat16 : device::TensorMapType::kFloat16;
    StageAParams params = {};
    store_map(params.q_map, map(device(), q_buffer.address(), type, q_len, head_dim));
    store_map(params.k_map, map(device(), k_buffer.address(), type, kv_len, head_dim));
    store_map(params.s_map,
              map(device(), s.address(), device::TensorMapType::kFloat32, q_len, kv_len));
    params.head_dim = head_dim;
    run_kernel(device(),
               format == kBf16 ? "attention_sm100_stage_a_bf16" : "attention_sm100_stage_a_f16",
               {.grid = {ceil_div(kv_len, kStageATile), ceil_div(q_len, kStageATile)},
                .block = {kStageAThreads},
                .dynamic_shared_bytes = kStageASharedBytes},
               params);
    const std::vector<float> got = s.read();
    const std::vector<double> values(got.begin(), got.end());
    check_gemm({q_len, kv_len, head_dim}, q, k, Numbers::kUniform, kBf16TensorCore, kFp32, values);
    EXPECT_GE(cosine(values, reference::linear({q_len, kv_len, head_dim}, q, k)), 0.999999);
  }
};
TILEWRIGHT_ON_EVERY_BLACKWELL(Sm100StageA);

TEST_P(Sm100StageA, ScoresThroughTensorMemory) {
  check(128, 128, 128, kBf16);  // the document's shape
  check(128, 128, 64, kFp16);
  check(100, 140, 320, kBf16);  // more stages than the ring has, and edges
}

// The identity for a softmax: out = round(scale q k^T) v, against the same in float64.
class Sm100StageB : public Sm100AttentionTest {
 protected:
  void check(const AttentionProblem& p, const FormatSpec& format) {
    SCOPED_TRACE(fmt::format("{} d{}", format == kBf16 ? "bf16" : "f16", p.head_dim));
    const AttentionInputs in(p, format);
    const AttentionTile tile = stage_b_tile(p.head_dim, 1);
    AttentionOperands operands(device(), p, format, in);
    AttentionParams params = operands.params(device(), AttentionMaps::kSwizzled, tile);
    params.scale_log2 = 0.125f;
    launch(device(), kStageB, p, format, tile, params);
    compare_products(p, in, format, operands.read().out);
  }

  /// Errors of the scores, their rounding, and the second product, as of a GEMM each.
  static void compare_products(const AttentionProblem& p, const AttentionInputs& in,
                               const FormatSpec& format, const std::vector<double>& got) {
    const double roundoff = std::ldexp(1, -format.mantissa_bits - 1);
    const double qk = tensor_core_bound(kBf16TensorCore, p.head_dim, 1);
    const double pv = tensor_core_bound(kBf16TensorCore, (p.kv_len + 127) / 128 * 128, 1);
    std::vector<double> exact(got.size());
    for (int i = 0; i < p.q_len; ++i) {
      std::vector<double> score(p.kv_len), size(p.kv_len);
      for (int j = 0; j < p.kv_len; ++j) {
        for (int c = 0; c < p.head_dim; ++c) {
          const double term = in.q[i * p.head_dim + c] * in.k[j * p.head_dim + c] * 0.125;
          score[j] += term;
          size[j] += std::abs(term);
        }
      }
      for (int c = 0; c < p.head_dim; ++c) {
        double sum = 0, error = 0, magnitude = 0;
        for (int j = 0; j < p.kv_len; ++j) {
          const double v = in.v[j * p.head_dim + c], off = qk * size[j];
          const double p_off = off + roundoff * (std::abs(score[j]) + off) + 0x1p-24;
          sum += score[j] * v;
          error += p_off * std::abs(v);
          magnitude += (std::abs(score[j]) + p_off) * std::abs(v);
        }
        error += pv * magnitude;
        error += roundoff * (std::abs(sum) + error);
        exact[i * p.head_dim + c] = sum;
        ASSERT_LE(std::abs(got[i * p.head_dim + c] - sum), error) << "row " << i << ", " << c;
      }
    }
    EXPECT_GE(cosine(got, exact), 0.99999);
  }
};
TILEWRIGHT_ON_EVERY_BLACKWELL(Sm100StageB);

TEST_P(Sm100StageB, ScoresBecomeTheNextOperand) {
  for (const FormatSpec* format : {&kBf16, &kFp16}) {
    check({.q_len = 128, .kv_len = 128, .head_dim = 64}, *format);
    check({.q_len = 128, .kv_len = 128, .head_dim = 128}, *format);
  }
  check({.q_len = 40, .kv_len = 300, .head_dim = 64}, kBf16);
}

// One launch each, in which every ring goes around: tools/mutate.py runs them with changed kernels.
TEST_P(Sm100StageB, OneRaggedLaunch) {
  check({.q_len = 40, .kv_len = 700, .head_dim = 64}, kBf16);
}
TEST_P(Sm100StageB, OneLongLaunch) {
  check({.q_len = 140, .kv_len = 2300, .head_dim = 64}, kBf16);
}

// The mistake of the documents, kept: P in the accumulator's places, read as if it were packed.
TEST_P(Sm100StageB, TheSimulatorNamesWhatLiesInTheAccumulatorsPlaces) {
  for (const FormatSpec* format : {&kBf16, &kFp16}) {
    std::string said;
    {
      const AttentionProblem p = {.q_len = 128, .kv_len = 128, .head_dim = 64};
      const AttentionInputs in(p, *format);
      const AttentionTile tile = stage_b_tile(p.head_dim, 1);
      AttentionOperands operands(device(), p, *format, in);
      AttentionParams params = operands.params(device(), AttentionMaps::kSwizzled, tile);
      ::testing::internal::CaptureStderr();
      EXPECT_THROW(launch(device(), {"attention_sm100_stage_b_wrong", stage_b_tile}, p, *format,
                          tile, params),
                   Error);
      said = ::testing::internal::GetCapturedStderr();
    }
    EXPECT_THAT(said, ::testing::HasSubstr("[tmem]"));
    EXPECT_THAT(said, ::testing::ContainsRegex(
                          "written as accumulator column [0-9]+ of row [0-9]+, read as A element"));
    EXPECT_THAT(said, ::testing::HasSubstr("tilewright layout draw tmem.A.m128.k64.16bit"));
    abandon_device();
    SetUp();
  }
}

class Sm100StageC : public Sm100AttentionTest {};
TILEWRIGHT_ON_EVERY_BLACKWELL(Sm100StageC);

TEST_P(Sm100StageC, HeadDimsAndMasks) {
  check_attention(kStageC, {.q_len = 128, .kv_len = 256, .head_dim = 64}, kBf16);
  check_attention(kStageC, {.q_len = 130, .kv_len = 300, .head_dim = 64, .is_causal = true}, kFp16);
  check_attention(kStageC, {.q_len = 32, .kv_len = 384, .head_dim = 128, .is_causal = true}, kBf16);
  check_attention(kStageC, {.q_len = 4, .kv_len = 128, .head_dim = 256}, kBf16);
  check_attention(kStageC, {.q_len = 64, .kv_len = 200, .head_dim = 512, .is_causal = true}, kFp16);
}

TEST_P(Sm100StageC, RaggedLengths) {
  for (const auto& [q_len, kv_len] :
       {std::pair{1, 1}, {1, 200}, {33, 64}, {5, 0}, {0, 7}, {140, 61}, {3, 500}}) {
    for (const bool is_causal : {false, true}) {
      check_attention(kStageC,
                      {.q_len = q_len, .kv_len = kv_len, .head_dim = 64, .is_causal = is_causal},
                      is_causal ? kBf16 : kFp16);
    }
  }
}

TEST_P(Sm100StageC, HeadsShareATile) {
  check_attention(
      kStageC, {.batch = 2, .heads = 8, .kv_heads = 1, .q_len = 1, .kv_len = 150, .head_dim = 128},
      kBf16);
  check_attention(kStageC,
                  {.batch = 2,
                   .heads = 6,
                   .kv_heads = 2,
                   .q_len = 50,
                   .kv_len = 75,
                   .head_dim = 64,
                   .is_causal = true,
                   .is_heads_first = true,
                   .gap = 16},
                  kBf16);
  check_attention(
      kStageC, {.heads = 64, .q_len = 3, .kv_len = 130, .head_dim = 64, .is_causal = true}, kFp16);
}

TEST_P(Sm100StageC, PackedSequencesWindowsAndSinks) {
  check_attention(kStageC,
                  {.heads = 2,
                   .kv_heads = 1,
                   .head_dim = 64,
                   .is_causal = true,
                   .q_lens = {70, 0, 3, 64},
                   .kv_lens = {90, 5, 0, 200}},
                  kBf16);
  check_attention(
      kStageC, {.q_len = 200, .kv_len = 420, .head_dim = 64, .window_left = 60, .window_right = 3},
      kBf16);
  check_attention(
      kStageC,
      {.heads = 3, .q_len = 20, .kv_len = 140, .head_dim = 64, .sink = {1.5f, -3.0f, 40.0f}},
      kFp16);
  // The first 20 rows see no key: nothing but the sink.
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  check_attention(kStageC,
                  {.heads = 4,
                   .q_len = 60,
                   .kv_len = 40,
                   .head_dim = 64,
                   .is_causal = true,
                   .sink = {0.5f, kInfinity, -kInfinity, 40.0f}},
                  kBf16);
}

// Scores that grow by much and by little from tile to tile: both ways of the rescaling.
TEST_P(Sm100StageC, RescalesWhenTheMaximumGrows) {
  for (const double scale : {0.01, 0.125, 3.0})
    check_attention(kStageC, {.q_len = 128, .kv_len = 512, .head_dim = 64, .scale = scale}, kBf16,
                    0.9999);
}

class Sm100StageE : public Sm100AttentionTest {};
TILEWRIGHT_ON_EVERY_BLACKWELL(Sm100StageE);

TEST_P(Sm100StageE, TwoTilesInFlight) {
  check_attention(kStageE, {.q_len = 256, .kv_len = 384, .head_dim = 128}, kBf16);
  check_attention(kStageE, {.q_len = 300, .kv_len = 330, .head_dim = 64, .is_causal = true}, kFp16);
  check_attention(kStageE, {.q_len = 20, .kv_len = 1000, .head_dim = 64, .is_causal = true}, kBf16);
  check_attention(kStageE, {.q_len = 5, .kv_len = 0, .head_dim = 64}, kBf16);
}

TEST_P(Sm100StageE, SharedHeadsPackedSequencesAndWindows) {
  check_attention(kStageE,
                  {.batch = 2,
                   .heads = 6,
                   .kv_heads = 2,
                   .q_len = 90,
                   .kv_len = 95,
                   .head_dim = 128,
                   .is_causal = true,
                   .gap = 16},
                  kBf16);
  check_attention(kStageE,
                  {.heads = 2,
                   .kv_heads = 1,
                   .head_dim = 64,
                   .is_causal = true,
                   .q_lens = {150, 0, 3, 64},
                   .kv_lens = {190, 5, 0, 200}},
                  kBf16);
  check_attention(
      kStageE, {.q_len = 300, .kv_len = 420, .head_dim = 64, .window_left = 60, .window_right = 3},
      kBf16);
}

class Sm100StageF : public Sm100AttentionTest {};
TILEWRIGHT_ON_EVERY_BLACKWELL(Sm100StageF);

// Few rows: the second CTA of a pair has some, or none.
TEST_P(Sm100StageF, PairsShareKeysAndValues) {
  check_attention(kStageF, {.q_len = 256, .kv_len = 256, .head_dim = 256}, kBf16);
  check_attention(kStageF, {.q_len = 140, .kv_len = 300, .head_dim = 256, .is_causal = true},
                  kFp16);
  check_attention(kStageF, {.q_len = 128, .kv_len = 384, .head_dim = 512}, kBf16);
  check_attention(kStageF, {.q_len = 70, .kv_len = 300, .head_dim = 512, .is_causal = true}, kFp16);
}

TEST_P(Sm100StageF, RaggedLengths) {
  for (const auto& [q_len, kv_len] :
       {std::pair{1, 1}, {33, 64}, {5, 0}, {0, 7}, {200, 61}, {3, 400}}) {
    for (const int head_dim : {256, 512}) {
      const bool is_causal = head_dim == 256;
      check_attention(
          kStageF, {.q_len = q_len, .kv_len = kv_len, .head_dim = head_dim, .is_causal = is_causal},
          is_causal ? kBf16 : kFp16);
    }
  }
}

TEST_P(Sm100StageF, SharedHeadsPackedSequencesWindowsAndSinks) {
  for (const int head_dim : {256, 512}) {
    check_attention(kStageF,
                    {.batch = 2,
                     .heads = 6,
                     .kv_heads = 2,
                     .q_len = 45,
                     .kv_len = 75,
                     .head_dim = head_dim,
                     .is_causal = true,
                     .is_heads_first = true,
                     .gap = 16},
                    kBf16);
    check_attention(kStageF,
                    {.heads = 2,
                     .kv_heads = 1,
                     .head_dim = head_dim,
                     .is_causal = true,
                     .q_lens = {70, 0, 3, 64},
                     .kv_lens = {90, 5, 0, 200}},
                    kBf16);
    check_attention(kStageF,
                    {.q_len = 140,
                     .kv_len = 300,
                     .head_dim = head_dim,
                     .window_left = 60,
                     .window_right = 3,
                     .sink = {1.5f}},
                    kFp16);
  }
  check_attention(kStageF, {.heads = 64, .q_len = 3, .kv_len = 130, .head_dim = 512}, kBf16);
}

TEST_P(Sm100StageF, RescalesWhenTheMaximumGrows) {
  for (const int head_dim : {256, 512}) {
    check_attention(kStageF, {.q_len = 70, .kv_len = 512, .head_dim = head_dim, .scale = 3.0},
                    kBf16, 0.9999);
  }
}

// The documents' grids; P7 as head_dim x T x s_k, 80 configurations with T = 64.
class Sm100FullGrid : public Sm100AttentionTest {};
TILEWRIGHT_ON_EVERY_BLACKWELL(Sm100FullGrid);

TEST_P(Sm100FullGrid, P7) {
  for (const int head_dim : {64, 128, 256, 512}) {
    for (const int rows : {1, 4, 32, 64, 128}) {
      for (const int keys : {128, 256, 384, 512}) {
        const AttentionProblem p = {.q_len = rows, .kv_len = keys, .head_dim = head_dim};
        check_attention(kStageC, p, kBf16);
        check_attention(head_dim <= 128 ? kStageE : kStageF, p, kBf16);
      }
    }
  }
}

TEST_P(Sm100FullGrid, CausalAndFp16) {
  if (!wants_full_grids()) GTEST_SKIP() << "set TILEWRIGHT_FULL_GRIDS for causal masks and float16";
  for (const int head_dim : {64, 128, 256, 512}) {
    for (const int rows : {1, 32, 128, 200}) {
      for (const int keys : {128, 320, 512}) {
        const AttentionProblem p = {.heads = 4,
                                    .kv_heads = 2,
                                    .q_len = rows,
                                    .kv_len = keys,
                                    .head_dim = head_dim,
                                    .is_causal = true};
        check_attention(kStageC, p, kFp16);
        if (head_dim > 128) check_attention(kStageF, p, kFp16);
      }
    }
  }
}

}  // namespace
}  // namespace tilewright::kernels
