// One call of the latent attention operator on random tensors, compared with the float64 reference.
#pragma once

#include "tilewright/latent_attention.h"

#include "device/graph.h"
#include "device/internal.h"
#include "reference/attention/attention.h"
#include "reference/attention/bound.h"
#include "reference/error_bound.h"
#include "tests/kernels/kernel_test.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tilewright::ops {

struct LatentCase {
  LatentAttentionProblem problem;
  std::vector<std::int32_t> lengths;
  bool is_mla = false;  ///< k lies behind v, and q behind qv, in one tensor
  bool has_graph = false;
  bool lacks_page = false;  ///< the first page of the last sequence is none
};

class LatentRun {
 public:
  LatentRun(const Device& device, const LatentCase& c)
      : device_(device), case_(c), attention_(device, c.problem), p_(plan().problem) {
    for (float h = 0; std::ssize(sinks_) < p_.heads; ++h) {
      const int i = static_cast<int>(h) % 5;
      sinks_.push_back(i == 3 ? INFINITY : i == 4 ? -INFINITY : 0.5f * h - 1);
    }
    draw_table();
    q_ = draw_rows(1, kKeyDims), qv_ = draw_rows(2, p_.value_dim);
    q_codes_ = place_rows(q_, p_.q_strides, kKeyDims);
    qv_codes_ = place_rows(qv_, p_.qv_strides, p_.value_dim);
    if (c.is_mla) merge_mla(q_codes_, qv_codes_);
    place_cache(k_codes_, 3, p_.k_strides, kKeyDims);
    place_cache(v_codes_, 4, p_.v_strides, p_.value_dim);
    if (c.is_mla) merge_mla(k_codes_, v_codes_);
  }

  const LatentAttentionPlan& plan() const { return attention_.plan(); }

  void check() {
    const device::Device& device = opened(device_);
    using device::Buffer;
    const Buffer q = Buffer::from(device, q_codes_), qv = Buffer::from(device, qv_codes_);
    const Buffer k = Buffer::from(device, k_codes_), v = Buffer::from(device, v_codes_);
    const Buffer lengths = Buffer::from(device, case_.lengths);
    const Buffer table = Buffer::from(device, table_), sink = Buffer::from(device, sinks_);
    kernels::Output<std::uint16_t> out(
        device, static_cast<std::size_t>(end_of(p_.out_strides, p_.value_dim)));
    kernels::Output<float> lse(device, static_cast<std::size_t>(end_of(p_.lse_strides, 1)));
    kernels::Output<std::byte> workspace(device, plan().workspace_bytes);
    const device::Stream stream(device);
    const auto behind = [&](const Buffer& values) {
      return kernels::pointer_to<std::uint16_t>(values) + p_.value_dim;
    };
    LatentAttentionArguments a = {
        .q = case_.is_mla ? behind(qv) : kernels::pointer_to<std::uint16_t>(q),
        .qv = p_.has_qv ? kernels::pointer_to<void>(qv) : nullptr,
        .k = case_.is_mla ? behind(v) : kernels::pointer_to<std::uint16_t>(k),
        .v = kernels::pointer_to<void>(v),
        .lengths = kernels::pointer_to<std::int32_t>(lengths),
        .block_table = p_.page_size > 0 ? kernels::pointer_to<std::int32_t>(table) : nullptr,
        .out = out.pointer(),
        .lse = p_.has_lse ? lse.pointer() : nullptr,
        .sink = p_.has_sink ? kernels::pointer_to<float>(sink) : nullptr,
        .workspace = workspace.pointer(),
        .stream = stream.handle()};
    run(a, stream);
    compare(out.read(), lse.read());
    if (!plan().has_schedule) return;
    const auto first = out.read();
    a.reuses_schedule = true;
    attention_.run(a);
    stream.synchronize();
    EXPECT_EQ(out.read(), first) << "another result with the schedule of the first run";
  }

 private:
  static constexpr std::int64_t kKeyDims = 64;

  const FormatSpec& format() const { return p_.dtype == DType::kF16 ? kFp16 : kBf16; }

  void run(const LatentAttentionArguments& a, const device::Stream& stream) {
    if (case_.has_graph) {
      device::Graph::capture(stream, [&] { attention_.run(a); }).launch(stream);
    } else {
      attention_.run(a);
    }
    stream.synchronize();
  }

  std::int64_t slots() const { return p_.page_size > 0 ? p_.page_size : p_.max_len; }
  std::int64_t pages() const { return p_.page_size > 0 ? p_.num_pages : p_.batch; }
  std::int64_t keys(std::int64_t b) const {
    const std::int64_t room = p_.page_size > 0 ? p_.page_size * p_.max_pages : p_.max_len;
    return std::clamp<std::int64_t>(case_.lengths[static_cast<std::size_t>(b)], 0, room);
  }
  // Elements of a tensor of queries.
  std::int64_t end_of(const Strides& s, std::int64_t width) const {
    return (p_.batch - 1) * s.batch + (p_.q_len - 1) * s.row + (p_.heads - 1) * s.head + width;
  }

  // Pages in an order of their own; entries that no key needs name no page.
  void draw_table() {
    if (p_.page_size == 0) return table_.assign(1, 0);
    std::vector<std::int32_t> free(static_cast<std::size_t>(p_.num_pages));
    std::iota(free.begin(), free.end(), 0);
    kernels::Random random(5);
    for (std::size_t i = free.size(); i > 1; --i) std::swap(free[i - 1], free[random.bits() % i]);
    table_.assign(static_cast<std::size_t>(std::max<std::int64_t>(p_.batch * p_.table_stride, 1)),
                  0x7fffffff);
    for (std::int64_t b = 0; b < p_.batch; ++b) {
      for (std::int64_t i = 0; i * p_.page_size < keys(b); ++i) {
        ASSERT_FALSE(free.empty()) << "the case has too few pages";
        table_[static_cast<std::size_t>(b * p_.table_stride + i)] = free.back();
        free.pop_back();
      }
    }
    if (case_.lacks_page) table_[static_cast<std::size_t>((p_.batch - 1) * p_.table_stride)] = -1;
  }
  std::vector<double> draw_rows(std::uint64_t seed, std::int64_t dims) const {
    return kernels::draw_many(seed, p_.batch * p_.q_len * p_.heads * dims,
                              kernels::Numbers::kUniform, format());
  }
  std::vector<std::uint16_t> place_rows(const std::vector<double>& rows, const Strides& s,
                                        std::int64_t dims) const {
    std::vector<std::uint16_t> codes(static_cast<std::size_t>(end_of(s, dims)), 0xffff);
    for (std::int64_t i = 0; i < std::ssize(rows); ++i) {
      const std::int64_t row = i / dims, h = row % p_.heads, query = row / p_.heads;
      const std::int64_t at = query / p_.q_len * s.batch + query % p_.q_len * s.row + h * s.head;
      codes[static_cast<std::size_t>(at + i % dims)] =
          static_cast<std::uint16_t>(encode(format(), rows[static_cast<std::size_t>(i)]));
    }
    return codes;
  }
  // Element of a cache where the row of a key begins; below 0 if it has none.
  std::int64_t offset(const Strides& s, std::int64_t b, std::int64_t key, std::int64_t head) const {
    std::int64_t page = b, slot = key;
    if (p_.page_size > 0) {
      page = table_[static_cast<std::size_t>(b * p_.table_stride + key / p_.page_size)];
      slot = key % p_.page_size;
    }
    if (page < 0) return -1;
    return page * s.batch + slot * s.row + head * s.head;
  }
  // What no key has is NaN.
  void place_cache(std::vector<std::uint16_t>& codes, std::uint64_t seed, const Strides& s,
                   std::int64_t dims) const {
    const std::int64_t last =
        (pages() - 1) * s.batch + (slots() - 1) * s.row + (p_.kv_heads - 1) * s.head + dims;
    codes.assign(static_cast<std::size_t>(std::max<std::int64_t>(last, 1)), 0xffff);
    kernels::Random random(seed);
    for (std::int64_t b = 0; b < p_.batch; ++b)
      for (std::int64_t key = 0; key < keys(b); ++key)
        for (std::int64_t i = 0; i < p_.kv_heads * dims && offset(s, b, key, 0) >= 0; ++i)
          codes[static_cast<std::size_t>(offset(s, b, key, i / dims) + i % dims)] =
              static_cast<std::uint16_t>(
                  encode(format(), kernels::draw(random, kernels::Numbers::kUniform, format())));
  }
  // Of tensors with the same strides, the narrow one into the gaps of the wide one.
  void merge_mla(const std::vector<std::uint16_t>& narrow, std::vector<std::uint16_t>& wide) const {
    wide.resize(narrow.size() + static_cast<std::size_t>(p_.value_dim), 0xffff);
    for (std::size_t i = 0; i < narrow.size(); ++i)
      if (narrow[i] != 0xffff) wide[i + static_cast<std::size_t>(p_.value_dim)] = narrow[i];
  }

  // Rows [.., 64 (+ value_dim)] as the reference has them, q and k with what makes scores beside.
  std::vector<double> join(const std::vector<double>& narrow,
                           const std::vector<double>& wide) const {
    if (!p_.has_qv) return narrow;
    std::vector<double> both;
    const std::int64_t rows = std::ssize(narrow) / kKeyDims;
    for (std::int64_t i = 0; i < rows; ++i) {
      both.insert(both.end(), narrow.begin() + i * kKeyDims, narrow.begin() + (i + 1) * kKeyDims);
      both.insert(both.end(), wide.begin() + i * p_.value_dim,
                  wide.begin() + (i + 1) * p_.value_dim);
    }
    return both;
  }
  std::vector<double> cached(const std::vector<std::uint16_t>& codes, const Strides& s,
                             std::int64_t first, std::int64_t b, std::int64_t dims) const {
    std::vector<double> numbers;
    for (std::int64_t key = 0; key < keys(b); ++key)
      for (std::int64_t i = 0; i < p_.kv_heads * dims; ++i)
        numbers.push_back(
            offset(s, b, key, 0) < 0
                ? 0.0
                : decode(format(), codes[static_cast<std::size_t>(
                                       first + offset(s, b, key, i / dims) + i % dims)]));
    return numbers;
  }

  void compare(const std::vector<std::uint16_t>& out, const std::vector<float>& lse) const {
    const std::int64_t dims = kKeyDims + (p_.has_qv ? p_.value_dim : 0);
    const std::vector<double> q = join(q_, qv_), sink(sinks_.begin(), sinks_.end());
    for (std::int64_t b = 0; b < p_.batch; ++b) {
      const auto& of_k = case_.is_mla ? v_codes_ : k_codes_;
      const std::int64_t behind = case_.is_mla ? p_.value_dim : 0;
      const std::vector<double> v = cached(v_codes_, p_.v_strides, 0, b, p_.value_dim);
      const std::vector<double> k = join(cached(of_k, p_.k_strides, behind, b, kKeyDims), v);
      const auto each = static_cast<std::size_t>(p_.q_len * p_.heads * dims);
      const reference::AttentionParams params = {
          .batch = 1,
          .heads = p_.heads,
          .kv_heads = p_.kv_heads,
          .q_len = p_.q_len,
          .kv_len = keys(b),
          .head_dim = dims,
          .v_head_dim = p_.value_dim,
          .scale = p_.scale,
          .causal = p_.causal,
          .sink = p_.has_sink ? std::span<const double>(sink) : std::span<const double>(),
          .magnitudes = true};
      const auto exact = reference::attention(
          params, std::span(q).subspan(static_cast<std::size_t>(b) * each, each), k, v);
      for (std::int64_t i = 0; i < p_.q_len * p_.heads; ++i) {
        compare_row(b, i / p_.heads, i % p_.heads, exact, out, lse);
        if (::testing::Test::HasFatalFailure()) return;
      }
    }
  }
  void compare_row(std::int64_t b, std::int64_t query, std::int64_t head,
                   const reference::AttentionResult& exact, const std::vector<std::uint16_t>& out,
                   const std::vector<float>& lse) const {
    const bool is_f16 = p_.dtype == DType::kF16;
    const auto line = static_cast<std::size_t>(head * p_.q_len + query);
    const auto row_index = static_cast<std::size_t>(query * p_.heads + head);
    const reference::AttentionRow row = {
        .head_dim = kKeyDims + (p_.has_qv ? p_.value_dim : 0),
        .num_keys = keys(b),
        .score_magnitude = exact.score_magnitude[line],
        .row_max = exact.row_max[line],
        .value_max = 2,
        .p_roundoff = is_f16 ? reference::kRoundoffFp16 : reference::kRoundoffBf16,
        .p_subnormal = is_f16 ? 0x1p-24 : 0,
        .out_roundoff = is_f16 ? reference::kRoundoffFp16 : reference::kRoundoffBf16};
    const auto dims = static_cast<std::size_t>(p_.value_dim);
    const auto at = static_cast<std::size_t>(b * p_.out_strides.batch + query * p_.out_strides.row +
                                             head * p_.out_strides.head);
    for (std::size_t d = 0; d < dims; ++d) {
      const double got = decode(format(), out[at + d]), want = exact.out[row_index * dims + d];
      ASSERT_LE(std::abs(got - want), reference::attention_out_bound(
                                          row, want, exact.out_magnitude[row_index * dims + d]))
          << "sequence " << b << ", query " << query << ", head " << head << ", dim " << d << ": "
          << got << " for " << want;
    }
    const float found = lse[static_cast<std::size_t>(
        b * p_.lse_strides.batch + query * p_.lse_strides.row + head * p_.lse_strides.head)];
    const double want = exact.lse[line];
    if (!p_.has_lse) {
      ASSERT_TRUE(std::isnan(found)) << "lse was not asked for";
    } else if (std::isinf(want)) {
      ASSERT_EQ(found, p_.positive_empty_lse ? INFINITY : -INFINITY);
    } else {
      ASSERT_NEAR(found, want, reference::attention_lse_bound(row, want))
          << "sequence " << b << ", query " << query << ", head " << head;
    }
  }

  const Device& device_;
  LatentCase case_;
  LatentAttention attention_;
  LatentAttentionProblem p_;
  std::vector<float> sinks_;
  std::vector<std::int32_t> table_;
  std::vector<double> q_, qv_;
  std::vector<std::uint16_t> q_codes_, qv_codes_, k_codes_, v_codes_;
};

}  // namespace tilewright::ops
