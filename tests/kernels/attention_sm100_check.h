// What the attention kernels of sm_100f have to give, on the simulated B200: every element within
// the a-priori bound, and the cosine that the origin documents ask for.
#pragma once

#include "kernels/attention_sm100/attention_sm100.h"
#include "tests/kernels/attention_check.h"

#include <cmath>
#include <cstdlib>
#include <numeric>

namespace tilewright::kernels {

/// Grids beyond the documents' P7 run on the simulator only if TILEWRIGHT_FULL_GRIDS is set.
inline bool wants_full_grids() {
  return std::getenv("TILEWRIGHT_FULL_GRIDS") != nullptr;
}

inline double cosine(const std::vector<double>& a, const std::vector<double>& b) {
  const double dot = std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
  return dot / std::sqrt(std::inner_product(a.begin(), a.end(), a.begin(), 0.0) *
                         std::inner_product(b.begin(), b.end(), b.begin(), 0.0));
}

/// Map of q or out: heads are neighbours inside a box.
inline device::abi::CUtensorMap sm100_query_map(const Device& device, const void* address,
                                                const AttentionStrides& strides,
                                                const AttentionProblem& p, const FormatSpec& format,
                                                int box_queries) {
  const auto count = [](int n) { return static_cast<std::uint64_t>(n); };
  const auto bytes = [](std::int64_t elems) { return static_cast<std::uint64_t>(elems * 2); };
  return device::encode_tensor_map(
      device,
      {.name = "rows of attention",
       .type = format == kBf16 ? device::TensorMapType::kBfloat16 : device::TensorMapType::kFloat16,
       .address = reinterpret_cast<device::abi::CUdeviceptr>(address),
       .dims = {count(p.head_dim), count(p.heads), count(p.q_rows()), count(p.batches_stored())},
       .strides_bytes = {bytes(strides.head), bytes(strides.row), bytes(strides.batch)},
       .box = {64, static_cast<std::uint32_t>(p.heads / p.kv_heads),
               static_cast<std::uint32_t>(box_queries), 1},
       .swizzle = device::TensorMapSwizzle::k128B});
}

struct Sm100KernelUnderTest {
  std::string stem;  ///< entries are STEM_TYPE_dDIM
  std::function<AttentionTile(int head_dim, int group)> tile;
  double exp2_error = 0x1p-22;                                 ///< relative, of the powers
  std::function<int(int head_dim)> ctas = sm100_value_splits;  ///< of a tile of queries
  int box_keys = 128;                                          ///< rows of the boxes of k and v
};

class Sm100AttentionTest : public AttentionTest {
 protected:
  int capability() const override { return 100; }

  static AttentionOutputs run(const Device& device, const Sm100KernelUnderTest& kernel,
                              const AttentionProblem& p, const FormatSpec& format,
                              const AttentionInputs& in) {
    const AttentionTile tile = kernel.tile(p.head_dim, p.heads / p.kv_heads);
    AttentionTile boxes = tile;
    boxes.keys = kernel.box_keys;
    AttentionOperands operands(device, p, format, in);
    AttentionParams params = operands.params(device, AttentionMaps::kSwizzled, boxes);
    launch(device, kernel, p, format, tile, params);
    return operands.read();
  }
  static void launch(const Device& device, const Sm100KernelUnderTest& kernel,
                     const AttentionProblem& p, const FormatSpec& format, const AttentionTile& tile,
                     AttentionParams& params) {
    if (params.batch * params.heads * params.q_tiles == 0) return;
    store_map(params.q_map,
              sm100_query_map(device, params.q, params.q_strides, p, format, tile.box_queries));
    store_map(params.out_map,
              sm100_query_map(device, params.out, params.out_strides, p, format, tile.box_queries));
    const auto extent = [](std::int32_t n) { return static_cast<std::uint32_t>(n); };
    run_kernel(device,
               fmt::format("{}_{}_d{}", kernel.stem, format == kBf16 ? "bf16" : "f16", p.head_dim),
               {.grid = {extent(params.q_tiles * kernel.ctas(p.head_dim)), extent(params.kv_heads),
                         extent(params.batch)},
                .block = {extent(tile.threads)},
                .dynamic_shared_bytes = extent(tile.shared_bytes)},
               params);
  }

  /// Runs attention on N(0, 1) inputs, holds every element to its bound and all of them to the
  /// documents' cosine.
  void check_attention(const Sm100KernelUnderTest& kernel, const AttentionProblem& p,
                       const FormatSpec& format, double least_cosine = 0.999996) {
    SCOPED_TRACE(fmt::format("{} {} d{}, q_len = {}, kv_len = {}, heads = {}/{}, causal = {}",
                             kernel.stem, format == kBf16 ? "bf16" : "f16", p.head_dim,
                             p.longest_q(), p.longest_kv(), p.heads, p.kv_heads, p.is_causal));
    const AttentionInputs in(p, format);
    const AttentionOutputs got = run(device(), kernel, p, format, in);
    double largest_v = 0;
    for (const double x : in.v) largest_v = std::max(largest_v, std::abs(x));
    const AttentionTile tile = kernel.tile(p.head_dim, p.heads / p.kv_heads);
    compare(
        p, in,
        AttentionBound(
            p,
            {.has_tensor_scores = true, .has_tensor_values = true, .exp2_error = kernel.exp2_error},
            format, tile.keys, largest_v),
        got);
    const double found = cosine(got.out, expected(p, in).out);
    EXPECT_FALSE(found < least_cosine) << found;  // NaN: all zeros
  }
};

}  // namespace tilewright::kernels
