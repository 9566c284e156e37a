// What every attention kernel has to give, against the float64 reference, and how far off it may
// be.
#pragma once

#include "kernels/attention/attention.h"
#include "reference/attention/attention.h"
#include "reference/error_bound.h"
#include "tests/kernels/gemm_check.h"
#include "tests/kernels/kernel_test.h"

#include <cmath>
#include <functional>
#include <numbers>
#include <numeric>

namespace tilewright::kernels {

/// Which tensor maps a kernel reads (attention.h).
enum class AttentionMaps { kNone, kPlain, kSwizzled };

/// Where a kernel rounds: what the bound on its error is made of.
struct AttentionArithmetic {
  bool has_tensor_scores = false;  ///< q . k by the tensor core; else by fused steps in f32
  bool has_tensor_values = false;  ///< p . v, with p rounded to the type of v; else p is f32
  double exp2_error = 0x1p-22;     ///< relative; of ex2.approx
};

struct AttentionKernelUnderTest {
  std::string stem;  ///< entries are STEM_TYPE_dDIM, and what `ending` says
  std::function<AttentionTile(int head_dim)> tile;
  AttentionMaps maps = AttentionMaps::kNone;
  AttentionArithmetic arithmetic = {};
  std::string ending = "";
};

struct AttentionProblem {
  int batch = 1, heads = 1, kv_heads = 1;
  int q_len = 0, kv_len = 0;
  int head_dim = 64;
  bool is_causal = false;
  std::vector<int> q_lens = {}, kv_lens = {};  ///< of packed sequences, instead of the lengths
  int window_left = -1, window_right = -1;     ///< -1: all keys
  double softcap = 0;
  std::vector<float> sink = {};
  double scale = 0;  ///< 0: head_dim^-0.5
  bool has_lse = true;
  bool is_heads_first = false;  ///< [batch, heads, rows, head_dim], else [batch, rows, heads, ...]
  int gap = 0;                  ///< elements between neighbours along every dimension

  bool is_packed() const { return !q_lens.empty(); }
  int batches_stored() const { return is_packed() ? 1 : batch; }
  int q_rows() const { return is_packed() ? std::reduce(q_lens.begin(), q_lens.end()) : q_len; }
  int kv_rows() const { return is_packed() ? std::reduce(kv_lens.begin(), kv_lens.end()) : kv_len; }
  int longest_q() const { return is_packed() ? *std::ranges::max_element(q_lens) : q_len; }
  int longest_kv() const { return is_packed() ? *std::ranges::max_element(kv_lens) : kv_len; }
  double scale_or_default() const { return scale != 0 ? scale : 1 / std::sqrt(head_dim); }
};

inline std::vector<std::int32_t> first_rows(const std::vector<int>& lengths) {
  std::vector<std::int32_t> rows = {0};
  for (const int length : lengths) rows.push_back(rows.back() + length);
  return rows;
}

/// N(0, 1), rounded to the format.
inline std::vector<double> draw_normal(std::uint64_t seed, std::int64_t count,
                                       const FormatSpec& format) {
  Random random(seed);
  std::vector<double> values;
  for (std::int64_t i = 0; i < count; ++i) {
    const double radius = std::sqrt(-2 * std::log(random.uniform(0x1p-53, 1)));
    values.push_back(
        round_to(format, radius * std::cos(2 * std::numbers::pi * random.uniform(0, 1))));
  }
  return values;
}

struct AttentionInputs {
  std::vector<double> q, k, v;  ///< [batch, rows, heads, head_dim], contiguous

  AttentionInputs(const AttentionProblem& p, const FormatSpec& format)
      : q(draw_normal(1, count(p, p.q_rows(), p.heads), format)),
        k(draw_normal(2, count(p, p.kv_rows(), p.kv_heads), format)),
        v(draw_normal(3, count(p, p.kv_rows(), p.kv_heads), format)) {}

  static std::int64_t count(const AttentionProblem& p, int rows, int heads) {
    return std::int64_t{p.batches_stored()} * rows * heads * p.head_dim;
  }
};

/// How [batch, rows, heads, head_dim] lies in memory.
struct AttentionStorage {
  int batch, rows, heads, head_dim;
  AttentionStrides strides;
  std::int64_t size;  ///< elements, with what follows the last one

  AttentionStorage(const AttentionProblem& p, int num_rows, int num_heads)
      : batch(p.batches_stored()), rows(num_rows), heads(num_heads), head_dim(p.head_dim) {
    std::int64_t& inner = p.is_heads_first ? strides.row : strides.head;
    std::int64_t& outer = p.is_heads_first ? strides.head : strides.row;
    inner = head_dim + p.gap;
    outer = (p.is_heads_first ? rows : heads) * inner + p.gap;
    strides.batch = (p.is_heads_first ? heads : rows) * outer + p.gap;
    size = batch * strides.batch;
  }
  /// Calls visit(index among the elements, offset in memory) for every element.
  template <class Visit>
  void for_each(Visit&& visit) const {
    std::int64_t i = 0;
    for (int b = 0; b < batch; ++b) {
      for (int row = 0; row < rows; ++row) {
        for (int h = 0; h < heads; ++h) {
          const std::int64_t vector = b * strides.batch + row * strides.row + h * strides.head;
          for (int c = 0; c < head_dim; ++c) visit(i++, vector + c);
        }
      }
    }
  }
  /// Gaps are NaN in both formats.
  Buffer upload(const Device& device, const FormatSpec& format,
                const std::vector<double>& values) const {
    std::vector<std::uint16_t> memory(static_cast<std::size_t>(size), 0xffff);
    for_each([&](std::int64_t i, std::int64_t at) {
      memory[at] = static_cast<std::uint16_t>(encode(format, values[i]));
    });
    return Buffer::from(device, memory);
  }
  /// What a kernel wrote; the gaps must be as they were.
  std::vector<double> decode_all(const FormatSpec& format,
                                 const std::vector<std::uint16_t>& memory) const {
    std::vector<double> values;
    std::vector<bool> is_element(memory.size());
    for_each([&](std::int64_t, std::int64_t at) {
      values.push_back(decode(format, memory[at]));
      is_element[at] = true;
    });
    constexpr auto kPoison = static_cast<std::uint16_t>(static_cast<int>(Buffer::kPoison) * 0x101);
    for (std::size_t i = 0; i < memory.size(); ++i) {
      if (is_element[i]) continue;
      EXPECT_EQ(memory[i], kPoison) << "the gap at " << i << " was written";
    }
    return values;
  }
  device::abi::CUtensorMap map(const Device& device, device::abi::CUdeviceptr address,
                               const FormatSpec& format, AttentionMaps maps, int box_rows) const {
    const auto bytes = [](std::int64_t elems) { return static_cast<std::uint64_t>(elems * 2); };
    const bool is_plain = maps == AttentionMaps::kPlain;
    return device::encode_tensor_map(
        device,
        {.name = "attention operand",
         .type =
             format == kBf16 ? device::TensorMapType::kBfloat16 : device::TensorMapType::kFloat16,
         .address = address,
         .dims = {static_cast<std::uint64_t>(head_dim), static_cast<std::uint64_t>(rows),
                  static_cast<std::uint64_t>(heads), static_cast<std::uint64_t>(batch)},
         .strides_bytes = {bytes(strides.row), bytes(strides.head), bytes(strides.batch)},
         .box = {static_cast<std::uint32_t>(is_plain ? head_dim : 64),
                 static_cast<std::uint32_t>(box_rows), 1, 1},
         .swizzle = is_plain ? device::TensorMapSwizzle::kNone : device::TensorMapSwizzle::k128B});
  }
};

struct AttentionOutputs {
  std::vector<double> out;
  std::vector<float> lse;  ///< [batch, heads, q_len] or [heads, rows]; empty if not wanted
};

inline void set_attention_sizes(AttentionParams& params, const AttentionProblem& p,
                                const AttentionTile& tile) {
  params.batch = p.is_packed() ? static_cast<std::int32_t>(p.q_lens.size()) : p.batch;
  params.heads = p.heads;
  params.kv_heads = p.kv_heads;
  params.q_len = p.longest_q();
  params.kv_len = p.longest_kv();
  params.head_dim = params.value_dim = p.head_dim;
  params.q_tiles = static_cast<std::int32_t>(ceil_div(p.longest_q(), tile.queries));
  params.section_heads = std::max(1, params.batch * p.heads / 2);
  const auto window = [](int keys) { return keys < 0 ? kUnboundedWindow : keys; };
  params.window_left = window(p.window_left);
  params.window_right = p.is_causal ? 0 : window(p.window_right);
}
inline void set_attention_scale(AttentionParams& params, const AttentionProblem& p) {
  const double scale_log2 = p.scale_or_default() * std::numbers::log2e;
  params.scale_log2 =
      static_cast<float>(p.softcap > 0 ? p.softcap * std::numbers::log2e : scale_log2);
  params.softcap_scale = p.softcap > 0 ? static_cast<float>(2 * scale_log2 / p.softcap) : 0.0f;
}

/// The operands of a problem on a device, and where its results go.
class AttentionOperands {
 public:
  AttentionOperands(const Device& device, const AttentionProblem& p, const FormatSpec& format,
                    const AttentionInputs& in)
      : problem_(p),
        format_(format),
        q_storage_(p, p.q_rows(), p.heads),
        kv_storage_(p, p.kv_rows(), p.kv_heads),
        q_(q_storage_.upload(device, format, in.q)),
        k_(kv_storage_.upload(device, format, in.k)),
        v_(kv_storage_.upload(device, format, in.v)),
        out_(device, static_cast<std::size_t>(q_storage_.size)),
        lse_(device, p.has_lse ? lse_size() : 0),
        scores_(device, static_cast<std::size_t>(p.batch) * p.heads * p.q_len * p.kv_len),
        sink_(Buffer::from(device, p.sink)),
        next_tile_(Buffer::from(device, std::vector<std::uint32_t>(1))),
        cu_q_(Buffer::from(device, first_rows(p.q_lens))),
        cu_kv_(Buffer::from(device, first_rows(p.kv_lens))) {}

  AttentionParams params(const Device& device, AttentionMaps maps, const AttentionTile& tile) {
    const AttentionProblem& p = problem_;
    AttentionParams params = {};
    params.q = pointer_to<const void>(q_);
    params.k = pointer_to<const void>(k_);
    params.v = pointer_to<const void>(v_);
    params.out = out_.pointer();
    params.lse = p.has_lse ? lse_.pointer() : nullptr;
    params.sink = p.sink.empty() ? nullptr : pointer_to<const float>(sink_);
    params.cu_q = p.is_packed() ? pointer_to<const std::int32_t>(cu_q_) : nullptr;
    params.cu_kv = p.is_packed() ? pointer_to<const std::int32_t>(cu_kv_) : nullptr;
    params.scores = scores_.pointer();
    params.next_tile = pointer_to<std::uint32_t>(next_tile_);
    params.q_strides = params.out_strides = q_storage_.strides;
    params.k_strides = params.v_strides = kv_storage_.strides;
    params.lse_head_stride = p.q_rows();
    params.lse_batch_stride = p.is_packed() ? 0 : std::int64_t{p.heads} * p.q_len;
    set_attention_sizes(params, p, tile);
    set_attention_scale(params, p);
    if (maps != AttentionMaps::kNone) set_maps(device, params, maps, tile);
    return params;
  }
  AttentionOutputs read() const {
    scores_.read();  // for its margin
    return {q_storage_.decode_all(format_, out_.read()), lse_.read()};
  }

 private:
  std::size_t lse_size() const {
    return static_cast<std::size_t>(problem_.batches_stored()) * problem_.q_rows() * problem_.heads;
  }
  void set_maps(const Device& device, AttentionParams& params, AttentionMaps maps,
                const AttentionTile& tile) const {
    const int box_queries = tile.box_queries;
    if (problem_.q_rows() > 0) {
      store_map(params.q_map, q_storage_.map(device, q_.address(), format_, maps, box_queries));
      store_map(params.out_map, q_storage_.map(device, out_.address(), format_, maps, box_queries));
    }
    if (problem_.kv_rows() > 0) {
      store_map(params.k_map, kv_storage_.map(device, k_.address(), format_, maps, tile.keys));
      store_map(params.v_map, kv_storage_.map(device, v_.address(), format_, maps, tile.keys));
    }
  }

  const AttentionProblem& problem_;
  const FormatSpec& format_;
  AttentionStorage q_storage_, kv_storage_;
  Buffer q_, k_, v_;
  Output<std::uint16_t> out_;
  Output<float> lse_, scores_;
  Buffer sink_, next_tile_, cu_q_, cu_kv_;
};

/// Bounds on the errors of one row. With S = the largest scale * sum |q k| of its visible keys,
/// u = 2^-24, T tiles of keys (at most, one more than needed):
///   dot    head_dim fused steps, or the tensor core's sum (gemm_check.h)
///   scale  rounded, and multiplied with: 2 u S; softcap: tanh to 2^-20 of the cap
///   power  exponent s - max: u S for the product with the maximum, 2 u S for the difference; ex2
///   online each of T corrections is such a power of its own, and multiplies with a rounding
/// so weights before normalisation are off by exp(d). Normalised ones by exp(2 d), since the same
/// weights are summed; the sums themselves add roundings:
///   sum    kv_len additions and T corrections, the division
///   p v    kv_len fused steps, or the tensor core's sum over T whole tiles; T corrections
///   p      rounded to 16 bits for the tensor core: u_p, below 2^-14 in fp16 2^-25 absolute
///   flush  powers below 2^-126
///   out    rounded to 16 bits
class AttentionBound {
 public:
  AttentionBound(const AttentionProblem& p, const AttentionArithmetic& arithmetic,
                 const FormatSpec& format, int tile_keys, double largest_v)
      : largest_v_(largest_v), tiles_(p.longest_kv() / tile_keys + 2) {
    constexpr double u = reference::kRoundoffFp32;
    is_fp16_ = format == kFp16;
    out_roundoff_ = std::ldexp(1, -format.mantissa_bits - 1);
    const double kv_len = p.longest_kv();
    dot_ = arithmetic.has_tensor_scores ? tensor_core_bound(kBf16TensorCore, p.head_dim, 1)
                                        : std::expm1(p.head_dim * std::log1p(u));
    dot_ += 2 * u;
    constant_ = (tiles_ + 1) * 1.01 * arithmetic.exp2_error + p.softcap * 0x1p-20;
    sums_ = (kv_len + 2 * tiles_ + 8) * 1.01 * u;
    values_ = arithmetic.has_tensor_values
                  ? tensor_core_bound(kBf16TensorCore, static_cast<int>(tiles_) * tile_keys, 1)
                  : kv_len * 1.01 * u;
    p_roundoff_ = arithmetic.has_tensor_values ? out_roundoff_ : 0;
    flushed_ = kv_len * (0x1p-126 + (p_roundoff_ > 0 && is_fp16_ ? 0x1p-25 : 0.0)) * largest_v_;
  }
  /// Of all scores of a row whose largest magnitude this is; `sink`: |sink| if there is one.
  double of_scores(double magnitude, double sink) const {
    constexpr double u = reference::kRoundoffFp32;
    return (dot_ + 4 * (tiles_ + 1) * u) * 1.01 * magnitude + constant_ + 4 * u * sink;
  }
  double of_out(double scores, double magnitude, double exact) const {
    const double factors = (1 + sums_) * (1 + values_ + sums_) * (1 + p_roundoff_) - 1;
    const double weights = std::expm1(2 * scores);
    const double before = (weights + (1 + weights) * factors) * magnitude + flushed_;
    return before + out_roundoff_ * (std::abs(exact) + before) + (is_fp16_ ? 0x1p-25 : 0.0);
  }
  /// max * ln 2 + ln sum: both rounded, logf to 2 units.
  double of_lse(double scores, double magnitude, double exact) const {
    return scores + sums_ + 0x1p-22 * (std::abs(exact) + magnitude + 1);
  }

 private:
  double largest_v_, tiles_;
  bool is_fp16_;
  double out_roundoff_, dot_, constant_, sums_, values_, p_roundoff_, flushed_;
};

class AttentionTest : public KernelTest {
 protected:
  /// Launches what computes the problem, given its arguments.
  using Launch = std::function<void(const Device& device, const std::string& type_and_dim,
                                    const AttentionParams& params)>;

  /// The one launch of a fused kernel.
  static Launch launch_of(const AttentionKernelUnderTest& kernel) {
    return [kernel](const Device& device, const std::string& type_and_dim,
                    const AttentionParams& params) {
      const AttentionTile tile = kernel.tile(params.head_dim);
      if (params.batch * params.heads * params.q_tiles == 0) return;
      const auto extent = [](std::int32_t n) { return static_cast<std::uint32_t>(n); };
      const device::Dim3 per_tile = {extent(params.q_tiles), extent(params.heads),
                                     extent(params.batch)};
      run_kernel(device, kernel.stem + type_and_dim + kernel.ending,
                 {.grid = tile.is_persistent ? device::Dim3{kPersistentCtas} : per_tile,
                  .block = {extent(tile.threads)},
                  .dynamic_shared_bytes = extent(tile.shared_bytes)},
                 params);
    };
  }

  /// Runs the problem on N(0, 1) inputs and holds every element to its bound.
  void check(const AttentionKernelUnderTest& kernel, const AttentionProblem& p,
             const FormatSpec& format) {
    check(kernel, launch_of(kernel), p, format);
  }
  void check(const AttentionKernelUnderTest& kernel, const Launch& launch,
             const AttentionProblem& p, const FormatSpec& format) {
    const std::string type_and_dim =
        fmt::format("_{}_d{}", format == kBf16 ? "bf16" : "f16", p.head_dim);
    SCOPED_TRACE(fmt::format("{}{}{}, q_len = {}, kv_len = {}, causal = {}", kernel.stem,
                             type_and_dim, kernel.ending, p.longest_q(), p.longest_kv(),
                             p.is_causal));
    const AttentionInputs in(p, format);
    const AttentionTile tile = kernel.tile(p.head_dim);
    AttentionOperands operands(device(), p, format, in);
    launch(device(), type_and_dim, operands.params(device(), kernel.maps, tile));
    double largest_v = 0;
    for (const double x : in.v) largest_v = std::max(largest_v, std::abs(x));
    compare(p, in, AttentionBound(p, kernel.arithmetic, format, tile.keys, largest_v),
            operands.read());
  }

  static constexpr std::uint32_t kPersistentCtas = 3;

  static reference::AttentionResult expected(const AttentionProblem& p, const AttentionInputs& in) {
    const std::vector<double> sink(p.sink.begin(), p.sink.end());
    const std::vector<std::int32_t> cu_q = first_rows(p.q_lens), cu_kv = first_rows(p.kv_lens);
    reference::AttentionParams params = {
        .batch = p.is_packed() ? static_cast<std::int64_t>(p.q_lens.size()) : p.batch,
        .heads = p.heads,
        .kv_heads = p.kv_heads,
        .q_len = p.q_len,
        .kv_len = p.kv_len,
        .head_dim = p.head_dim,
        .v_head_dim = p.head_dim,
        .scale = p.scale_or_default(),
        .softcap = p.softcap,
        .causal = p.is_causal,
        .window_left = p.window_left,
        .window_right = p.window_right,
        .sink = sink,
        .magnitudes = true};
    if (p.is_packed()) {
      params.cu_seqlens_q = cu_q;
      params.cu_seqlens_kv = cu_kv;
    }
    return reference::attention(params, in.q, in.k, in.v);
  }

  template <class Bound>
  static void compare(const AttentionProblem& p, const AttentionInputs& in, const Bound& bound,
                      const AttentionOutputs& got) {
    const reference::AttentionResult exact = expected(p, in);
    ASSERT_EQ(got.out.size(), exact.out.size());
    const std::int64_t rows = p.q_rows(), heads = p.heads, dims = p.head_dim;
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(got.out.size()); ++i) {
      const std::int64_t head = i / dims % heads, row = i / dims / heads % rows;
      const std::int64_t at = (i / dims / heads / rows * heads + head) * rows + row;
      const double sink = p.sink.empty() ? 0 : std::abs(p.sink[head]);
      const auto scores =
          bound.of_scores(exact.score_magnitude[at], std::isfinite(sink) ? sink : 0);
      const auto where = [&] {
        return fmt::format("batch {}, row {}, head {}, dimension {}", i / dims / heads / rows, row,
                           head, i % dims);
      };
      ASSERT_LE(std::abs(got.out[i] - exact.out[i]),
                bound.of_out(scores, exact.out_magnitude[i], exact.out[i]))
          << where() << ": " << got.out[i] << " instead of " << exact.out[i];
      if (!p.has_lse || i % dims != 0) continue;
      if (std::isinf(exact.lse[at])) {
        ASSERT_EQ(got.lse[at], exact.lse[at]) << where();
      } else {
        ASSERT_LE(std::abs(got.lse[at] - exact.lse[at]),
                  bound.of_lse(scores, exact.score_magnitude[at], exact.lse[at]))
            << where() << ": lse " << got.lse[at] << " instead of " << exact.lse[at];
      }
    }
  }
};

}  // namespace tilewright::kernels
