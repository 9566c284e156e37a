#include "ops/attention/sm100.h"

#include "kernels/attention_sm100/pages/stage_e_pages.h"
#include "kernels/attention_sm100/pages/stage_f_pages.h"
#include "kernels/attention_sm100/pages/stage_h_pages.h"
#include "kernels/attention_sm100/stage_c_online_softmax.h"
#include "kernels/attention_sm100/stage_e_two_tiles.h"
#include "kernels/attention_sm100/stage_f_cta_pair.h"
#include "kernels/attention_sm100/stage_h_e4m3.h"
#include "ops/attention/padding.h"
#include "ops/attention/problem.h"
#include "ops/operator/ceil_div.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <fmt/format.h>

namespace tilewright::ops {

namespace {

struct Form {
  int head_dim;
  const char* name;
  int value_dim = head_dim;
};
using Variants = std::initializer_list<Form>;

AttentionKernel stage(char letter, const char* idea, const kernels::AttentionSupport& support,
                      AttentionKernel::GroupTile tile, int (*ctas)(int), Variants variants) {
  AttentionKernel kernel = {.name = std::string("sm100_") + letter,
                            .entry = std::string("attention_sm100_stage_") + letter,
                            .idea = idea,
                            .features = attention_features(support),
                            .maps = AttentionMaps::kSwizzled,
                            .variants = {},
                            .capability = 100,
                            .group_tile = tile,
                            .ctas = ctas};
  for (const auto& [head_dim, name, value_dim] : variants)
    kernel.variants.push_back({head_dim, name, tile(head_dim, 1), true, value_dim, true});
  kernel.pads = true;
  kernel.features |= kOwnValueDim;
  return kernel;
}

AttentionKernel e4m3_stage(const char* idea, AttentionKernel::GroupTile tile) {
  kernels::AttentionSupport as_f = kernels::kStageFSupport;
  as_f.max_head_dim = 256;
  AttentionKernel kernel = stage('h', idea, as_f, tile, [](int) { return 1; },
                                 {{64, "d64"}, {128, "d128"}, {256, "d256"}});
  kernel.features |= kE4m3Operands;
  kernel.features &= ~std::uint32_t{kOwnValueDim};
  kernel.is_e4m3_only = true;
  return kernel;
}

AttentionKernel over_pages(AttentionKernel stage, const char* name) {
  stage.name = name;
  stage.entry = "attention_sm100_pages";
  stage.features |= kPages | kDeviceLengths | kChunks;
  stage.has_pages = true;
  return stage;
}

// Stage E, and for wider heads stage F.
constexpr bool is_pair_over_pages(int head_dim) {
  return head_dim == 256;
}
kernels::AttentionTile pages_tile(int head_dim, int group) {
  return is_pair_over_pages(head_dim) ? kernels::stage_f_pages_tile(head_dim, group)
                                      : kernels::stage_e_pages_tile(head_dim, group);
}
int pages_ctas(int head_dim) {
  return is_pair_over_pages(head_dim) ? 2 : 1;
}
int pages_box_keys(int head_dim) {
  return is_pair_over_pages(head_dim) ? kernels::kStageFBoxKeys : pages_tile(head_dim, 1).keys;
}

AttentionKernel pages_row() {
  AttentionKernel kernel = over_pages(
      stage('e', "keys in pages, lengths on the device", kernels::kStageESupport, pages_tile,
            pages_ctas, {{64, "d64"}, {128, "d128"}, {192, "d192_v128", 128}, {256, "d256"}}),
      "sm100_pages");
  kernel.features |= kWideQueries;
  kernel.box_keys = pages_box_keys;
  for (AttentionVariant& variant : kernel.variants)
    variant.has_wide_queries = !is_pair_over_pages(variant.head_dim);
  return kernel;
}

// Clocks of a CTA for a step of 128 keys.
struct StepClocks {
  std::string_view kernel;
  int head_dim;
  double clocks;
};
constexpr StepClocks kStepClocks[] = {
    {"sm100_c", 64, 1664},
    {"sm100_c", 128, 2304},
    {"sm100_c", 256, 3584},
    {"sm100_c", 512, 5120},
    {"sm100_e", 64, 2.0 * 896},
    {"sm100_e", 128, 2.0 * 1032},
    {"sm100_e", 192, 2.0 * 1280},
    {"sm100_f", 256, 2048},
    {"sm100_f", 512, 2696},
    {"sm100_h", 64, 2.0 * 1024},
    {"sm100_h", 128, 2.0 * 1024},
    {"sm100_h", 256, 2048},
    {"sm100_pages_e4m3", 64, 2.0 * 1024},
    {"sm100_pages_e4m3", 128, 2.0 * 1024},
    {"sm100_pages_e4m3", 256, 2048},
    {"sm100_pages", 64, 2.0 * 896},
    {"sm100_pages", 128, 2.0 * 1032},
    {"sm100_pages", 192, 2.0 * 1280},
    {"sm100_pages", 256, 2048},
};

}  // namespace

std::vector<AttentionKernel> make_sm100_attention_kernels() {
  using namespace kernels;
  std::vector<AttentionKernel> all = {
      stage('c', "Tensor Memory, online softmax", kStageCSupport, stage_c_tile, sm100_value_splits,
            {{64, "d64"}, {128, "d128"}, {256, "d256"}, {512, "d512"}}),
      stage('e', "two tiles in flight", kStageESupport, stage_e_tile, [](int) { return 1; },
            {{64, "d64"}, {128, "d128"}, {192, "d192_v128", 128}}),
      stage('f', "pairs of CTAs share keys and values", kStageFSupport, stage_f_tile,
            [](int) { return 2; }, {{256, "d256"}, {512, "d512"}}),
  };
  all.back().box_keys = [](int) { return kStageFBoxKeys; };
  all.push_back(e4m3_stage("e4m3: two tiles in flight, values as they come", stage_h_tile));
  all.push_back(pages_row());
  all.push_back(
      over_pages(e4m3_stage("sm100_h over pages: caches and queries of e4m3", stage_h_pages_tile),
                 "sm100_pages_e4m3"));
  return all;
}

std::int64_t sm100_page_tiles(const AttentionKernel& kernel, const AttentionProblem& p) {
  const std::int64_t queries = find_attention_tile(kernel, p).queries;
  const std::int64_t all = p.batch * ceil_div(p.q_len, queries);
  // Of packed queries every sequence has at most one tile that is not full.
  return p.is_packed ? std::min(all, p.total_q / queries + p.batch) : all;
}

std::optional<RowMatrix> find_row_matrix(const AttentionProblem& p, const Strides& strides,
                                         std::int64_t dim) {
  constexpr std::int64_t kMostRows = std::numeric_limits<std::int32_t>::max();
  constexpr std::int64_t kMostElems = std::int64_t{1} << 38;  // of a row: its bytes are below 2^40
  const std::int64_t row_elems = std::gcd(std::gcd(strides.batch, strides.row), strides.head);
  if (row_elems < dim || row_elems > kMostElems) return std::nullopt;
  const std::int64_t last = std::max<std::int64_t>(p.num_pages - 1, 0) * strides.batch +
                            (p.page_size - 1) * strides.row + (p.kv_heads - 1) * strides.head;
  if (last / row_elems >= kMostRows) return std::nullopt;
  return RowMatrix{last / row_elems + 1, row_elems};
}

kernels::PageCopies sm100_page_copies(const AttentionKernel& kernel, const AttentionProblem& p) {
  if (attention_widens(p)) return kernels::PageCopies::kWarps;
  constexpr std::int32_t kGatheredRows = 4;
  const bool is_short = p.page_size > 0 && attention_page_box(kernel, p) < kGatheredRows;
  const bool has_rows = is_short && find_row_matrix(p, p.k_strides, p.head_dim) &&
                        find_row_matrix(p, p.v_strides, attention_value_dim(p));
  return has_rows ? kernels::PageCopies::kRows : kernels::PageCopies::kWarps;
}

std::string sm100_cache_obstacle(const AttentionKernel& kernel, const AttentionProblem& p) {
  constexpr std::int64_t kFewestBytes = 128;  // that a tensor copy writes to, and begins at
  const std::int64_t row_bytes = std::min(attention_width(kernel, p), 128);
  const bool copies =
      p.page_size > 0 && sm100_page_copies(kernel, p) == kernels::PageCopies::kWarps;
  if (!copies || attention_page_box(kernel, p) * row_bytes >= kFewestBytes) return {};
  return fmt::format(
      "copies pages of {} keys only where the strides of k, and of v, have a common measure of "
      "head_dim or more",
      p.page_size);
}

double sm100_attention_cost_us(const AttentionKernel& kernel, const device::DeviceInfo& device,
                               const AttentionProblem& p) {
  const auto at = std::ranges::find_if(kStepClocks, [&](const StepClocks& row) {
    return row.kernel == kernel.name && row.head_dim == attention_width(kernel, p);
  });
  if (at == std::end(kStepClocks)) return std::numeric_limits<double>::infinity();
  const auto number = [](std::int64_t x) { return static_cast<double>(x); };
  const kernels::AttentionTile tile = find_attention_tile(kernel, p);
  const double tiles = std::ceil(number(p.q_len) / tile.queries) * number(p.kv_heads * p.batch);
  const double ctas = tiles * kernel.ctas(attention_width(kernel, p));
  const double rounds = std::ceil(ctas / std::max(device.num_sms, 1));
  // Masked tiles are left out; those that are cut by the mask are not.
  const double visible =
      count_visible_scores(p, p.q_len, p.kv_len) / std::max(number(p.q_len), 1.0);
  const double steps =
      std::min(std::ceil(number(p.kv_len) / tile.keys), std::ceil(visible / tile.keys) + 1);
  constexpr double kLaunchUs = 4;
  return kLaunchUs + rounds * steps * at->clocks / (1e-3 * device.clock_khz);
}

}  // namespace tilewright::ops
