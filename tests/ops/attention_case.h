// One call of the attention operator on random tensors, compared with the float64 reference.
#pragma once

#include "tilewright/attention.h"

#include "device/internal.h"
#include "reference/attention/attention.h"
#include "reference/attention/bound.h"
#include "reference/error_bound.h"
#include "tests/kernels/kernel_test.h"

#include <cmath>
#include <numeric>
#include <optional>
#include <tuple>

namespace tilewright::ops {

using device::Buffer;

/// A tensor as [batch, row, head, head_dim] in memory with strides; what lies between is NaN.
struct StridedTensor {
  std::int64_t batch, rows, heads, head_dim;
  Strides strides;

  Strides resolved() const {
    if (strides.batch != 0 || strides.row != 0 || strides.head != 0) return strides;
    return {rows * heads * head_dim, heads * head_dim, head_dim};
  }
  std::int64_t offset(std::int64_t i) const {
    const Strides s = resolved();
    const std::int64_t dim = i % head_dim, head = i / head_dim % heads;
    const std::int64_t row = i / head_dim / heads % rows, b = i / head_dim / heads / rows;
    return b * s.batch + row * s.row + head * s.head + dim;
  }
  std::int64_t num_elems() const { return batch * rows * heads * head_dim; }
  std::int64_t span_elems() const { return num_elems() == 0 ? 0 : offset(num_elems() - 1) + 1; }
};

/// What to run: the problem and, if it is packed, the lengths.
struct AttentionCase {
  AttentionProblem problem;
  std::vector<std::int32_t> q_lens, kv_lens;
  std::vector<double> sink;
};

inline std::vector<std::int32_t> running_sums(const std::vector<std::int32_t>& lengths) {
  std::vector<std::int32_t> sums = {0};
  for (const std::int32_t length : lengths) sums.push_back(sums.back() + length);
  return sums;
}

/// Of v and out.
inline std::int64_t value_dim_of(const AttentionProblem& problem) {
  return problem.value_dim == 0 ? problem.head_dim : problem.value_dim;
}

inline AttentionCase packed(AttentionProblem problem, std::vector<std::int32_t> q_lens,
                            std::vector<std::int32_t> kv_lens) {
  problem.is_packed = true;
  problem.batch = static_cast<std::int64_t>(q_lens.size());
  problem.q_len = *std::ranges::max_element(q_lens);
  problem.kv_len = *std::ranges::max_element(kv_lens);
  problem.total_q = std::accumulate(q_lens.begin(), q_lens.end(), std::int64_t{0});
  problem.total_kv = std::accumulate(kv_lens.begin(), kv_lens.end(), std::int64_t{0});
  return {problem, std::move(q_lens), std::move(kv_lens), {}};
}

class AttentionRun {
 public:
  AttentionRun(const Device& device, AttentionCase c) : device_(device), case_(std::move(c)) {
    const AttentionProblem& p = case_.problem;
    const std::int64_t batch = p.is_packed ? 1 : p.batch;
    const std::int64_t q_rows = p.is_packed ? p.total_q : p.q_len;
    const std::int64_t kv_rows = p.is_packed ? p.total_kv : p.kv_len;
    q_shape_ = {batch, q_rows, p.heads, p.head_dim, p.q_strides};
    k_shape_ = {batch, kv_rows, p.kv_heads, p.head_dim, p.k_strides};
    v_shape_ = {batch, kv_rows, p.kv_heads, value_dim_of(p), p.v_strides};
    out_shape_ = {batch, q_rows, p.heads, value_dim_of(p), p.out_strides};
    q_ = kernels::draw_many(1, q_shape_.num_elems(), kernels::Numbers::kUniform, format());
    k_ = kernels::draw_many(2, k_shape_.num_elems(), kernels::Numbers::kUniform, format());
    v_ = kernels::draw_many(3, v_shape_.num_elems(), kernels::Numbers::kUniform, format());
    if (p.has_sink && case_.sink.empty())
      for (std::int64_t h = 0; h < p.heads; ++h) case_.sink.push_back(0.5 * (h % 5) - 1);
  }

  /// Element `dim` of value `key` of a head becomes this. The element is compared in no row: rows
  /// that see the key have the NaN, and rows of the sequence that do not may have it.
  void spoil_value(double value, std::int64_t b, std::int64_t key, std::int64_t kv_head,
                   std::int64_t dim) {
    spoilt_ = {b, key, kv_head, dim};
    spoilt_value_ = value;
  }

  /// Runs, by `enqueue` if given, and compares.
  template <class Enqueue>
  void check(Enqueue enqueue) {
    const Attention attention(device_, case_.problem);
    const device::Device& inner = opened(device_);
    std::vector<double> values = v_;
    if (spoilt_) {
      const auto& [b, key, head, dim] = *spoilt_;
      values[static_cast<std::size_t>(
          ((b * v_shape_.rows + key) * v_shape_.heads + head) * v_shape_.head_dim + dim)] =
          spoilt_value_;
    }
    const Buffer q = upload(q_, q_shape_), k = upload(k_, k_shape_), v = upload(values, v_shape_);
    const Buffer cu_q = Buffer::from(inner, running_sums(case_.q_lens));
    const Buffer cu_kv = Buffer::from(inner, running_sums(case_.kv_lens));
    const Buffer sink = Buffer::from(inner, kernels::to_floats(case_.sink));
    const Buffer workspace(inner, attention.plan().workspace_bytes);
    const kernels::Output<std::uint16_t> out(inner,
                                             static_cast<std::size_t>(out_shape_.span_elems()));
    const kernels::Output<float> lse(inner, num_rows());
    const device::Stream stream(inner);
    enqueue(
        attention,
        AttentionArguments{kernels::pointer_to<const void>(q), kernels::pointer_to<const void>(k),
                           kernels::pointer_to<const void>(v), out.pointer(), lse.pointer(),
                           kernels::pointer_to<const float>(sink),
                           kernels::pointer_to<const std::int32_t>(cu_q),
                           kernels::pointer_to<const std::int32_t>(cu_kv),
                           kernels::pointer_to<void>(workspace), stream.handle()},
        stream);
    stream.synchronize();
    compare(out.read(), lse.read());
  }
  void check() {
    check([](const Attention& attention, const AttentionArguments& arguments,
             const device::Stream&) { attention.run(arguments); });
  }

 private:
  const FormatSpec& format() const { return case_.problem.dtype == DType::kF16 ? kFp16 : kBf16; }
  std::size_t num_rows() const {
    return static_cast<std::size_t>(q_shape_.batch * q_shape_.rows * q_shape_.heads);
  }

  Buffer upload(const std::vector<double>& values, const StridedTensor& shape) const {
    std::vector<std::uint16_t> codes(static_cast<std::size_t>(shape.span_elems()), 0xffff);
    for (std::size_t i = 0; i < values.size(); ++i) {
      codes[static_cast<std::size_t>(shape.offset(static_cast<std::int64_t>(i)))] =
          static_cast<std::uint16_t>(encode(format(), values[i]));
    }
    return Buffer::from(opened(device_), codes);
  }

  reference::AttentionResult expected() const {
    const AttentionProblem& p = case_.problem;
    reference::AttentionParams params = {.batch = p.batch,
                                         .heads = p.heads,
                                         .kv_heads = p.kv_heads,
                                         .q_len = p.q_len,
                                         .kv_len = p.kv_len,
                                         .head_dim = p.head_dim,
                                         .v_head_dim = value_dim_of(p),
                                         .scale = p.scale,
                                         .softcap = p.softcap,
                                         .causal = p.causal,
                                         .window_left = p.window_left,
                                         .window_right = p.window_right,
                                         .sink = case_.sink,
                                         .magnitudes = true};
    const auto cu_q = running_sums(case_.q_lens), cu_kv = running_sums(case_.kv_lens);
    if (p.is_packed) {
      params.cu_seqlens_q = cu_q;
      params.cu_seqlens_kv = cu_kv;
    }
    return reference::attention(params, q_, k_, v_);
  }

  // Index of a row of out in lse.
  std::size_t lse_index(std::int64_t b, std::int64_t row, std::int64_t head) const {
    return static_cast<std::size_t>((b * q_shape_.heads + head) * q_shape_.rows + row);
  }

  void compare(std::vector<std::uint16_t> out, const std::vector<float>& lse) const {
    const reference::AttentionResult exact = expected();
    const AttentionProblem& p = case_.problem;
    const double u = p.dtype == DType::kF16 ? reference::kRoundoffFp16 : reference::kRoundoffBf16;
    const std::int64_t columns = value_dim_of(p);
    for (std::int64_t i = 0; i < out_shape_.num_elems(); ++i) {
      const std::int64_t dim = i % columns, head = i / columns % p.heads;
      const std::int64_t row = i / columns / p.heads % q_shape_.rows;
      const std::int64_t b = i / columns / p.heads / q_shape_.rows;
      const std::size_t at = static_cast<std::size_t>(i), line = lse_index(b, row, head);
      const reference::AttentionRow bounds = {.head_dim = p.head_dim,
                                              .num_keys = p.kv_len,
                                              .score_magnitude = exact.score_magnitude[line],
                                              .row_max = exact.row_max[line],
                                              .softcap = p.softcap,
                                              .value_max = 2,
                                              .p_roundoff = u,
                                              .p_subnormal = p.dtype == DType::kF16 ? 0x1p-24 : 0,
                                              .out_roundoff = u};
      std::uint16_t& code = out[static_cast<std::size_t>(out_shape_.offset(i))];
      const double value = decode(format(), code);
      if (spoilt_ && is_spoilt(b, row, head, dim)) {
        const std::int64_t last_seen = row + (p.is_packed ? 0 : p.kv_len - p.q_len);
        if (!p.is_packed && (!p.causal || std::get<1>(*spoilt_) <= last_seen)) {
          ASSERT_FALSE(std::isfinite(value)) << "row " << row << " sees the value";
        }
        code = 0xffff;
        continue;
      }
      ASSERT_LE(std::abs(value - exact.out[at]),
                reference::attention_out_bound(bounds, exact.out[at], exact.out_magnitude[at]))
          << "batch " << b << ", row " << row << ", head " << head << ", dim " << dim << ": "
          << value << " for " << exact.out[at];
      code = 0xffff;
      if (!p.has_lse || dim != 0) continue;
      if (std::isinf(exact.lse[line])) {
        ASSERT_EQ(lse[line], -INFINITY) << "row " << row;
      } else {
        ASSERT_NEAR(lse[line], exact.lse[line],
                    reference::attention_lse_bound(bounds, exact.lse[line]))
            << "batch " << b << ", row " << row << ", head " << head;
      }
    }
    for (std::size_t i = 0; i < out.size(); ++i)
      ASSERT_EQ(out[i], 0xffff) << "element " << i << " lies between the rows of out";
    if (!p.has_lse) {
      for (const float x : lse) ASSERT_TRUE(std::isnan(x)) << "lse was not asked for";
    }
  }

  // Of the sequence, the heads and the column that have the value which is not finite.
  bool is_spoilt(std::int64_t b, std::int64_t row, std::int64_t head, std::int64_t dim) const {
    const auto& [of_batch, key, kv_head, of_dim] = *spoilt_;
    const AttentionProblem& p = case_.problem;
    if (b != of_batch || head / (p.heads / p.kv_heads) != kv_head || dim != of_dim) return false;
    if (!p.is_packed) return true;
    const auto sequence = [](const std::vector<std::int32_t>& lengths, std::int64_t at) {
      std::size_t i = 0;
      for (std::int64_t end = 0; i < lengths.size() && at >= (end += lengths[i]);) ++i;
      return i;
    };
    return sequence(case_.q_lens, row) == sequence(case_.kv_lens, key);
  }

  const Device& device_;
  AttentionCase case_;
  std::optional<std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t>> spoilt_;
  double spoilt_value_ = 0;
  StridedTensor q_shape_, k_shape_, v_shape_, out_shape_;
  std::vector<double> q_, k_, v_;
};

}  // namespace tilewright::ops
