#include "reference/moe/moe.h"

#include "base/error.h"
#include "reference/linear/linear.h"
#include "reference/round.h"
#include "reference/shape.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

namespace tilewright::reference {
namespace {

void check_mlp(const char* where, const MlpWeights& w, int64_t experts, int64_t inter,
               int64_t hidden) {
  require_shape(where, "gate", w.gate.size(), "[experts, inter, hidden]", {experts, inter, hidden});
  require_shape(where, "up", w.up.size(), "[experts, inter, hidden]", {experts, inter, hidden});
  require_shape(where, "down", w.down.size(), "[experts, hidden, inter]", {experts, hidden, inter});
  for (const auto& [name, bias, dim] :
       {std::tuple{"gate_bias", w.gate_bias, inter}, std::tuple{"up_bias", w.up_bias, inter},
        std::tuple{"down_bias", w.down_bias, hidden}}) {
    if (!bias.empty()) require_shape(where, name, bias.size(), "[experts, dim]", {experts, dim});
  }
}

void check(const MoeParams& p, std::span<const double> x, std::span<const int32_t> ids,
           std::span<const double> weights, const MlpWeights& routed, const MlpWeights& shared) {
  require_shape("moe", "x", x.size(), "[tokens, hidden]", {p.tokens, p.hidden});
  require_shape("moe", "ids", ids.size(), "[tokens, topk]", {p.tokens, p.topk});
  require_shape("moe", "weights", weights.size(), "[tokens, topk]", {p.tokens, p.topk});
  check_mlp("moe (routed)", routed, p.experts, p.inter, p.hidden);
  check_mlp("moe (shared)", shared, p.shared_inter > 0 ? 1 : 0, p.shared_inter, p.hidden);
  for (size_t i = 0; i < ids.size(); ++i) {
    require(ids[i] >= -1 && ids[i] < p.experts, ErrorKind::kInvalidArgument,
            "moe: ids[{}, {}] = {}; expected -1 (dropped) to {}, the experts. Check the router.",
            i / p.topk, i % p.topk, ids[i], p.experts - 1);
  }
}

// Part of expert e in an array [experts, elems]; empty stays empty.
std::span<const double> of_expert(std::span<const double> array, int64_t e, int64_t elems) {
  return array.empty() ? array : array.subspan(e * elems, elems);
}

void round_rows_to_e4m3(std::span<double> values, int64_t cols, int64_t scale_columns) {
  if (values.empty()) return;
  BlockFormat format = kFp8Block1x128;
  format.block_cols = static_cast<int>(scale_columns > 0 ? scale_columns : cols);
  const auto rows = static_cast<int64_t>(values.size()) / cols;
  round_to_blocks(format, values, rows, cols, cols);
}

// The tokens that visit one expert, and their routing weights.
struct Visits {
  std::vector<int64_t> tokens;
  std::vector<double> weights;
};

// Adds expert e to the rows of its tokens in out.
void add_expert(const MoeParams& p, const MlpWeights& w, int64_t e, int64_t inter,
                const Visits& visits, std::span<const double> x, std::span<double> out) {
  const int64_t matrix = inter * p.hidden, rows = static_cast<int64_t>(visits.tokens.size());
  std::vector<double> in;
  for (const int64_t t : visits.tokens)
    in.insert(in.end(), x.begin() + t * p.hidden, x.begin() + (t + 1) * p.hidden);
  const LinearShape in_shape{rows, inter, p.hidden};
  const auto gate_bias = of_expert(w.gate_bias, e, inter);
  const auto up_bias = of_expert(w.up_bias, e, inter);
  const auto down_bias = of_expert(w.down_bias, e, p.hidden);
  const auto gate = linear(in_shape, in, of_expert(w.gate, e, matrix), gate_bias);
  const auto up = linear(in_shape, in, of_expert(w.up, e, matrix), up_bias);
  std::vector<double> h = swiglu(gate, up, p.activation);
  const bool is_before = p.route_weight_place == RouteWeightPlace::kBeforeDown;
  for (int64_t i = 0; is_before && i < rows * inter; ++i) h[i] *= visits.weights[i / inter];
  if (p.rounding.h_bf16) round_to_bf16(h);
  if (p.rounding.h_e4m3) round_rows_to_e4m3(h, inter, p.rounding.e4m3_columns);
  if (p.rounding.h_blocks)
    round_rows_to_blocks(p.rounding.blocks, h, inter, p.rounding.h_encode_scale);
  auto y = linear({rows, p.hidden, inter}, h, of_expert(w.down, e, matrix), down_bias);
  if (p.rounding.y_bf16) round_to_bf16(y);
  for (int64_t i = 0; i < rows * p.hidden; ++i) {
    const int64_t row = i / p.hidden;
    out[visits.tokens[row] * p.hidden + i % p.hidden] +=
        is_before ? y[i] : visits.weights[row] * y[i];
  }
}

}  // namespace

std::vector<double> moe(const MoeParams& p, std::span<const double> x, std::span<const int32_t> ids,
                        std::span<const double> weights, const MlpWeights& routed,
                        const MlpWeights& shared) {
  check(p, x, ids, weights, routed, shared);
  std::vector<double> out(x.size(), 0), rounded;
  if (p.rounding.x_e4m3) {
    rounded.assign(x.begin(), x.end());
    round_rows_to_e4m3(rounded, p.hidden, p.rounding.e4m3_columns);
    x = rounded;
  }
  if (p.rounding.x_blocks) {
    rounded.assign(x.begin(), x.end());
    round_rows_to_blocks(p.rounding.blocks, rounded, p.hidden, std::nullopt);
    x = rounded;
  }
  std::vector<Visits> visits(p.experts);
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0) continue;
    visits[ids[i]].tokens.push_back(static_cast<int64_t>(i) / p.topk);
    visits[ids[i]].weights.push_back(weights[i]);
  }
  for (int64_t e = 0; e < p.experts; ++e)
    if (!visits[e].tokens.empty()) add_expert(p, routed, e, p.inter, visits[e], x, out);
  if (p.shared_inter > 0) {
    Visits all{std::vector<int64_t>(p.tokens), std::vector<double>(p.tokens, 1.0)};
    std::iota(all.tokens.begin(), all.tokens.end(), 0);
    add_expert(p, shared, 0, p.shared_inter, all, x, out);
  }
  return out;
}

}  // namespace tilewright::reference
