#include "ops/moe/bind.h"

#include "device/internal.h"
#include "kernels/linear/band/band.h"
#include "kernels/linear/wide/sm90_wide_bf16.h"
#include "kernels/linear/wide/sm90_wide_e4m3.h"
#include "kernels/moe/combine.h"
#include "kernels/moe/offsets.h"
#include "kernels/moe/permute.h"
#include "kernels/moe/route.h"
#include "kernels/moe/scatter.h"
#include "kernels/moe/scatter_blocks.h"
#include "kernels/moe/share.h"
#include "kernels/quantize/quantize.h"
#include "ops/linear/wide_bind.h"
#include "ops/moe/direct.h"
#include "ops/moe/grouped_bind.h"
#include "ops/moe/problem.h"
#include "ops/operator/arguments.h"
#include "ops/operator/operator.h"

#include <cmath>

namespace tilewright::ops {

namespace {

using device::Kernel;
using device::Stream;

template <class T>
const T* address_of(const device::Buffer& buffer) {
  return buffer.size_bytes() == 0 ? nullptr : reinterpret_cast<const T*>(buffer.address());
}

constexpr ArgumentChecks kChecks("moe");

}  // namespace

void check_moe_arguments(const MoePlan& plan, const MoeArguments& a) {
  const MoeProblem& p = plan.problem;
  if (p.tokens == 0) return;
  const bool is_given = p.routing == MoeRouting::kGiven, is_hash = p.routing == MoeRouting::kHash;
  const bool is_grouped = is_grouped_input(p);
  const bool is_by_logits = p.routing == MoeRouting::kLogits || is_hash;
  kChecks.address("x", a.x, kRowAlignment);
  kChecks.address_if(is_given, "ids", a.ids, kWordAlignment);
  kChecks.address_if(is_given || (is_grouped && a.weights != nullptr), "weights", a.weights,
                     kWordAlignment);
  kChecks.address_if(is_grouped, "counts", a.counts, kWordAlignment);
  kChecks.address_if(is_by_logits, "logits", a.logits, kWordAlignment);
  kChecks.address_if(p.has_bias, "bias", a.bias, kWordAlignment);
  kChecks.address_if(is_hash, "token_ids", a.token_ids, kWordAlignment);
  kChecks.address_if(is_hash, "table", a.table, kWordAlignment);
  kChecks.address("out", a.out, kRowAlignment);
  kChecks.workspace(a.workspace, plan.workspace_bytes);
}

const std::int32_t* MoeCall::ids() const noexcept {
  if (keeps_rows(problem())) return nullptr;
  const bool is_given = problem().routing == MoeRouting::kGiven && problem().all_experts == 0;
  return is_given ? arguments_.ids : at<std::int32_t>(planned_.workspace.ids);
}

const float* MoeCall::route_weights() const noexcept {
  if (is_single(problem())) return nullptr;
  const bool is_given = problem().routing == MoeRouting::kGiven || is_grouped_input(problem());
  return is_given ? arguments_.weights : at<float>(planned_.workspace.weights);
}

const std::int32_t* MoeCall::shared_first() const noexcept {
  if (!info().has_shared) return nullptr;
  return at<std::int32_t>(planned_.workspace.offsets) + info().experts;
}

/// The arguments of each step.
struct MoeParamsMaker {
  const MoeCall& call;
  const MoeProblem& p = call.problem();
  const MoeWeightsInfo& w = call.info();
  const MoeWorkspace& at = call.planned_.workspace;
  const MoeArguments& a = call.arguments_;
  const device::Device& device = opened(call.weights_.device);
  std::int64_t rows = moe_rows(w, p);
  bool is_wide8 = call.planned_.details.kernel == MoeKernel::kWide8;
  bool has_row_scales =
      !kernels::kWideE4m3Variants[call.planned_.details.wide8_variant].has_k_scales;

  kernels::MoeRouteParams route() const {
    return {.logits = a.logits,
            .bias = p.has_bias ? a.bias : nullptr,
            .token_ids = a.token_ids,
            .table = p.routing == MoeRouting::kHash ? a.table : nullptr,
            .ids = call.at<std::int32_t>(at.ids),
            .weights = call.at<float>(at.weights),
            .logits_stride = p.logits_stride == 0 ? routed_experts(w, p) : p.logits_stride,
            .tokens = narrow(p.tokens),
            .experts = narrow(routed_experts(w, p)),
            .topk = narrow(p.topk),
            .vocab = narrow(p.vocab),
            .scale = static_cast<float>(p.route_scale),
            .is_normalized = p.normalize,
            .is_softmax = p.score == MoeScore::kSoftmax};
  }

  kernels::MoeRouteOwnParams own_route() const {
    return {route(), narrow(p.first_expert), narrow(w.experts)};
  }

  kernels::MoeShareParams share() const {
    return {.ids = a.ids,
            .own = call.at<std::int32_t>(at.ids),
            .slots = narrow(p.tokens * p.topk),
            .first = narrow(p.first_expert),
            .experts = narrow(w.experts),
            .all = narrow(p.all_experts)};
  }

  kernels::MoePermuteParams permute() const {
    return {.ids = call.ids(),
            .weights = call.route_weights(),
            .offsets = call.at<std::int32_t>(at.offsets),
            .slot_row = call.at<std::int32_t>(at.slot_row),
            .row_token = call.at<std::int32_t>(at.row_token),
            .row_weight = call.at<float>(at.row_weight),
            .status = call.at<kernels::MoeStatus>(at.status),
            .tokens = narrow(p.tokens),
            .topk = narrow(p.topk),
            .experts = narrow(w.experts),
            .has_shared = w.has_shared};
  }

  kernels::MoeScatterParams scatter() const {
    return {.x = static_cast<const std::uint16_t*>(a.x),
            .slot_row = call.at<const std::int32_t>(at.slot_row),
            .shared_first = call.shared_first(),
            .out = call.at<void>(at.x_rows),
            .scales = is_wide8 ? call.at<float>(at.x_scales) : nullptr,
            .x_stride = w.hidden,
            .out_stride_bytes = is_wide8 ? padded_columns(w.hidden) : 2 * w.hidden,
            .scale_pitch = scale_pitch(rows),
            .tokens = narrow(p.tokens),
            .hidden = narrow(w.hidden),
            .topk = narrow(p.topk),
            .out_columns = narrow(is_wide8 ? padded_columns(w.hidden) : w.hidden),
            .is_pow2 = false,
            .has_row_scales = has_row_scales};
  }

  kernels::MoeOffsetsParams expert_offsets() const {
    return {.counts = a.counts,
            .offsets = call.at<std::int32_t>(at.offsets),
            .status = call.at<kernels::MoeStatus>(at.status),
            .experts = narrow(w.experts),
            .rows = narrow(p.tokens)};
  }

  // Of x or of h.
  kernels::QuantizeParams quantize(bool is_x) const {
    const std::int64_t columns = is_x ? w.hidden : w.inter;
    kernels::QuantizeParams q = {};
    q.in = is_x ? a.x : call.at<void>(at.h);
    q.codes = call.at<void>(is_x ? at.x_rows : at.h_codes);
    q.scales = call.at<void>(is_x ? at.x_scales : at.h_scales);
    q.in_stride = columns;
    q.code_stride_bytes = padded_columns(columns);
    q.scale_row_stride = 1;
    q.scale_block_stride = scale_pitch(rows);
    q.rows = q.out_rows = narrow(rows);
    q.cols = narrow(columns);
    q.out_cols = narrow(padded_columns(columns));
    q.block_cols = 128;
    q.is_in_aligned = 1;
    q.min_amax = kernels::kFp8MinAmax;
    q.scale_order = kernels::ScaleOrder::kStrided;
    q.code_order = kernels::CodeOrder::kOperand;
    return q;
  }

  kernels::MoeDirectRouting direct_routing() const {
    const bool is_given = p.routing == MoeRouting::kGiven;
    kernels::MoeDirectRouting r = {};
    if (is_single(p)) {
      r.is_single = true;
      return r;
    }
    if (!is_given) r.route = route();
    r.given_ids = a.ids;
    r.given_weights = a.weights;
    r.own_ids = is_given && p.all_experts == 0 ? nullptr : call.at<std::int32_t>(at.ids);
    r.status = call.at<kernels::MoeStatus>(at.status);
    r.first = narrow(p.first_expert);
    r.all = narrow(p.all_experts);
    return r;
  }

  void bind_direct(kernels::MoeDirectExperts& experts) const;
  kernels::MoeScatterBlocksParams scatter_blocks() const;
  kernels::MoeGroupedRowsParams grouped_rows() const;
  kernels::MoeGroupedParams grouped(bool is_gate_up) const;

  kernels::MoeCombineParams combine() const {
    const auto* const y = call.at<const std::uint16_t>(at.y);
    return {.rows = y,
            .slot_row = call.at<const std::int32_t>(at.slot_row),
            .weights = p.weight_after_down ? call.route_weights() : nullptr,
            .shared_rows = w.has_shared ? y : nullptr,
            .shared_first = call.shared_first(),
            .out = a.out,
            .rows_stride = w.hidden,
            .out_stride = w.hidden,
            .tokens = narrow(p.tokens),
            .hidden = narrow(w.hidden),
            .topk = narrow(p.topk)};
  }

  // What the two products differ in.
  struct Product {
    const PackedExperts& experts;
    bool is_gate_up;
    std::int64_t k, columns;  // of y
    void* y;
  };
  Product product(bool is_gate_up) const {
    if (is_gate_up) return {call.weights_.gate_up, true, w.hidden, w.inter, call.at<void>(at.h)};
    void* const y = keeps_rows(p) ? a.out : call.at<void>(at.y);
    return {call.weights_.down, false, w.inter, w.hidden, y};
  }
  // Of grouped tokens nothing is summed: after down, y takes its weight before it is rounded.
  const float* row_weight(const Product& m) const {
    if (is_single(p)) return nullptr;
    if (is_grouped_input(p)) return m.is_gate_up != p.weight_after_down ? a.weights : nullptr;
    return m.is_gate_up && !p.weight_after_down ? call.at<const float>(at.row_weight) : nullptr;
  }
  bool gathers() const { return !keeps_rows(p); }
  // Null: all rows are of one matrix.
  const std::int32_t* offsets() const {
    return is_single(p) ? nullptr : call.at<const std::int32_t>(at.offsets);
  }
  // Of a single expert nothing is summed either, and y is the result in its type.
  bool is_f32(const Product& m) const {
    return is_single(p) && !m.is_gate_up && p.out_dtype == DType::kF32;
  }
  float limit() const { return static_cast<float>(p.swiglu_limit); }

  kernels::BandParams band(bool is_gate_up) const {
    const Product m = product(is_gate_up);
    const kernels::BandTile& tile =
        is_gate_up ? call.planned_.details.band_gate_up : call.planned_.details.band_down;
    const kernels::PackedShape& shape = m.experts.shape;
    kernels::BandParams b = {};
    b.weights = address_of<std::uint8_t>(m.experts.bricks);
    b.block_scales = address_of<float>(m.experts.block_scales);
    b.x = is_gate_up ? static_cast<const std::uint16_t*>(a.x) : call.at<const std::uint16_t>(at.h);
    b.y = m.y;
    b.alphas = address_of<float>(m.experts.alphas);
    b.expert_offsets = offsets();
    b.row_token = is_gate_up && gathers() ? call.at<const std::int32_t>(at.row_token) : nullptr;
    b.row_weight = row_weight(m);
    b.x_stride = m.k;
    b.y_stride = m.columns;
    b.matrix_bytes = shape.bytes();
    b.m = narrow(rows);
    b.is_y_f32 = is_f32(m);
    b.n = shape.rows;
    b.k = shape.k;
    b.experts = narrow(call.weights_.matrices());
    b.scale_halves = is_gate_up ? 2 : 1;
    b.scale_rows = narrow((m.columns + 127) / 128);
    b.is_swiglu = is_gate_up;
    b.alpha = 1;
    b.limit = limit();
    b.gate_slope = 1;
    b.cut = tile.cut(b.n, b.k);
    return b;
  }

  // What both kernels for many rows are given; x in rows of so many columns.
  void bind_product(const Product& m, const void* x, std::int64_t columns, int elem_bytes,
                    int box_rows, kernels::WideParams& b) const {
    bind_wide(device,
              {.x = {m.is_gate_up ? "rows of x" : "rows of h", x, columns, rows,
                     columns * elem_bytes, elem_bytes, box_rows},
               .bricks = address_of<std::uint8_t>(m.experts.bricks),
               .block_scales = address_of<float>(m.experts.block_scales),
               .shape = m.experts.shape,
               .y = m.y,
               .y_pitch = m.columns},
              b);
    b.alphas = address_of<float>(m.experts.alphas);
    b.row_weights = row_weight(m);
    b.segments = offsets();
    b.matrices = narrow(call.weights_.matrices());
    b.swiglu_limit = limit();
    b.is_swiglu = m.is_gate_up;
    b.is_f32 = is_f32(m);
  }

  kernels::WideBf16Params wide(bool is_gate_up) const {
    const Product m = product(is_gate_up);
    const MoeWideTile& tile = call.planned_.details.wide;
    kernels::WideBf16Params b = {};
    const void* const x = is_gate_up && gathers() ? call.at<void>(at.x_rows)
                          : is_gate_up            ? a.x
                                                  : call.at<void>(at.h);
    bind_product(m, x, m.k, 2, kernels::kWideGranule, b);
    b.tile_tokens = tile.tile_tokens;
    b.token_group = tile.token_group;
    b.box_tokens = kernels::kWideGranule;
    b.cluster_rows = tile.cluster_rows;
    b.stages = tile.stages;
    return b;
  }

  kernels::WideBf16Params spread(bool is_gate_up, const Spread& cut) const {
    const Product m = product(is_gate_up);
    kernels::WideBf16Params b = {};
    bind_product(m, is_gate_up ? a.x : call.at<void>(at.h), m.k, 2,
                 kernels::WideSpreadTile::kTokens, b);
    cut.bind(call.at<void>(at.sums), b);
    b.has_power_scales = m.experts.has_power_scales;
    return b;
  }

  kernels::WideE4m3Params wide8(bool is_gate_up) const {
    const Product m = product(is_gate_up);
    const kernels::WideE4m3Variant& variant =
        kernels::kWideE4m3Variants[call.planned_.details.wide8_variant];
    kernels::WideE4m3Params b = {};
    bind_product(m, call.at<void>(is_gate_up ? at.x_rows : at.h_codes), padded_columns(m.k), 1,
                 kernels::WideE4m3Variant::box_tokens(), b);
    b.tile_tokens = variant.tokens;
    b.token_group = 4;
    b.alpha = m.experts.e4m3_alpha();
    b.x_scales = call.at<const float>(is_gate_up ? at.x_scales : at.h_scales);
    b.x_scale_pitch = narrow(scale_pitch(rows));
    b.format = m.experts.shape.format;
    return b;
  }
};

void MoeParamsMaker::bind_direct(kernels::MoeDirectExperts& experts) const {
  for (const bool is_gate_up : {true, false}) {
    const Product m = product(is_gate_up);
    kernels::MoeDirectProduct& b = is_gate_up ? experts.gate_up : experts.down;
    b.weights = address_of<std::uint8_t>(m.experts.bricks);
    b.block_scales = address_of<float>(m.experts.block_scales);
    b.alphas = address_of<float>(m.experts.alphas);
    b.matrix_bytes = m.experts.shape.bytes();
    b.scale_rows = narrow((m.columns + 127) / 128);
  }
  experts.routing = direct_routing();
  experts.x = static_cast<const std::uint16_t*>(a.x);
  experts.h = call.at<std::uint16_t>(at.h);
  experts.out = a.out;
  experts.tokens = narrow(p.tokens);
  experts.topk = narrow(p.topk);
  experts.experts = narrow(w.experts);
  experts.limit = limit();
  experts.has_shared = w.has_shared;
  experts.is_weight_after_down = p.weight_after_down;
  experts.is_out_f32 = p.out_dtype == DType::kF32;
}

kernels::MoeScatterBlocksParams MoeParamsMaker::scatter_blocks() const {
  return {.x = static_cast<const std::uint16_t*>(a.x),
          .ids = call.ids(),
          .slot_row = call.at<const std::int32_t>(at.slot_row),
          .offsets = offsets(),
          .shared_first = call.shared_first(),
          .codes = call.at<std::uint8_t>(at.x_rows),
          .scales = call.at<std::uint8_t>(at.x_scales),
          .row_scales = call.at<float>(at.x_row_scales),
          .x_stride = w.hidden,
          .hidden = narrow(w.hidden),
          .topk = narrow(p.topk),
          .experts = narrow(w.experts)};
}

kernels::MoeGroupedRowsParams MoeParamsMaker::grouped_rows() const {
  return {.x = static_cast<const std::uint16_t*>(a.x),
          .offsets = is_in_rooms(p) ? nullptr : offsets(),
          .counts = is_in_rooms(p) ? a.counts : nullptr,
          .codes = call.at<std::uint8_t>(at.x_rows),
          .scales = call.at<std::uint8_t>(at.x_scales),
          .row_scales = call.at<float>(at.x_row_scales),
          .status = call.at<kernels::MoeStatus>(at.status),
          .x_stride = w.hidden,
          .hidden = narrow(w.hidden),
          .room = narrow(p.tokens),
          .experts = narrow(w.experts)};
}

kernels::MoeGroupedParams MoeParamsMaker::grouped(bool is_gate_up) const {
  const Product m = product(is_gate_up);
  const MoePlanDetails& details = call.planned_.details;
  const MoeGroupedVariant variant = details.grouped(w.format);
  kernels::MoeGroupedParams b =
      bind_grouped(device, variant,
                   {.experts = m.experts,
                    .matrices = call.weights_.matrices(),
                    .rows = rows,
                    .x = call.at<void>(is_gate_up ? at.x_rows : at.h_codes),
                    .x_scales = call.at<void>(is_gate_up ? at.x_scales : at.h_scales),
                    .out = is_gate_up ? call.at<void>(at.h_codes) : m.y,
                    .out_scales = is_gate_up ? call.at<void>(at.h_scales) : nullptr,
                    .is_gate_up = is_gate_up,
                    .box_rows = details.box_rows});
  if (is_in_rooms(p)) {
    b.counts = a.counts;
    b.room = narrow(p.tokens);
  } else {
    b.offsets = offsets();
  }
  if (variant.config.is_nvfp4()) {  // others have no scales for a tensor
    b.alphas = address_of<float>(m.experts.alphas);
    if (is_gate_up) b.row_scales = call.at<const float>(at.x_row_scales);
  }
  (is_gate_up ? b.row_weights : b.row_scales) = row_weight(m);
  b.limit = limit();
  return b;
}

void MoeCall::launch(std::size_t index, const Kernel& kernel, const Stream& stream) const {
  const Launch& l = planned_.plan.launches[index];
  const device::LaunchConfig config = dependent_launch(l);
  const MoeParamsMaker make = {*this};
  const bool is_gate_up = l.step == "gate_up";
  if (l.step == "route") return kernel.launch(config, make.own_route(), stream);
  if (l.step == "share") return kernel.launch(config, make.share(), stream);
  if (l.step == "permute") return kernel.launch(config, make.permute(), stream);
  if (l.step == "scatter" && is_grouped(planned_.details.kernel))
    return kernel.launch(config, make.scatter_blocks(), stream);
  if (l.step == "scatter") return kernel.launch(config, make.scatter(), stream);
  if (l.step == "offsets") return kernel.launch(config, make.expert_offsets(), stream);
  if (l.step == "quantize_x" && is_grouped(planned_.details.kernel))
    return kernel.launch(config, make.grouped_rows(), stream);
  if (l.step == "quantize" || l.step == "quantize_x")
    return kernel.launch(config, make.quantize(l.step == "quantize_x"), stream);
  if (l.step == "combine") return kernel.launch(config, make.combine(), stream);
  switch (planned_.details.kernel) {
    case MoeKernel::kDirect:
      return launch_direct(nullptr, kernel, stream);
    case MoeKernel::kBand:
      return kernel.launch(config, make.band(is_gate_up), stream);
    case MoeKernel::kSpread: {
      const Spread cut = moe_spread(opened(weights_.device).info(), info(), problem(), is_gate_up);
      return kernel.launch(cut.config(l), make.spread(is_gate_up, cut), stream);
    }
    case MoeKernel::kWide:
      return kernel.launch(config, make.wide(is_gate_up), stream);
    case MoeKernel::kWide8:
      return kernel.launch(config, make.wide8(is_gate_up), stream);
    case MoeKernel::kFew:
    case MoeKernel::kPair:
      return kernel.launch(config, make.grouped(is_gate_up), stream);
  }
}

void MoeCall::launch_with(const MoeCall& shared, const Kernel& kernel, const Stream& stream) const {
  launch_direct(&shared, kernel, stream);
}

void MoeCall::launch_direct(const MoeCall* shared, const Kernel& kernel,
                            const Stream& stream) const {
  const device::DeviceInfo& device = opened(weights_.device).info();
  const auto experts_of = [](const MoeCall& call) {
    return DirectExperts{call.info(), call.problem()};
  };
  const DirectExperts routed = experts_of(*this), single = experts_of(shared ? *shared : *this);
  DirectCut cut = cut_direct(device, routed, shared ? &single : nullptr);
  MoeParamsMaker{*this}.bind_direct(cut.params.routed);
  if (shared) MoeParamsMaker{*shared}.bind_direct(cut.params.single);
  device::LaunchConfig config = dependent_launch(planned_.plan.launches.front());
  config.dynamic_shared_bytes = static_cast<std::uint32_t>(cut.shared_bytes);
  config.is_cooperative = true;  // its CTAs wait for each other
  kernel.launch(config, cut.params, stream);
}

}  // namespace tilewright::ops
