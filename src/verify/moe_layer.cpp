#include "verify/moe_layer.h"

#include "base/error.h"
#include "base/json.h"
#include "base/progress.h"
#include "base/safetensors_model.h"
#include "formats/minifloat.h"
#include "reference/linear/weight.h"
#include "reference/moe/moe.h"
#include "reference/moe/router.h"
#include "verify/attention/data.h"
#include "verify/moe_data.h"

#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

namespace tilewright::cli {

namespace {

using nlohmann::json;

// Values of 4 or 8 bits stay as they are; others are rounded to `format`.
LinearWeightData load_expert_projection(const SafetensorsModel& model, const std::string& name,
                                        NumberFormat format) {
  LinearWeightData data = load_weight(model, name, format);
  data.original.clear();
  return data;
}

void load_layer_expert(const SafetensorsModel& model, const std::string& prefix,
                       NumberFormat format, MoeLayer& layer) {
  layer.gate.push_back(load_expert_projection(model, prefix + ".w1.weight", format));
  layer.up.push_back(load_expert_projection(model, prefix + ".w3.weight", format));
  layer.down.push_back(load_expert_projection(model, prefix + ".w2.weight", format));
}

void load_hash_table(const SafetensorsModel& model, const std::string& name, MoeLayer& layer) {
  const ConstTensorView view = model.tensor(name);
  require(view.dtype == DType::kI64 && view.shape.size() == 2, ErrorKind::kInvalidArgument,
          "moe: {} is {} {}; expected I64 [vocab, topk]", name, to_string(view.dtype),
          shape_text(view.shape));
  const auto* const bytes = static_cast<const std::byte*>(view.data);
  for (std::int64_t i = 0; i < view.shape[0] * view.shape[1]; ++i) {
    std::int64_t id;
    std::memcpy(&id, bytes + 8 * i, 8);
    layer.table.push_back(static_cast<std::int32_t>(id));
  }
  layer.topk = view.shape[1];
}

void read_layer_config(const std::filesystem::path& file, MoeLayer& layer) {
  const std::filesystem::path folder =
      std::filesystem::is_directory(file) ? file : file.parent_path();
  if (!std::filesystem::exists(folder / "config.json")) return;
  const json config = read_json((folder / "config.json").string());
  layer.topk = config.value("num_experts_per_tok", layer.topk);
  layer.route_scale = config.value("routed_scaling_factor", layer.route_scale);
  layer.limit = config.value("swiglu_limit", layer.limit);
  if (config.value("scoring_func", "sqrtsoftplus") == "softmax") layer.score = MoeScore::kSoftmax;
}

// All projections of the experts [begin, end) have this format.
void require_one_format(const MoeLayer& layer, std::size_t begin, std::size_t end,
                        NumberFormat format) {
  for (std::size_t e = begin; e < end; ++e) {
    for (const LinearWeightData* data : {&layer.gate[e], &layer.up[e], &layer.down[e]})
      require(data->source.format == format, ErrorKind::kUnsupported,
              "moe: a projection of expert {} is stored in {}, one before it in {}; expected one "
              "format for all experts of a layer",
              e, to_string(data->source.format), to_string(format));
  }
}

// A shared expert in a format of its own is a layer of its own, as the model runs it.
bool keeps_shared_expert(MoeLayer& layer, bool has_shared) {
  if (!has_shared) return false;
  const NumberFormat format = layer.gate[0].source.format, own = layer.gate.back().source.format;
  require_one_format(layer, layer.gate.size() - 1, layer.gate.size(), own);
  if (own == format) return true;
  layer.gate.pop_back();
  layer.up.pop_back();
  layer.down.pop_back();
  layer.name += fmt::format(" without its shared expert, which is in {}", to_string(own));
  return false;
}

void finish_moe_layer(MoeLayer& layer, bool has_shared) {
  const NumberFormat format = layer.gate[0].source.format;
  const bool keeps_shared = keeps_shared_expert(layer, has_shared);
  require_one_format(layer, 0, layer.gate.size(), format);
  layer.info = {.format = format,
                .experts = static_cast<std::int64_t>(layer.gate.size()) - (keeps_shared ? 1 : 0),
                .hidden = layer.gate[0].k,
                .inter = layer.gate[0].n,
                .has_shared = keeps_shared};
}

MoeLayer load_layer_file(const MoeLayerSource& source) {
  const SafetensorsModel model(source.file);
  const NumberFormat format = parse_number_format(source.format);
  const std::string prefix = fmt::format("layers.{}.ffn", source.layer);
  MoeLayer layer;
  layer.name = fmt::format("{}: {}", source.file, prefix);
  read_layer_config(source.file, layer);
  for (int e = 0; model.contains(fmt::format("{}.experts.{}.w1.weight", prefix, e)); ++e)
    load_layer_expert(model, fmt::format("{}.experts.{}", prefix, e), format, layer);
  require(!layer.gate.empty(), ErrorKind::kInvalidArgument,
          "moe: {} has no tensor {}.experts.0.w1.weight. Check --layer.", source.file, prefix);
  const bool has_shared = model.contains(prefix + ".shared_experts.w1.weight");
  if (has_shared) load_layer_expert(model, prefix + ".shared_experts", format, layer);
  layer.router = to_floats(model.tensor(prefix + ".gate.weight"), "gate.weight");
  if (model.contains(prefix + ".gate.bias"))
    layer.bias = to_floats(model.tensor(prefix + ".gate.bias"), "gate.bias");
  if (model.contains(prefix + ".gate.tid2eid"))
    load_hash_table(model, prefix + ".gate.tid2eid", layer);
  finish_moe_layer(layer, has_shared);
  return layer;
}

// What a drawn layer will be; nothing is drawn yet.
MoeLayer describe_drawn_layer(const MoeLayerSource& source) {
  const MoeShape shape = find_moe_shape(source.shape);
  MoeLayer layer;
  layer.name = "N(0, 1/k), " + source.shape;
  layer.topk = shape.topk;
  layer.info = {.format = parse_number_format(source.format),
                .experts = shape.experts,
                .hidden = shape.hidden,
                .inter = shape.inter};
  return layer;
}

std::vector<double> bf16_numbers(const std::vector<std::uint16_t>& codes) {
  std::vector<double> values;
  for (const std::uint16_t c : codes) values.push_back(decode(kBf16, c));
  return values;
}

reference::Routing route_layer(const MoeLayer& layer, const MoeLayerInputs& inputs,
                               std::int64_t tokens) {
  const reference::RouterParams params = {.tokens = tokens,
                                          .experts = layer.info.experts,
                                          .topk = layer.topk,
                                          .score = layer.score == MoeScore::kSoftmax
                                                       ? reference::RouterScore::kSoftmax
                                                       : reference::RouterScore::kSqrtSoftplus,
                                          .scale = layer.route_scale};
  const std::vector<double> logits(inputs.logits.begin(), inputs.logits.end());
  const std::vector<double> bias(layer.bias.begin(), layer.bias.end());
  return layer.table.empty()
             ? reference::route_by_score(params, logits, bias)
             : reference::route_by_hash(params, logits, inputs.token_ids, layer.table);
}

// Of blocks of 128 x 128: fp32, or powers of two as bytes.
std::vector<float> fp8_scales(const LinearWeightData& data) {
  if (data.source.scales.dtype != DType::kF8_E8M0) return to_floats(data.source.scales, "scales");
  std::vector<float> scales;
  for (const std::uint8_t code : data.scales)
    scales.push_back(static_cast<float>(decode(kUe8m0, code)));
  return scales;
}

void append_stored_numbers(const LinearWeightData& data, std::vector<double>& out) {
  reference::StoredWeight stored = {
      .format = to_string(data.source.format), .n = data.n, .k = data.k, .values = data.values};
  std::vector<float> block_scales;
  if (data.source.format == NumberFormat::kFp8) {
    block_scales = fp8_scales(data);
    stored.block_scales = block_scales;
  } else {
    stored.scales = data.scales;
  }
  stored.global_scale = data.source.global_scale.value_or(1);
  const std::vector<double> numbers = reference::dequantize(stored);
  out.insert(out.end(), numbers.begin(), numbers.end());
}

}  // namespace

MoeWeightsSource MoeLayer::source() const {
  MoeWeightsSource s;
  const auto routed = static_cast<std::size_t>(info.experts);
  for (std::size_t e = 0; e < gate.size(); ++e) {
    (e < routed ? s.gate : s.shared_gate).push_back(gate[e].source);
    (e < routed ? s.up : s.shared_up).push_back(up[e].source);
    (e < routed ? s.down : s.shared_down).push_back(down[e].source);
  }
  return s;
}

MoeLayer load_moe_layer(const MoeLayerSource& source) {
  MoeLayer layer = source.file.empty() ? describe_drawn_layer(source) : load_layer_file(source);
  if (source.topk > 0) layer.topk = source.topk;
  return layer;
}

void draw_moe_weights(MoeLayer& layer) {
  if (!layer.gate.empty()) return;
  const MoeWeightsInfo& info = layer.info;
  Progress progress(stderr, "drawing experts", info.experts, "experts");
  std::uint64_t seed = 1;
  // Tensor cores multiply block scales in as powers of two.
  const bool has_pow2_scales = info.activations == LinearActivations::kBlockScaled;
  const auto draw = [&](std::int64_t n, std::int64_t k) {
    std::vector<float> weights = draw_normal_floats(n * k, ++seed);
    for (float& w : weights) w /= std::sqrt(static_cast<float>(k));
    LinearWeightData data = quantise_weight(info.format, std::move(weights), n, k, has_pow2_scales);
    data.original.clear();
    return data;
  };
  for (std::int64_t e = 0; e < info.experts; ++e) {
    layer.gate.push_back(draw(info.inter, info.hidden));
    layer.up.push_back(draw(info.inter, info.hidden));
    layer.down.push_back(draw(info.hidden, info.inter));
    progress.add();
  }
  layer.router = draw_normal_floats(info.experts * info.hidden, 999);
  for (float& w : layer.router) w /= std::sqrt(static_cast<float>(info.hidden));
  progress.finish();
}

MoeLayerInputs draw_moe_inputs(const MoeLayer& layer, std::int64_t tokens) {
  const std::int64_t hidden = layer.info.hidden;
  MoeLayerInputs inputs;
  inputs.x = draw_normal(tokens * hidden, 7, DType::kBF16);
  const std::vector<double> x = bf16_numbers(inputs.x);
  for (std::int64_t t = 0; t < tokens; ++t) {
    for (std::int64_t e = 0; e < layer.info.experts; ++e) {
      double sum = 0;
      for (std::int64_t c = 0; c < hidden; ++c)
        sum += x[static_cast<std::size_t>(t * hidden + c)] *
               static_cast<double>(layer.router[static_cast<std::size_t>(e * hidden + c)]);
      inputs.logits.push_back(static_cast<float>(sum));
    }
  }
  const std::int64_t vocab = layer.vocab();
  for (std::int64_t t = 0; t < tokens && vocab > 0; ++t)
    inputs.token_ids.push_back(static_cast<std::int32_t>(t * 7 % vocab));
  const reference::Routing routing = route_layer(layer, inputs, tokens);
  inputs.ids = routing.ids;
  inputs.weights.assign(routing.weights.begin(), routing.weights.end());
  return inputs;
}

json check_moe_layer(const MoeLayer& layer, const MoeLayerInputs& inputs, const MoeProblem& problem,
                     const std::vector<std::uint16_t>& out, const std::string& kernel) {
  const MoeWeightsInfo& info = layer.info;
  const reference::MoeParams params = {.tokens = problem.tokens,
                                       .hidden = info.hidden,
                                       .inter = info.inter,
                                       .experts = info.experts,
                                       .topk = layer.topk,
                                       .shared_inter = info.has_shared ? info.inter : 0,
                                       .activation = {.limit = problem.swiglu_limit}};
  std::vector<double> gate, up, down;
  for (std::size_t e = 0; e < layer.gate.size(); ++e) {
    append_stored_numbers(layer.gate[e], gate);
    append_stored_numbers(layer.up[e], up);
    append_stored_numbers(layer.down[e], down);
  }
  const auto routed = static_cast<std::size_t>(info.experts * info.inter * info.hidden);
  const auto first = [&](const std::vector<double>& w) { return std::span(w).first(routed); };
  const auto rest = [&](const std::vector<double>& w) { return std::span(w).subspan(routed); };
  const std::vector<double> weights(inputs.weights.begin(), inputs.weights.end());
  const auto exact =
      reference::moe(params, bf16_numbers(inputs.x), inputs.ids, weights,
                     {first(gate), first(up), first(down)}, {rest(gate), rest(up), rest(down)});
  MoeDifference difference;
  for (std::size_t i = 0; i < exact.size(); ++i) difference.add(decode(kBf16, out[i]), exact[i]);
  const bool is_block_scaled = kernel == "few" || kernel == "2cta_n256";
  double most = kernel == "wide8" || is_block_scaled ? kMoeFp8Rms : kMoeBf16Rms;
  if (is_block_scaled && info.format == NumberFormat::kNvfp4) most = kMoeNvfp4Rms;
  return difference.log(most, "float64 on the stored weights");
}

}  // namespace tilewright::cli
