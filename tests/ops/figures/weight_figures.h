// What NVFP4 weights leave of linear layers and of experts.
#pragma once

#include "tilewright/linear.h"
#include "tilewright/moe.h"
#include "tilewright/quantize.h"

#include "ops/linear/source.h"
#include "reference/linear/linear.h"
#include "reference/linear/weight.h"
#include "reference/moe/moe.h"
#include "tests/ops/figures/document_figure.h"
#include "tests/ops/linear/case.h"

namespace tilewright::ops {

// A weight that the quantise operator of the device rounded.
struct Nvfp4Weight {
  std::int64_t n, k;
  Doubles original;
  std::vector<std::uint8_t> codes, scales;
  float global_scale;

  Nvfp4Weight(const Device& device, const char* choice, std::int64_t rows, std::int64_t cols,
              Doubles weights)
      : n(rows), k(cols), original(std::move(weights)) {
    const Quantize quantize(device, {.scales = choice, .rows = n, .cols = k});
    const QuantizePlan& plan = quantize.plan();
    const device::Device& inner = opened(device);
    const Buffer in = Buffer::from(inner, codes_of(original)), values(inner, plan.code_bytes),
                 scale(inner, plan.scale_bytes), tensor(inner, 4),
                 workspace(inner, plan.workspace_bytes);
    quantize.run({.in = pointer_to<void>(in),
                  .codes = pointer_to<void>(values),
                  .scales = pointer_to<void>(scale),
                  .tensor_scale = pointer_to<float>(tensor),
                  .workspace = pointer_to<void>(workspace)});
    device.synchronize();
    codes = values.to_vector<std::uint8_t>();
    scales = scale.to_vector<std::uint8_t>();
    global_scale = tensor.to_vector<float>().at(0);
  }

  LinearWeightSource source() const {
    const auto view = [](const std::vector<std::uint8_t>& bytes, DType dtype, std::int64_t rows,
                         std::int64_t cols) {
      return contiguous_view(static_cast<const void*>(bytes.data()), dtype, {rows, cols});
    };
    return {.format = NumberFormat::kNvfp4,
            .values = view(codes, DType::kU8, n, k / 2),
            .scales = view(scales, DType::kF8_E4M3, n, k / 16),
            .global_scale = global_scale};
  }
  Doubles stored() const {
    return reference::dequantize(ops::stored(check_weight_source(source())));
  }
};

inline DocumentFigure linear_figure(const Device& device, const char* choice) {
  const reference::LinearShape shape = {.m = 16, .n = 192, .k = 1024};
  const Doubles x = draw_normal(11, shape.m * shape.k);
  const Nvfp4Weight weight(device, choice, shape.n, shape.k, draw_normal(12, shape.n * shape.k));
  const device::Device& inner = opened(device);
  const Linear linear(LinearWeight::prepare(device, weight.source()), {.m = shape.m});
  const Buffer in = Buffer::from(inner, codes_of(x)),
               out(inner, static_cast<std::size_t>(2 * shape.m * shape.n)),
               workspace(inner, linear.plan().workspace_bytes);
  linear.run({.x = pointer_to<void>(in),
              .out = pointer_to<void>(out),
              .workspace = pointer_to<void>(workspace)});
  device.synchronize();
  const Doubles original = reference::linear(shape, x, weight.original);
  return {.what = fmt::format("linear layer, {}", choice),
          .kernel = linear.plan().kernel,
          .document = 0.994,
          .float64 = cosine(reference::linear(shape, x, weight.stored()), original),
          .reached = cosine(numbers_of(out.to_vector<std::uint16_t>()), original)};
}

// Experts of one layer; `shows_h`: one expert, whose down projection is 6 times the identity, which
// NVFP4 holds exactly: the layer's result is that of SwiGLU.
struct Experts {
  std::int64_t hidden = 256, inter = 128, experts = 4, tokens = 32, topk = 2;
  std::vector<Nvfp4Weight> gate, up, down;
  Doubles x;
  std::vector<std::int32_t> ids;

  Experts(const Device& device, const char* choice, bool shows_h) {
    if (shows_h) inter = hidden, experts = 1, topk = 1;
    std::uint64_t seed = 20;
    const auto draw = [&](std::int64_t n, std::int64_t k) {
      const double unit = 1 / std::sqrt(static_cast<double>(k));
      return Nvfp4Weight(device, choice, n, k, draw_normal(++seed, n * k, unit));
    };
    for (std::int64_t e = 0; e < experts; ++e) {
      gate.push_back(draw(inter, hidden));
      up.push_back(draw(inter, hidden));
      down.push_back(shows_h ? Nvfp4Weight(device, choice, hidden, inter, six_times_identity())
                             : draw(hidden, inter));
    }
    x = draw_normal(9, tokens * hidden);
    for (std::int64_t t = 0; t < tokens; ++t)
      for (std::int64_t i = 0; i < topk; ++i)
        ids.push_back(static_cast<std::int32_t>((t + i) % experts));
  }

  Doubles six_times_identity() const {
    Doubles w(static_cast<std::size_t>(hidden * inter), 0);
    for (std::int64_t i = 0; i < hidden; ++i) w[static_cast<std::size_t>(i * inter + i)] = 6;
    return w;
  }
  MoeWeightsSource source() const {
    MoeWeightsSource all;
    for (std::size_t e = 0; e < gate.size(); ++e) {
      all.gate.push_back(gate[e].source());
      all.up.push_back(up[e].source());
      all.down.push_back(down[e].source());
    }
    return all;
  }
  Doubles in_float64(bool is_stored) const {
    const auto all = [&](const std::vector<Nvfp4Weight>& weights) {
      Doubles values;
      for (const Nvfp4Weight& w : weights) {
        const Doubles of = is_stored ? w.stored() : w.original;
        values.insert(values.end(), of.begin(), of.end());
      }
      return values;
    };
    const Doubles g = all(gate), u = all(up), d = all(down);
    return reference::moe(
        {.tokens = tokens, .hidden = hidden, .inter = inter, .experts = experts, .topk = topk}, x,
        ids, Doubles(ids.size(), 1), {.gate = g, .up = u, .down = d});
  }
};

inline DocumentFigure moe_figure(const Device& device, const char* choice, bool shows_h) {
  const Experts layer(device, choice, shows_h);
  const device::Device& inner = opened(device);
  const Moe moe(MoeWeights::prepare(device, layer.source()),
                {.tokens = layer.tokens, .topk = layer.topk});
  const Buffer x = Buffer::from(inner, codes_of(layer.x)), ids = Buffer::from(inner, layer.ids),
               weights = Buffer::from(inner, std::vector<float>(layer.ids.size(), 1)),
               out(inner, layer.x.size() * 2), workspace(inner, moe.plan().workspace_bytes);
  moe.run({.x = pointer_to<void>(x),
           .ids = pointer_to<std::int32_t>(ids),
           .weights = pointer_to<float>(weights),
           .out = pointer_to<void>(out),
           .workspace = pointer_to<void>(workspace)});
  device.synchronize();
  const Doubles original = layer.in_float64(false);
  // With the weights rounded by themselves this layer stays below the document's figure.
  const bool is_best = choice == std::string("four_over_six");
  return {.what = fmt::format("{}, {}", shows_h ? "fused SwiGLU" : "MoE layer", choice),
          .kernel = moe.plan().kernel,
          .document = 0.988,
          .float64 = cosine(layer.in_float64(true), original),
          .reached = cosine(numbers_of(out.to_vector<std::uint16_t>()), original),
          .is_within_format = is_best || shows_h};
}

inline void add_weight_figures(const Device& device, std::vector<DocumentFigure>& figures) {
  for (const char* const choice : {"nearest", "four_over_six"}) {
    figures.push_back(linear_figure(device, choice));
    figures.push_back(moe_figure(device, choice, true));
    figures.push_back(moe_figure(device, choice, false));
  }
}

}  // namespace tilewright::ops
