#include "bench/timing/operators.h"

#include "tilewright/attention.h"
#include "tilewright/block_scaled_linear.h"
#include "tilewright/buffer.h"
#include "tilewright/graph.h"
#include "tilewright/latent_attention.h"
#include "tilewright/linear.h"
#include "tilewright/quantize.h"
#include "tilewright/stream.h"

#include "base/error.h"
#include "bench/timing/experts.h"
#include "bench/timing/model_parts.h"
#include "verify/attention/data.h"
#include "verify/decode_device.h"
#include "verify/device_facts.h"
#include "verify/indexer_device.h"
#include "verify/sparse_device.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>

namespace tilewright::cli {

namespace {

using nlohmann::json;

/// "bf16", "f16", "e4m3".
DType type_of(const std::string& name) {
  if (name == "e4m3") return DType::kF8_E4M3;
  return name == "f16" ? DType::kF16 : DType::kBF16;
}

AttentionProblem attention_problem(const TimingPoint& point) {
  const json& from = point.problem;
  AttentionProblem p;
  p.dtype = type_of(from["dtype"]);
  p.batch = from["batch"], p.heads = from["heads"], p.kv_heads = from["kv_heads"];
  p.q_len = from["q_len"], p.kv_len = from["kv_len"], p.head_dim = from["head_dim"];
  p.causal = from["causal"];
  const json& strides = from["q_strides"];
  p.q_strides = {strides[0], strides[1], strides[2]};
  p.kernel = point.kernel;
  if (const std::string keys = from.value("kv_dtype", ""); !keys.empty())
    p.kv_dtype = type_of(keys);
  p.page_size = from.value("page", std::int64_t{0});
  if (p.page_size != 0) {
    p.max_pages = (p.kv_len + p.page_size - 1) / p.page_size;
    p.num_pages = p.batch * p.max_pages;
    p.has_kv_lengths = true;
  }
  return p;
}

std::int64_t count_of(const AttentionProblem& p, std::int64_t rows, std::int64_t heads) {
  return p.batch * rows * heads * p.head_dim;
}

/// 0, 1, 2, ...
Buffer counted_up(const Device& device, std::int64_t count) {
  std::vector<std::int32_t> all(static_cast<std::size_t>(count));
  std::iota(all.begin(), all.end(), 0);
  return Buffer::from(device, all);
}

Buffer same_numbers(const Device& device, std::int64_t count, std::int64_t value) {
  return Buffer::from(device, std::vector<std::int32_t>(static_cast<std::size_t>(count),
                                                        static_cast<std::int32_t>(value)));
}

json predicted_by(const Device& device, const std::string& kernel) {
  const json counts = take_counts(device);
  require(counts.is_object() && counts.contains("predicted"), ErrorKind::kInternal,
          "bench timing: the simulator predicts no time of {}", kernel);
  json predicted = counts["predicted"];
  predicted["kernels"] = counts["kernels"];
  return predicted;
}

/// In a graph, as they were timed.
json predict_in_graph(const Device& device, const Stream& stream, const TimingPoint& point,
                      const std::function<void()>& call) {
  const Graph graph = Graph::capture(stream, call);
  take_counts(device);
  graph.launch(stream);
  stream.synchronize();
  return predicted_by(device, point.kernel);
}

/// Normal numbers of bf16 or f16, a million of them again and again. Of operands that are all alike
/// kernels would find nothing to rescale, and be too fast.
Buffer drawn(const Device& device, std::int64_t count, DType dtype) {
  constexpr std::int64_t kDrawn = 1 << 20;
  if (dtype == DType::kF8_E4M3) {
    // Codes of bf16, two a number: their lower bytes are even; of their upper ones none is a NaN.
    constexpr std::uint16_t kFinite = 0xb7b7;
    std::vector<std::uint16_t> codes = draw_normal(kDrawn, 1, DType::kBF16);
    std::vector<std::uint16_t> all(static_cast<std::size_t>((count + 1) / 2));
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = codes[i % codes.size()] & kFinite;
    return Buffer::from(device, all);
  }
  const std::vector<std::uint16_t> codes = draw_normal(std::min(count, kDrawn), 1, dtype);
  std::vector<std::uint16_t> all(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = codes[i % codes.size()];
  return Buffer::from(device, all);
}

json predict_attention(const Device& device, const TimingPoint& point) {
  const Attention attention(device, attention_problem(point));
  const AttentionProblem& p = attention.plan().problem;
  const Buffer q = drawn(device, count_of(p, p.q_len, p.heads), p.dtype);
  const std::int64_t keys = p.page_size != 0 ? p.max_pages * p.page_size : p.kv_len;
  const DType kv_dtype = p.kv_dtype.value_or(p.dtype);
  const Buffer k = drawn(device, count_of(p, keys, p.kv_heads), kv_dtype);
  const Buffer v = drawn(device, count_of(p, keys, p.kv_heads), kv_dtype);
  const Buffer ones = Buffer::from(device, std::vector<float>(1, 1.0F));
  const Buffer lengths = same_numbers(device, p.batch, p.kv_len);
  const Buffer table = counted_up(device, std::max<std::int64_t>(1, p.num_pages));
  const bool is_e4m3 = kv_dtype == DType::kF8_E4M3;
  const float* const scale = is_e4m3 ? ones.as<const float>() : nullptr;
  const Buffer out(device, 2 * static_cast<std::size_t>(count_of(p, p.q_len, p.heads)));
  const Buffer workspace(device, attention.plan().workspace_bytes);
  const Stream stream(device);
  take_counts(device);
  attention.run({.q = q.data(),
                 .k = k.data(),
                 .v = v.data(),
                 .out = out.data(),
                 .workspace = workspace.data(),
                 .stream = stream.handle(),
                 .q_descale = p.dtype == DType::kF8_E4M3 ? scale : nullptr,
                 .k_descale = scale,
                 .v_descale = scale,
                 .kv_lengths = p.has_kv_lengths ? lengths.as<const std::int32_t>() : nullptr,
                 .block_table = p.page_size != 0 ? table.as<const std::int32_t>() : nullptr});
  stream.synchronize();
  return predicted_by(device, point.kernel);
}

/// "w4a16" of "w4a16:band": weights of NVFP4, FP8 or bf16 ("w16a16"), activations of bf16 or FP8.
/// "nvfp4", "mxfp8", "mxfp8 mxfp4": both with scales of blocks.
struct LinearKind {
  NumberFormat format = NumberFormat::kNvfp4;
  LinearActivations activations = LinearActivations::kBf16;
};

LinearKind linear_kind(const std::string& name) {
  if (name == "bf16" || name.starts_with("w16"))
    return {NumberFormat::kBf16, LinearActivations::kBf16};
  if (name == "nvfp4") return {NumberFormat::kNvfp4, LinearActivations::kBlockScaled};
  if (name == "mxfp8") return {NumberFormat::kFp8, LinearActivations::kBlockScaled};
  if (name == "mxfp8 mxfp4") return {NumberFormat::kMxfp4, LinearActivations::kBlockScaled};
  return {name.starts_with("w4") ? NumberFormat::kNvfp4 : NumberFormat::kFp8,
          name.ends_with("a16") ? LinearActivations::kBf16 : LinearActivations::kFp8};
}

/// Codes of zero, but scales that differ: where one block's is the next one's, nothing is rescaled.
class SampleWeight {
 public:
  SampleWeight(const LinearKind& kind, std::int64_t n, std::int64_t k) {
    const bool is_bf16 = kind.format == NumberFormat::kBf16;
    const bool is_fp8 = kind.format == NumberFormat::kFp8;
    values_.resize(static_cast<std::size_t>(is_bf16 ? 2 * n * k : is_fp8 ? n * k : n * k / 2));
    source_.format = kind.format;
    if (is_bf16) {
      source_.values = contiguous_view(values_.data(), DType::kBF16, {n, k});
    } else if (is_fp8) {
      source_.values = contiguous_view(values_.data(), DType::kF8_E4M3, {n, k});
      add_block_scales(kind.activations == LinearActivations::kBlockScaled, n, k);
    } else {
      const bool is_nvfp4 = kind.format == NumberFormat::kNvfp4;
      const std::int64_t groups = k / (is_nvfp4 ? 16 : 32);
      group_scales_.resize(static_cast<std::size_t>(n * groups));
      source_.values = contiguous_view(values_.data(), DType::kU8, {n, k / 2});
      source_.scales = contiguous_view(group_scales_.data(), DType::kU8, {n, groups});
      if (is_nvfp4) source_.global_scale = 1.0F;
    }
  }
  SampleWeight(const SampleWeight&) = delete;
  SampleWeight& operator=(const SampleWeight&) = delete;

  /// Views of this object's memory.
  const LinearWeightSource& source() const { return source_; }

 private:
  /// The tensor cores multiply by powers of two alone.
  void add_block_scales(bool has_powers_of_two, std::int64_t n, std::int64_t k) {
    const std::int64_t rows = (n + 127) / 128, columns = (k + 127) / 128;
    block_scales_.resize(static_cast<std::size_t>(rows * columns));
    for (std::size_t i = 0; i < block_scales_.size(); ++i) {
      block_scales_[i] = has_powers_of_two ? static_cast<float>(1 << i % 4)
                                           : 1.0F + static_cast<float>(i % 61) / 64;
    }
    source_.scales = contiguous_view(block_scales_.data(), DType::kF32, {rows, columns});
  }

  std::vector<std::byte> values_, group_scales_;
  std::vector<float> block_scales_;
  LinearWeightSource source_;
};

json predict_linear(const Device& device, const TimingPoint& point) {
  const std::size_t colon = point.kernel.find(':');
  const json& from = point.problem;
  const std::int64_t m = from["m"], n = from["n"], k = from["k"];
  const LinearKind kind = linear_kind(point.kernel.substr(0, colon));
  const LinearWeight weight =
      LinearWeight::prepare(device, SampleWeight(kind, n, k).source(), kind.activations);
  LinearProblem problem;
  problem.m = m;
  problem.kernel = point.kernel.substr(colon + 1);
  const Linear linear(weight, problem);
  const Buffer x = drawn(device, m * k, DType::kBF16);
  const Buffer out(device, static_cast<std::size_t>(2 * m * n));
  const Buffer workspace(device, linear.plan().workspace_bytes);
  const Stream stream(device);
  return predict_in_graph(device, stream, point, [&] {
    linear.run({.x = x.data(),
                .out = out.data(),
                .workspace = workspace.data(),
                .stream = stream.handle()});
  });
}

json predict_block_scaled(const Device& device, const TimingPoint& point) {
  const json& from = point.problem;
  const std::string out = from["out"];
  const bool has_swiglu = from["swiglu"];
  const std::int64_t n = from["n"].get<std::int64_t>() / (has_swiglu ? 2 : 1);
  const SampleWeight sample(linear_kind(from["kind"]), n, from["k"]);
  LinearWeightSource source = sample.source();
  if (has_swiglu) source.up_values = source.values, source.up_scales = source.scales;
  const BlockScaledWeight weight = BlockScaledWeight::prepare(device, source);
  BlockScaledProblem problem;
  problem.m = from["m"];
  problem.out_dtype = out == "nvfp4" ? DType::kF4 : out == "mxfp8" ? DType::kF8_E4M3 : DType::kBF16;
  problem.kernel = point.kernel;
  const BlockScaledLinear linear(weight, problem);
  const BlockScaledPlan& plan = linear.plan();
  const Buffer x(device, plan.x_bytes), x_scales(device, plan.x_scales_bytes);
  const Buffer result(device, plan.out_bytes), result_scales(device, plan.out_scales_bytes);
  const Stream stream(device);
  return predict_in_graph(device, stream, point, [&] {
    linear.run({.x = x.data(),
                .x_scales = x_scales.data(),
                .out = result.data(),
                .out_scales = result_scales.data(),
                .stream = stream.handle()});
  });
}

json predict_quantize(const Device& device, const TimingPoint& point) {
  QuantizeProblem problem;
  problem.format = point.problem["format"];
  problem.rows = point.problem["rows"], problem.cols = point.problem["cols"];
  const Quantize quantize(device, problem);
  const QuantizePlan& plan = quantize.plan();
  const Buffer in = drawn(device, problem.rows * problem.cols, problem.dtype);
  const Buffer codes(device, plan.code_bytes), scales(device, plan.scale_bytes);
  const Buffer tensor_scale(device, sizeof(float)), workspace(device, plan.workspace_bytes);
  const Stream stream(device);
  return predict_in_graph(device, stream, point, [&] {
    quantize.run({.in = in.data(),
                  .codes = codes.data(),
                  .scales = scales.data(),
                  .tensor_scale = tensor_scale.as<float>(),
                  .workspace = workspace.data(),
                  .stream = stream.handle()});
  });
}

json predict_decode(const Device& device, const TimingPoint& point) {
  const json& from = point.problem;
  const AttentionDecodeProblem problem = {.dtype = from["kv"] == "F16" ? DType::kF16 : DType::kBF16,
                                          .kv_dtype = from["kv"] == "F8_E4M3" ? DType::kF8_E4M3
                                                      : from["kv"] == "F16"   ? DType::kF16
                                                                              : DType::kBF16,
                                          .batch = from["batch"],
                                          .q_len = from["q_len"],
                                          .heads = from["heads"],
                                          .kv_heads = from["kv_heads"],
                                          .head_dim = from["head_dim"],
                                          .has_lse = true,
                                          .kernel = point.kernel};
  const DecodeData data = draw_decode(problem, from["keys"], DecodeLengths::kFull, from["page"]);
  const AttentionDecode decode(device, data.problem);
  DecodeOperands operands(device, data, 1);
  operands.prepare(decode.plan());
  return predict_in_graph(device, operands.stream(), point, [&] { operands.run(decode, 0); });
}

NumberFormat format_of(const TimingPoint& point) {
  const auto format = number_format_from_string(point.format);
  require(format.has_value(), ErrorKind::kInvalidArgument,
          "bench timing: a row of {} has format = {}, which is none", point.kernel, point.format);
  return *format;
}

/// The schedule is made before: the log's times are without it.
json predict_sparse(const Device& device, const TimingPoint& point) {
  const std::string name = point.shape.substr(0, point.shape.find(' '));
  const SparseData data =
      draw_sparse(find_sparse_shape(name), format_of(point), point.problem["batch"], 1, 1);
  SparseAttentionProblem problem = data.problem;
  problem.positive_empty_lse = true;
  problem.kernel = point.kernel;
  const SparseAttention attention(device, problem);
  SparseOperands operands(device, data);
  operands.prepare(attention.plan());
  SparseAttentionArguments arguments = operands.arguments(0);
  attention.run(arguments);
  operands.stream().synchronize();
  arguments.reuses_schedule = true;
  return predict_in_graph(device, operands.stream(), point, [&] { attention.run(arguments); });
}

/// Of DeepSeek-V3 over pages of 64 keys, likewise with a schedule that was made before.
json predict_latent(const Device& device, const TimingPoint& point) {
  constexpr std::int64_t kPage = 64, kRowBytes = 576 * 2;
  const json& from = point.problem;
  const std::int64_t batch = from["batch"], keys = from["keys"], of_sequence = keys / kPage;
  LatentAttentionProblem problem =
      mla_decode_problem(batch, from["q_len"], from["heads"], batch * of_sequence, of_sequence);
  problem.kernel = point.kernel;
  const LatentAttention attention(device, problem);
  const auto rows = static_cast<std::size_t>(problem.batch * problem.q_len * problem.heads);
  const Buffer q(device, rows * kRowBytes), out(device, rows * kRowBytes);
  const Buffer cache(device, static_cast<std::size_t>(batch * keys * kRowBytes));
  const Buffer table = counted_up(device, batch * of_sequence);
  const Buffer lengths = same_numbers(device, batch, keys);
  const Buffer workspace(device, attention.plan().workspace_bytes);
  const Stream stream(device);
  constexpr std::size_t kTail = 512 * 2;
  LatentAttentionArguments arguments = {.q = q.as<std::byte>() + kTail,
                                        .qv = q.data(),
                                        .k = cache.as<std::byte>() + kTail,
                                        .v = cache.data(),
                                        .lengths = lengths.as<std::int32_t>(),
                                        .block_table = table.as<std::int32_t>(),
                                        .out = out.data(),
                                        .workspace = workspace.data(),
                                        .stream = stream.handle()};
  attention.run(arguments);
  stream.synchronize();
  arguments.reuses_schedule = true;
  return predict_in_graph(device, stream, point, [&] { attention.run(arguments); });
}

IndexShape index_shape(const TimingPoint& point) {
  const json& from = point.problem;
  IndexShape shape;
  shape.format = format_of(point);
  shape.batch = from["batch"], shape.q_len = from["q_len"], shape.heads = from["heads"];
  shape.keys = from["keys"], shape.topk = from["topk"], shape.key_page = from["key_page"];
  shape.lengths = index_lengths_from_string(from["lengths"]);
  return shape;
}

/// Logits alone, as they were timed.
json predict_indexer(const Device& device, const TimingPoint& point) {
  const IndexData data = draw_index(index_shape(point), 0, 1, 1);
  const Indexer indexer(device, data.problem);
  const IndexOperands operands(device, data, indexer);
  for (const IndexerStep step : {IndexerStep::kQuery, IndexerStep::kSchedule}) {
    indexer.run(operands.arguments(0), step);
  }
  operands.stream().synchronize();
  return predict_in_graph(device, operands.stream(), point,
                          [&] { indexer.run(operands.arguments(0), IndexerStep::kLogits); });
}

json predict_experts(const Device& device, const TimingPoint& point) {
  const Stream stream(device);
  return predict_in_graph(device, stream, point, experts_call(device, stream, point));
}

json predict_model_part(const Device& device, const TimingPoint& point) {
  const Stream stream(device);
  return predict_in_graph(device, stream, point, model_part_call(device, stream, point));
}

}  // namespace

void request_predictions(int sample) {
  request_counts();
  ::setenv("TILEWRIGHT_SIM_TIME", "1", 1);
  ::setenv("TILEWRIGHT_SIM_CHECK", "none", 1);
  ::setenv("TILEWRIGHT_SIM_TIME_SAMPLE", std::to_string(sample).c_str(), 1);
}

json predict_point(const Device& device, const TimingPoint& point) {
  switch (point.timed) {
    case TimedOperator::kAttention:
      return predict_attention(device, point);
    case TimedOperator::kLinear:
      return predict_linear(device, point);
    case TimedOperator::kDecode:
      return predict_decode(device, point);
    case TimedOperator::kSparse:
      return predict_sparse(device, point);
    case TimedOperator::kLatent:
      return predict_latent(device, point);
    case TimedOperator::kIndexer:
      return predict_indexer(device, point);
    case TimedOperator::kExperts:
      return predict_experts(device, point);
    case TimedOperator::kBlockScaled:
      return predict_block_scaled(device, point);
    case TimedOperator::kQuantize:
      return predict_quantize(device, point);
    case TimedOperator::kCompressor:
    case TimedOperator::kCacheWrite:
    case TimedOperator::kHyperConnection:
      return predict_model_part(device, point);
  }
  fail(ErrorKind::kInternal, "bench timing: {} is of no known operator", point.kernel);
}

}  // namespace tilewright::cli
