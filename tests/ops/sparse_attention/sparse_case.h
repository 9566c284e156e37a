// One call of the sparse attention operator on random caches, compared with the float64 reference
// within FlashMLA's public tolerances.
#pragma once

#include "tilewright/sparse_attention.h"

#include "device/graph.h"
#include "device/internal.h"
#include "formats/kv_row.h"
#include "reference/sparse_attention/sparse_attention.h"
#include "tests/kernels/kernel_test.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace tilewright::ops {

using device::Buffer;
using kernels::pointer_to;
using reference::Random;

inline double gaussian(Random& random) {
  const double radius = std::sqrt(-2 * std::log(random.uniform(1e-12, 1)));
  return radius * std::cos(2 * std::numbers::pi * random.uniform(0, 1));
}

/// A cache of which a list names rows, as FlashMLA's tests have it.
struct SparseListCase {
  std::int64_t rows = 0, topk = 0;  ///< topk 0: no list
  std::int64_t page_size = 64;
  std::int64_t stride_padding = 0;  ///< bytes
  SparseLengths lengths = SparseLengths::kFull;
  std::vector<std::int32_t> given_lengths = {};  ///< else random ones, 0 among them
  double invalid = 0.1;                          ///< share of entries that name no row
  /// Share of a query's entries that the query before it has too, one place further.
  double shared = 0;
};

/// How far numbers lie apart. By default scores are within some 0.5 and the scales of blocks alike,
/// so that a running maximum hardly moves.
struct SparseSpread {
  double queries = 1, rows = 1;  ///< factors
  int binades = 0;               ///< runs of 16 dimensions are up to so many powers of 2 smaller
  bool has_zeros = false;        ///< a third of those runs are zeros

  bool is_wide() const { return queries != 1 || rows != 1 || binades != 0; }
};

struct SparseCase {
  std::int64_t batch = 2, q_len = 2, heads = 8;
  NumberFormat format = NumberFormat::kFp8;
  SparseListCase window = {}, compressed = {};
  bool has_sink = true, has_lse = true, has_max_logits = false, positive_empty_lse = false;
  std::vector<float> sinks = {};  ///< else random ones, both infinities among them
  bool is_padded = false;         ///< strides of q and out larger than the rows
  bool repeats = false;           ///< once more with the schedule of the first run
  std::string kernel = "auto";
  std::uint64_t seed = 1;
  SparseSpread spread = {};
  std::int64_t head_dim = kKvDims;
};

/// A cache in host memory: all bytes that no list entry names are 0xff, NaN in e4m3, bf16 and
/// ue8m0.
class SparseListData {
 public:
  SparseListData(const SparseListCase& c, const SparseCase& all, std::uint64_t seed)
      : case_(c), random_(seed), spread_(all.spread), dims_(all.head_dim) {
    if (c.topk == 0) return;
    list_ = make_list(c, all);
    layout_ = {kv_format(all.format, dims_), static_cast<std::int32_t>(c.page_size),
               list_.cache.page_stride_bytes};
    pages_.assign(static_cast<std::size_t>(list_.cache.num_pages * layout_.page_stride_bytes),
                  0xff);
    rows_.assign(static_cast<std::size_t>(num_rows() * dims_), 0);
    is_drawn_.assign(static_cast<std::size_t>(num_rows()), false);
    draw_lists(all.batch, all.q_len);
  }

  static SparseList make_list(const SparseListCase& c, const SparseCase& all) {
    if (c.topk == 0) return {};
    const KvFormat format = kv_format(all.format, all.head_dim);
    return {.cache = {.format = all.format,
                      .page_size = c.page_size,
                      .num_pages = (c.rows + c.page_size - 1) / c.page_size,
                      .page_stride_bytes =
                          kv_default_page_stride(format, c.page_size) + c.stride_padding},
            .topk = c.topk,
            .index_stride = c.topk + 3,
            .lengths = c.lengths};
  }
  std::int64_t num_rows() const { return list_.cache.num_pages * list_.cache.page_size; }
  reference::SparseKeys keys() const {
    return {
        .rows = rows_, .indices = dense_indices_, .topk = case_.topk, .lengths = query_lengths_};
  }
  /// Copies to the device; the copies live as long as this.
  SparseListArguments upload(const device::Device& device) {
    if (case_.topk == 0) return {};
    buffers_.push_back(Buffer::from(device, pages_));
    buffers_.push_back(Buffer::from(device, indices_));
    if (case_.lengths != SparseLengths::kFull) buffers_.push_back(Buffer::from(device, lengths_));
    return {.pages = pointer_to<void>(buffers_[0]),
            .indices = pointer_to<std::int32_t>(buffers_[1]),
            .lengths = case_.lengths != SparseLengths::kFull ? pointer_to<std::int32_t>(buffers_[2])
                                                             : nullptr};
  }

 private:
  std::int32_t draw_length(std::size_t i) {
    if (i < case_.given_lengths.size()) return case_.given_lengths[i];
    return i == 0 ? 0 : static_cast<std::int32_t>(random_.uniform(0, double(case_.topk) + 1));
  }

  void draw_lists(std::int64_t batch, std::int64_t q_len) {
    const bool is_per_query = case_.lengths == SparseLengths::kPerQuery;
    if (case_.lengths != SparseLengths::kFull) {
      for (std::int64_t i = 0; i < (is_per_query ? batch * q_len : batch); ++i)
        lengths_.push_back(draw_length(static_cast<std::size_t>(i)));
    }
    constexpr std::int32_t kLargest = std::numeric_limits<std::int32_t>::max();
    const std::int32_t wrong[] = {-1, static_cast<std::int32_t>(num_rows()), kLargest, -kLargest};
    for (std::int64_t query = 0; query < batch * q_len; ++query) {
      std::int32_t length = static_cast<std::int32_t>(case_.topk);
      if (!lengths_.empty())
        length = lengths_[static_cast<std::size_t>(is_per_query ? query : query / q_len)];
      if (!lengths_.empty()) query_lengths_.push_back(length);
      for (std::int64_t i = 0; i < list_.index_stride; ++i) {
        auto row = static_cast<std::int32_t>(random_.uniform(0, double(num_rows())));
        if (random_.uniform(0, 1) < case_.invalid) row = wrong[random_.bits() % 4];
        if (query > 0 && case_.shared > 0 && random_.uniform(0, 1) < case_.shared)
          row = indices_[indices_.size() - static_cast<std::size_t>(list_.index_stride) + 1];
        indices_.push_back(row);
        if (i >= case_.topk) continue;
        dense_indices_.push_back(row);
        if (i < length) draw_row(row);
      }
    }
  }

  double draw_factor() {
    if (spread_.has_zeros && random_.uniform(0, 3) < 1) return 0;
    return std::ldexp(1.0, -static_cast<int>(random_.uniform(0, spread_.binades + 1)));
  }

  void draw_row(std::int64_t row) {
    if (row < 0 || row >= num_rows() || is_drawn_[static_cast<std::size_t>(row)]) return;
    is_drawn_[static_cast<std::size_t>(row)] = true;
    std::vector<float> numbers;
    double factor = spread_.rows;
    for (int i = 0; i < dims_; ++i) {
      if (spread_.is_wide() && i % 16 == 0) factor = spread_.rows * draw_factor();
      numbers.push_back(static_cast<float>(std::clamp(gaussian(random_) / 10, -1.0, 1.0) * factor));
    }
    encode_kv_row(layout_, numbers, row, pages_.data());
    decode_kv_row(layout_, pages_.data(), row,
                  std::span(rows_).subspan(static_cast<std::size_t>(row * dims_),
                                           static_cast<std::size_t>(dims_)));
  }

  SparseListCase case_;
  Random random_;
  SparseSpread spread_;
  std::int64_t dims_;
  SparseList list_ = {};
  KvPageLayout layout_ = {};
  std::vector<std::uint8_t> pages_;
  std::vector<double> rows_;
  std::vector<bool> is_drawn_;
  std::vector<std::int32_t> indices_, dense_indices_, lengths_, query_lengths_;
  std::vector<Buffer> buffers_;
};

/// Elements from row to row of q, and of out.
inline std::int64_t sparse_query_pitch(const SparseCase& c) {
  return c.head_dim + (c.is_padded ? 24 : 0);
}
inline std::int64_t sparse_out_pitch(const SparseCase& c) {
  return kKvDims + (c.is_padded ? 24 : 0);
}

inline SparseAttentionProblem sparse_problem(const SparseCase& c) {
  SparseAttentionProblem p = {.batch = c.batch,
                              .q_len = c.q_len,
                              .heads = c.heads,
                              .scale = std::pow(static_cast<double>(c.head_dim), -0.55),
                              .window = SparseListData::make_list(c.window, c),
                              .compressed = SparseListData::make_list(c.compressed, c),
                              .has_sink = c.has_sink,
                              .has_lse = c.has_lse,
                              .has_max_logits = c.has_max_logits,
                              .kernel = c.kernel,
                              .positive_empty_lse = c.positive_empty_lse,
                              .head_dim = c.head_dim};
  if (!c.is_padded) return p;
  const std::int64_t row = sparse_query_pitch(c), out_row = sparse_out_pitch(c);
  // Heads of q outside, queries inside.
  p.q_strides = {c.q_len * c.heads * row, row, c.q_len * row};
  p.out_strides = {c.q_len * c.heads * out_row, c.heads * out_row, out_row};
  p.lse_strides = {c.q_len * c.heads, 1, c.q_len};
  return p;
}

/// FlashMLA's measures of a result against the truth.
struct SparseTolerance {
  double out_abs = 1e-3, out_rel = 2.01 / 128, out_difference = 5e-6;
  double lse_abs = 1e-6, lse_rel = 8.01 / 65536;
};
inline constexpr SparseTolerance kDecodeTolerance = {};
/// For data that spreads: results are sums of large numbers of both signs. Their bound is a part of
/// sum_j p_j |x_j|: weights are rounded to 8 bits, and so is what becomes of them.
inline constexpr double kSparseWeighted = 8e-3;
inline constexpr SparseTolerance kPrefillTolerance = {
    .out_abs = 8e-4, .out_rel = 3.01 / 128, .out_difference = 7e-6, .lse_rel = 2.01 / 65536};

class SparseRun {
 public:
  SparseRun(const Device& device, const SparseCase& c)
      : device_(device),
        case_(c),
        window_(c.window, c, c.seed + 1),
        compressed_(c.compressed, c, c.seed + 2),
        attention_(device, sparse_problem(c)) {
    draw_queries();
    draw_sinks();
  }

  const SparseAttentionPlan& plan() const { return attention_.plan(); }

  void check(const SparseTolerance& tolerance = kDecodeTolerance) {
    const device::Device& device = opened(device_);
    const Buffer q = Buffer::from(device, q_codes_), sink = Buffer::from(device, sinks_);
    const std::int64_t rows = case_.batch * case_.q_len * case_.heads;
    kernels::Output<std::uint16_t> out(device,
                                       static_cast<std::size_t>(rows * sparse_out_pitch(case_)));
    kernels::Output<float> lse(device, static_cast<std::size_t>(rows));
    kernels::Output<float> max(device, static_cast<std::size_t>(rows));
    kernels::Output<std::byte> workspace(device, plan().workspace_bytes);
    const device::Stream stream(device);
    SparseAttentionArguments a = {.q = pointer_to<void>(q),
                                  .window = window_.upload(device),
                                  .compressed = compressed_.upload(device),
                                  .out = out.pointer(),
                                  .lse = case_.has_lse ? lse.pointer() : nullptr,
                                  .max_logits = case_.has_max_logits ? max.pointer() : nullptr,
                                  .sink = case_.has_sink ? pointer_to<float>(sink) : nullptr,
                                  .workspace = workspace.pointer(),
                                  .stream = stream.handle()};
    attention_.run(a);
    stream.synchronize();
    compare(out.read(), lse.read(), max.read(), tolerance);
    const auto first = out.read();
    if (!plan().has_schedule || !case_.repeats) return;
    a.reuses_schedule = true;
    for (int i = 0; i < 2; ++i) {  // what counts parts has two states
      kernels::Output<std::uint16_t> again(device, first.size());
      a.out = again.pointer();
      attention_.run(a);
      stream.synchronize();
      EXPECT_EQ(again.read(), first);
    }
  }

 private:
  void draw_queries() {
    Random random(case_.seed);
    const SparseAttentionProblem& p = plan().problem;
    q_codes_.assign(static_cast<std::size_t>(case_.batch * case_.q_len * case_.heads *
                                             sparse_query_pitch(case_)),
                    0xffff);
    for (std::int64_t b = 0; b < case_.batch; ++b) {
      for (std::int64_t i = 0; i < case_.q_len; ++i) {
        for (std::int64_t h = 0; h < case_.heads; ++h) {
          const std::int64_t at =
              b * p.q_strides.batch + i * p.q_strides.row + h * p.q_strides.head;
          for (std::int64_t d = 0; d < case_.head_dim; ++d) {
            const auto code =
                encode(kBf16, std::clamp(gaussian(random), -1.0, 1.0) * case_.spread.queries);
            q_codes_[static_cast<std::size_t>(at + d)] = static_cast<std::uint16_t>(code);
            q_.push_back(decode(kBf16, code));
          }
        }
      }
    }
  }

  void draw_sinks() {
    Random random(case_.seed + 3);
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    sinks_ = case_.sinks;
    for (auto h = static_cast<std::int64_t>(sinks_.size()); h < case_.heads; ++h) {
      const auto x = static_cast<float>(gaussian(random));
      sinks_.push_back(h % 8 == 3 ? kInfinity : h % 8 == 5 ? -kInfinity : x);
    }
  }

  // sum_j p_j |x_j| of a row of results, each dimension; the sink would make it smaller.
  std::vector<double> weighted_magnitudes(std::int64_t row, double lse) const {
    std::vector<double> sums(kKvDims, 0);
    const std::int64_t dims = case_.head_dim;
    const double* const q = &q_[static_cast<std::size_t>(row * dims)];
    for (const SparseListData* list : {&window_, &compressed_}) {
      const reference::SparseKeys keys = list->keys();
      const std::int64_t query = row / case_.heads, rows = std::ssize(keys.rows) / dims;
      const std::int64_t length =
          keys.lengths.empty()
              ? keys.topk
              : std::min<std::int64_t>(keys.topk, keys.lengths[static_cast<std::size_t>(query)]);
      for (std::int64_t j = 0; j < length; ++j) {
        const std::int32_t key = keys.indices[static_cast<std::size_t>(query * keys.topk + j)];
        if (key < 0 || key >= rows) continue;
        const double* const x = &keys.rows[static_cast<std::size_t>(key * dims)];
        double score = 0;
        for (int d = 0; d < dims; ++d) score += q[d] * x[d];
        const double p = std::exp(score * *plan().problem.scale - lse);
        for (std::size_t d = 0; d < kKvDims; ++d) sums[d] += p * std::fabs(x[d]);
      }
    }
    return sums;
  }

  // Same place of NaN and infinities, and within one of the two bounds.
  static bool is_near(double x, double truth, double abs, double rel) {
    if (!std::isfinite(truth)) return x == truth;
    const double error = std::fabs(x - truth);
    return error < abs || error < rel * std::fabs(truth);
  }

  void compare(const std::vector<std::uint16_t>& out, const std::vector<float>& lse,
               const std::vector<float>& max, const SparseTolerance& t) const {
    if (case_.batch * case_.q_len == 0) return;
    const std::vector<double> sink(sinks_.begin(), sinks_.end());
    const SparseAttentionProblem& p = plan().problem;
    const reference::SparseAttentionParams params = {
        .queries = case_.batch * case_.q_len,
        .heads = case_.heads,
        .head_dim = case_.head_dim,
        .v_head_dim = kKvDims,
        .scale = *p.scale,
        .sink = case_.has_sink ? std::span<const double>(sink) : std::span<const double>(),
        .positive_empty_lse = case_.positive_empty_lse};
    const auto truth = reference::sparse_attention(params, q_, window_.keys(), compressed_.keys());
    double products = 0, squares = 0;
    for (std::int64_t row = 0; row < params.queries * case_.heads; ++row) {
      const std::int64_t h = row % case_.heads, query = row / case_.heads;
      const std::int64_t b = query / case_.q_len, i = query % case_.q_len;
      const auto place = [&](const Strides& s) {
        return static_cast<std::size_t>(b * s.batch + i * s.row + h * s.head);
      };
      const auto sums = case_.spread.is_wide()
                            ? weighted_magnitudes(row, truth.lse[std::size_t(row)])
                            : std::vector<double>();
      for (std::int64_t d = 0; d < kKvDims; ++d) {
        const double x = decode(kBf16, out[place(p.out_strides) + static_cast<std::size_t>(d)]);
        const double y = truth.out[static_cast<std::size_t>(row * kKvDims + d)];
        const bool is_right = case_.spread.is_wide()
                                  ? std::fabs(x - y) <= 1e-30 + std::fabs(y) / 256 +
                                                            kSparseWeighted * sums[std::size_t(d)]
                                  : is_near(x, y, t.out_abs, t.out_rel);
        ASSERT_TRUE(is_right) << "query " << query << " head " << h << " dimension " << d << ": "
                              << x << ", not " << y;
        products += x * y;
        squares += x * x + y * y;
      }
      const auto at = static_cast<std::size_t>(row);
      if (case_.has_lse) {
        ASSERT_TRUE(is_near(lse[place(p.lse_strides)], truth.lse[at], t.lse_abs, t.lse_rel))
            << "query " << query << " head " << h << ": lse " << lse[place(p.lse_strides)]
            << ", not " << truth.lse[at];
      }
      if (case_.has_max_logits) {
        ASSERT_TRUE(is_near(max[place(p.lse_strides)], truth.row_max[at], t.lse_abs, t.lse_rel))
            << "query " << query << " head " << h << ": max " << max[place(p.lse_strides)]
            << ", not " << truth.row_max[at];
      }
    }
    const double difference = squares > 0 ? 1 - 2 * products / squares : 0;
    if (!case_.spread.is_wide()) {
      EXPECT_LE(difference, t.out_difference);
    }
  }

  const Device& device_;
  SparseCase case_;
  SparseListData window_, compressed_;
  SparseAttention attention_;
  std::vector<std::uint16_t> q_codes_;
  std::vector<double> q_;
  std::vector<float> sinks_;
};

}  // namespace tilewright::ops
