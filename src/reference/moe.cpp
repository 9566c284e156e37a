#include "reference/moe.h"

#include "base/error.h"
#include "formats/block_scale.h"
#include "formats/minifloat.h"
#include "reference/linear.h"
#include "reference/shape.h"

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

void round_to_bf16(std::vector<double>& values) {
  for (double& value : values) value = round_to(kBf16, value);
}

void round_row_to_e4m3(std::vector<double>& row, int64_t scale_columns) {
  const std::vector<float> narrow(row.begin(), row.end());
  const auto cols = static_cast<int64_t>(row.size());
  BlockFormat format = kFp8Block1x128;
  format.block_cols = static_cast<int>(scale_columns > 0 ? scale_columns : cols);
  const auto rounded = dequantize(format, quantize(format, narrow, 1, cols));
  row.assign(rounded.begin(), rounded.end());
}

// Adds expert e applied to x with routing weight r to out.
void add_expert(const MoeParams& p, const MlpWeights& w, int64_t e, int64_t inter, double r,
                std::span<const double> x, double* out) {
  const int64_t matrix = inter * p.hidden;
  const LinearShape in_shape{1, inter, p.hidden};
  const auto gate_bias = of_expert(w.gate_bias, e, inter);
  const auto up_bias = of_expert(w.up_bias, e, inter);
  const auto down_bias = of_expert(w.down_bias, e, p.hidden);
  const auto gate = linear(in_shape, x, of_expert(w.gate, e, matrix), gate_bias);
  const auto up = linear(in_shape, x, of_expert(w.up, e, matrix), up_bias);
  std::vector<double> t = swiglu(gate, up, p.activation);
  const bool is_before = p.route_weight_place == RouteWeightPlace::kBeforeDown;
  if (is_before) {
    for (double& value : t) value *= r;
  }
  if (p.rounding.h_bf16) round_to_bf16(t);
  if (p.rounding.h_e4m3) round_row_to_e4m3(t, p.rounding.e4m3_columns);
  auto y = linear({1, p.hidden, inter}, t, of_expert(w.down, e, matrix), down_bias);
  if (p.rounding.y_bf16) round_to_bf16(y);
  for (int64_t c = 0; c < p.hidden; ++c) out[c] += is_before ? y[c] : r * y[c];
}

}  // namespace

std::vector<double> moe(const MoeParams& p, std::span<const double> x, std::span<const int32_t> ids,
                        std::span<const double> weights, const MlpWeights& routed,
                        const MlpWeights& shared) {
  check(p, x, ids, weights, routed, shared);
  std::vector<double> out(x.size(), 0);
  for (int64_t t = 0; t < p.tokens; ++t) {
    std::vector<double> x_t(x.begin() + t * p.hidden, x.begin() + (t + 1) * p.hidden);
    if (p.rounding.x_e4m3) round_row_to_e4m3(x_t, p.rounding.e4m3_columns);
    double* out_t = out.data() + t * p.hidden;
    for (int64_t i = t * p.topk; i < (t + 1) * p.topk; ++i) {
      if (ids[i] >= 0) add_expert(p, routed, ids[i], p.inter, weights[i], x_t, out_t);
    }
    if (p.shared_inter > 0) add_expert(p, shared, 0, p.shared_inter, 1.0, x_t, out_t);
  }
  return out;
}

}  // namespace tilewright::reference
