// Keys in pages: in which parts a tile of them is copied, and by whom.
#include "kernels/attention/k7/k7_paged.h"
#include "ops/attention/kernels.h"
#include "ops/attention/padding.h"
#include "ops/attention/problem.h"
#include "ops/attention/sm100.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace tilewright::ops {

namespace {

// Rows that are copied one by one are found by 32 bits, which count 16 bytes.
bool finds_rows(const AttentionProblem& p) {
  const auto number = [](std::int64_t x) { return static_cast<double>(x); };
  const double bytes = attention_kv_dtype(p) == DType::kF8_E4M3 ? 1 : 2;
  const auto [batch, rows] = attention_kv_shape(p);
  return std::ranges::all_of(std::array{&p.k_strides, &p.v_strides}, [&](const Strides* s) {
    return bytes * (number(batch) * number(s->batch) + number(rows) * number(s->row)) < 0x1p36;
  });
}

}  // namespace

bool& forces_tall_tiles() noexcept {
  static bool is_forced = false;
  return is_forced;
}

bool attention_fills_tall_tiles(const AttentionProblem& p) {
  constexpr std::int64_t kRows = 192, kTilesOfFiveRounds = 660, kTilesOfSequence = 2, kKeys = 4096;
  const std::int64_t rows = (p.is_packed ? p.total_q : p.batch * p.q_len) * p.heads;
  const std::int64_t tiles = std::max(kTilesOfFiveRounds, kTilesOfSequence * p.batch * p.kv_heads);
  const bool is_cut = p.has_q_lengths || p.chunk > 0 || p.window_left >= 0;
  return forces_tall_tiles() || (!is_cut && p.kv_len >= kKeys && rows >= kRows * tiles);
}

int attention_box_keys(const AttentionKernel& kernel, const AttentionProblem& p) {
  if (kernel.box_keys != nullptr) return kernel.box_keys(attention_width(kernel, p));
  return find_attention_tile(kernel, p).keys;
}

std::int32_t attention_page_box(const AttentionKernel& kernel, const AttentionProblem& p) {
  return static_cast<std::int32_t>(
      std::gcd(p.page_size, std::int64_t{attention_box_keys(kernel, p)}));
}

kernels::PageCopies attention_page_copies(const AttentionKernel& kernel,
                                          const AttentionProblem& p) {
  if (kernel.capability == 100) return sm100_page_copies(kernel, p);
  const std::int32_t keys = find_attention_tile(kernel, p).keys;
  const std::int32_t box = p.page_size > 0 ? attention_page_box(kernel, p) : keys;
  if (attention_widens(p)) return kernels::PageCopies::kWarps;
  const bool is_tall = !kernel.computes_in_e4m3() && kernel.find_variant(p)->is_tall;
  const int most = is_tall ? 1 : kernels::thread_parts(keys);  // by warps it was 6 % faster
  if (!kernel.computes_in_e4m3() && keys / box <= most) return kernels::PageCopies::kThread;
  // Keys of a part that is worth its tensor copies, which take about as long whatever they have. A
  // part of 64 columns is one copy, and worth it from half as many on.
  const int fewest = attention_width(kernel, p) == 64 ? 4 : 8;
  const bool has_rows = box < fewest && finds_rows(p);
  return has_rows ? kernels::PageCopies::kRows : kernels::PageCopies::kWarps;
}

std::string attention_cache_obstacle(const AttentionKernel& kernel, const AttentionProblem& p) {
  if (!kernel.has_pages || attention_kv_dtype(p) != DType::kF8_E4M3) return {};
  if (p.fp8.scales == ScaleSharing::kBlock) return "has scales of tensors and heads, not of blocks";
  if (kernel.capability == 100 && !attention_widens(p)) return sm100_cache_obstacle(kernel, p);
  const bool copies_parts =
      !attention_widens(p) && attention_page_copies(kernel, p) != kernels::PageCopies::kRows;
  const bool is_found =
      copies_parts ? p.page_size == 0 || find_attention_tile(kernel, p).keys <=
                                             kernels::kMostPageParts * attention_page_box(kernel, p)
                   : finds_rows(p);
  return is_found ? "" : "finds rows one by one in 64 GiB of k or v alone";
}

}  // namespace tilewright::ops
