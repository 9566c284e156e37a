// What an e4m3 attention kernel has to give, against the float64 reference of the numbers that its
// codes and scales stand for.
#pragma once

#include "kernels/attention/k7/k7_fp8.h"
#include "kernels/attention/k7/value_columns.h"
#include "reference/attention/fp8_bound.h"
#include "tests/kernels/attention_check.h"
#include "tests/kernels/gemm_check.h"

namespace tilewright::kernels {

enum class Fp8ScaleKind { kTensor, kHead, kBlock };

/// A problem in e4m3. Queries and keys are integers up to 2, so that no product q . k is rounded
/// and what is left of a kernel's errors are those of weights and of p v: with scales near 1 a few
/// keys have most of a row's weight, and a value at the wrong key's place is not overlooked.
struct Fp8AttentionInputs {
  struct Tensor {
    std::vector<double> stored;  ///< [batch, rows, heads, head_dim]
    std::vector<float> scales;
    Fp8Scales view = {nullptr, 0, 0, 0, 1};
  };
  Tensor q, k, v;
  std::vector<float> v_reference;  ///< [sequences, kv_heads]
  AttentionInputs real;            ///< times scales
  double largest_v = 0;            ///< stored, times the largest scale

  /// All scores are 0, all scales 1.
  Fp8AttentionInputs(const AttentionProblem& p, std::vector<double> values) : real(p, kBf16) {
    q.stored.resize(real.q.size());
    k.stored.resize(real.k.size());
    v.stored = std::move(values);
    q.scales = k.scales = v.scales = {1.0f};
    q.view.heads_per_scale = p.heads / p.kv_heads;
    v_reference.assign(static_cast<std::size_t>(p.batch) * p.kv_heads, 1.0f);
    real.q = q.stored, real.k = k.stored, real.v = v.stored;
  }
  Fp8AttentionInputs(const AttentionProblem& p, Fp8ScaleKind kind) : real(p, kBf16) {
    Random random(7);
    const int sequences = p.is_packed() ? static_cast<int>(p.q_lens.size()) : p.batch;
    q.stored = integers(random, real.q.size());
    k.stored = integers(random, real.k.size());
    v.stored = draw_normal(8, static_cast<std::int64_t>(real.v.size()), kE4m3);
    const int q_heads = kind == Fp8ScaleKind::kBlock ? p.heads : p.kv_heads;
    draw_scales(random, q, kind, sequences, q_heads, p.longest_q(), kQueryScaleBlock);
    draw_scales(random, k, kind, sequences, p.kv_heads, p.longest_kv(), kKeyScaleBlock);
    draw_scales(random, v, kind, sequences, p.kv_heads, p.longest_kv(), kKeyScaleBlock);
    q.view.heads_per_scale = p.heads / q_heads;
    const std::int64_t blocks = v.view.head_stride;
    for (int i = 0; i < sequences * p.kv_heads; ++i) {
      float largest = kind == Fp8ScaleKind::kBlock && blocks > 0 ? 0.0f : 1.0f;
      for (std::int64_t j = 0; kind == Fp8ScaleKind::kBlock && j < blocks; ++j)
        largest = std::max(largest, v.scales[i * blocks + j]);
      v_reference.push_back(largest);
    }
    real.q =
        multiply(p, q, p.q_rows(), p.heads, first_rows_of(p, p.q_lens, p.q_len), kQueryScaleBlock);
    real.k = multiply(p, k, p.kv_rows(), p.kv_heads, first_rows_of(p, p.kv_lens, p.kv_len),
                      kKeyScaleBlock);
    real.v = multiply(p, v, p.kv_rows(), p.kv_heads, first_rows_of(p, p.kv_lens, p.kv_len),
                      kKeyScaleBlock);
    for (const double x : v.stored) largest_v = std::max(largest_v, std::abs(x));
    largest_v *= v.scales.empty() ? 0 : *std::ranges::max_element(v.scales);
  }

 private:
  static std::vector<double> integers(Random& random, std::size_t count) {
    std::vector<double> values(count);
    for (double& x : values) x = draw(random, Numbers::kIntegers, kE4m3);
    return values;
  }
  static void draw_scales(Random& random, Tensor& tensor, Fp8ScaleKind kind, int sequences,
                          int heads, int rows, int block_rows) {
    std::int64_t count = 1;
    if (kind != Fp8ScaleKind::kTensor) {
      const std::int64_t blocks =
          kind == Fp8ScaleKind::kBlock ? (rows + block_rows - 1) / block_rows : 1;
      tensor.view.block_stride = kind == Fp8ScaleKind::kBlock ? 1 : 0;
      tensor.view.head_stride = blocks;
      tensor.view.batch_stride = heads * blocks;
      count = sequences * heads * blocks;
    }
    for (std::int64_t i = 0; i < count; ++i)
      tensor.scales.push_back(static_cast<float>(random.uniform(0.4, 1.2)));
  }
  /// First rows of the sequences, and the end.
  static std::vector<std::int32_t> first_rows_of(const AttentionProblem& p,
                                                 const std::vector<int>& lengths, int length) {
    return p.is_packed() ? first_rows(lengths) : first_rows(std::vector<int>(p.batch, length));
  }
  static std::vector<double> multiply(const AttentionProblem& p, const Tensor& tensor, int rows,
                                      int heads, const std::vector<std::int32_t>& firsts,
                                      int block_rows) {
    std::vector<double> out(tensor.stored.size());
    const std::int64_t all_rows = std::int64_t{p.batches_stored()} * rows;
    std::size_t sequence = 0;
    for (std::int64_t row = 0; row < all_rows; ++row) {
      while (row >= firsts[sequence + 1]) ++sequence;
      for (std::int64_t h = 0; h < heads; ++h) {
        const Fp8Scales& view = tensor.view;
        const std::int64_t at = static_cast<std::int64_t>(sequence) * view.batch_stride +
                                h / view.heads_per_scale * view.head_stride +
                                (row - firsts[sequence]) / block_rows * view.block_stride;
        for (std::int64_t c = 0; c < p.head_dim; ++c) {
          const std::int64_t i = (row * heads + h) * p.head_dim + c;
          out[i] = tensor.stored[i] * tensor.scales[at];
        }
      }
    }
    return out;
  }
};

/// The operands of a problem on a device, and where its results go.
class Fp8AttentionOperands {
 public:
  Fp8AttentionOperands(const Device& device, const AttentionProblem& p, const K7Variant& variant,
                       const Fp8AttentionInputs& in, const FormatSpec& output)
      : problem_(p),
        variant_(variant),
        in_(in),
        output_(output),
        q_storage_(p, p.q_rows(), p.heads),
        kv_storage_(p, p.kv_rows(), p.kv_heads),
        q_(upload(device, q_storage_, in.q)),
        k_(upload(device, kv_storage_, in.k)),
        v_(variant.values == Fp8Values::kRows ? upload(device, kv_storage_, in.v)
                                              : upload_columns(device)),
        out_(device, static_cast<std::size_t>(q_storage_.size)),
        lse_(device,
             p.has_lse ? static_cast<std::size_t>(p.batches_stored()) * p.q_rows() * p.heads : 0),
        sink_(Buffer::from(device, p.sink)),
        next_tile_(Buffer::from(device, std::vector<std::uint32_t>(1))),
        cu_q_(Buffer::from(device, first_rows(p.q_lens))),
        cu_kv_(Buffer::from(device, first_rows(p.kv_lens))),
        q_scales_(Buffer::from(device, in.q.scales)),
        k_scales_(Buffer::from(device, in.k.scales)),
        v_scales_(Buffer::from(device, in.v.scales)),
        v_reference_(Buffer::from(device, in.v_reference)) {}

  AttentionFp8Params params(const Device& device, std::int32_t flush_tiles) {
    const AttentionProblem& p = problem_;
    const AttentionTile tile = variant_.tile();
    AttentionFp8Params params = {};
    params.out = out_.pointer();
    params.lse = p.has_lse ? lse_.pointer() : nullptr;
    params.sink = p.sink.empty() ? nullptr : pointer_to<const float>(sink_);
    params.cu_q = p.is_packed() ? pointer_to<const std::int32_t>(cu_q_) : nullptr;
    params.cu_kv = p.is_packed() ? pointer_to<const std::int32_t>(cu_kv_) : nullptr;
    params.next_tile = pointer_to<std::uint32_t>(next_tile_);
    params.out_strides = q_storage_.strides;
    params.lse_head_stride = p.q_rows();
    params.lse_batch_stride = p.is_packed() ? 0 : std::int64_t{p.heads} * p.q_len;
    set_attention_sizes(params, p, tile);
    set_attention_scale(params, p);
    params.q_scales = view(in_.q, q_scales_);
    params.k_scales = view(in_.k, k_scales_);
    params.v_scales = view(in_.v, v_scales_);
    params.v_reference = {pointer_to<const float>(v_reference_), p.kv_heads, 1, 0, 1};
    params.flush_tiles = flush_tiles;
    params.is_f16_out = output_ == kFp16;
    set_maps(device, params, tile);
    return params;
  }
  AttentionOutputs read() const {
    return {q_storage_.decode_all(output_, out_.read()), lse_.read()};
  }

 private:
  static Fp8Scales view(const Fp8AttentionInputs::Tensor& tensor, const Buffer& scales) {
    Fp8Scales view = tensor.view;
    view.values = pointer_to<const float>(scales);
    return view;
  }
  static Buffer upload(const Device& device, const AttentionStorage& storage,
                       const Fp8AttentionInputs::Tensor& tensor) {
    std::vector<std::uint8_t> memory(static_cast<std::size_t>(storage.size), 0x7f);  // NaN
    storage.for_each([&](std::int64_t i, std::int64_t at) {
      memory[at] = static_cast<std::uint8_t>(encode(kE4m3, tensor.stored[i]));
    });
    return Buffer::from(device, memory);
  }
  // A key a column. What belongs to no sequence is NaN.
  Buffer upload_columns(const Device& device) {
    const AttentionProblem& p = problem_;
    columns_ = p.is_packed()
                   ? value_columns(p.kv_rows(), static_cast<std::int64_t>(p.kv_lens.size()))
                   : round_up(p.kv_len, 16);
    const std::int64_t rows = std::int64_t{p.kv_heads} * p.head_dim;
    std::vector<std::uint8_t> memory(static_cast<std::size_t>(p.batches_stored() * rows * columns_),
                                     0x7f);
    const int sequences = p.is_packed() ? static_cast<int>(p.kv_lens.size()) : p.batch;
    std::int64_t first = 0;
    for (int b = 0; b < sequences; ++b) {
      const std::int64_t length = p.is_packed() ? p.kv_lens[b] : p.kv_len;
      const std::int64_t start = p.is_packed() ? value_column(first, b) : b * rows * columns_;
      for (std::int64_t row = 0; row < rows; ++row) {
        for (std::int64_t column = 0; column < round_up(static_cast<int>(length), 16); ++column) {
          const std::int64_t key = column / 16 * 16 + value_slot_key(static_cast<int>(column % 16));
          const double x = key < length ? in_.v.stored[(first + key) * rows + row] : 0;
          memory[start + row * columns_ + column] = static_cast<std::uint8_t>(encode(kE4m3, x));
        }
      }
      first += length;
    }
    return Buffer::from(device, memory);
  }
  device::abi::CUtensorMap byte_map(const Device& device, const Buffer& buffer,
                                    const AttentionStorage& storage, int box_rows) const {
    const auto bytes = [](std::int64_t elems) { return static_cast<std::uint64_t>(elems); };
    return device::encode_tensor_map(
        device, {.name = "attention operand",
                 .address = buffer.address(),
                 .dims = {bytes(storage.head_dim), bytes(storage.rows), bytes(storage.heads),
                          bytes(storage.batch)},
                 .strides_bytes = {bytes(storage.strides.row), bytes(storage.strides.head),
                                   bytes(storage.strides.batch)},
                 .box = {static_cast<std::uint32_t>(variant_.box_columns()),
                         static_cast<std::uint32_t>(box_rows), 1, 1},
                 .swizzle = swizzle_of(variant_.box_columns())});
  }
  static device::TensorMapSwizzle swizzle_of(int span) {
    return span == 128  ? device::TensorMapSwizzle::k128B
           : span == 64 ? device::TensorMapSwizzle::k64B
                        : device::TensorMapSwizzle::k32B;
  }
  void set_maps(const Device& device, AttentionFp8Params& params, const AttentionTile& tile) const {
    const AttentionProblem& p = problem_;
    if (p.q_rows() > 0) {
      store_map(params.q_map, byte_map(device, q_, q_storage_, 64));
      store_map(params.out_map, q_storage_.map(device, out_.address(), output_,
                                               AttentionMaps::kSwizzled, tile.box_queries));
    }
    if (p.kv_rows() == 0) return;
    store_map(params.k_map, byte_map(device, k_, kv_storage_, tile.keys));
    if (variant_.values == Fp8Values::kRows) {
      store_map(params.v_map, byte_map(device, v_, kv_storage_, tile.keys));
      return;
    }
    const auto columns = static_cast<std::uint64_t>(columns_);
    const auto dims = static_cast<std::uint64_t>(p.head_dim),
               heads = static_cast<std::uint64_t>(p.kv_heads);
    store_map(
        params.v_map,
        device::encode_tensor_map(
            device, {.name = "values",
                     .address = v_.address(),
                     .dims = {columns, dims, heads, static_cast<std::uint64_t>(p.batches_stored())},
                     .strides_bytes = {columns, columns * dims, columns * dims * heads},
                     .box = {static_cast<std::uint32_t>(variant_.value_box()),
                             static_cast<std::uint32_t>(p.head_dim), 1, 1},
                     .swizzle = swizzle_of(variant_.value_box())}));
  }

  const AttentionProblem& problem_;
  const K7Variant& variant_;
  const Fp8AttentionInputs& in_;
  const FormatSpec& output_;
  std::int64_t columns_ = 0;
  AttentionStorage q_storage_, kv_storage_;
  Buffer q_, k_, v_;
  Output<std::uint16_t> out_;
  Output<float> lse_;
  Buffer sink_, next_tile_, cu_q_, cu_kv_, q_scales_, k_scales_, v_scales_, v_reference_;
};

/// Bounds on the errors of one row (reference/attention/fp8_bound.h) whose dot products are exact
/// (see Fp8AttentionInputs). The tensor core sums all tiles up, or those of a flush.
class Fp8AttentionBound {
 public:
  Fp8AttentionBound(const AttentionProblem& p, const K7Variant& variant, const FormatSpec& output,
                    std::int32_t flush_tiles, double largest_v) {
    row_.num_keys = p.longest_kv();
    row_.num_tiles = p.longest_kv() / variant.keys + 2;
    row_.softcap = p.softcap;
    row_.value_max = largest_v;
    row_.out_roundoff = std::ldexp(1, -output.mantissa_bits - 1);
    row_.out_subnormal = output == kFp16 ? 0x1p-24 : 0.0;
    const auto tiles = static_cast<int>(row_.num_tiles);
    const int summed = variant.sums == Fp8Sums::kOneLevel ? tiles : std::min(tiles, flush_tiles);
    value_loss_ = tensor_core_bound(kHopperE4m3TensorCore, summed * variant.keys, 1);
  }
  reference::AttentionFp8Row of_scores(double magnitude, double sink) const {
    reference::AttentionFp8Row row = row_;
    row.score_magnitude = magnitude, row.sink = sink;
    return row;
  }
  double of_out(const reference::AttentionFp8Row& row, double magnitude, double exact) const {
    return reference::attention_fp8_out_bound(row, value_loss_, exact, magnitude);
  }
  double of_lse(const reference::AttentionFp8Row& row, double, double exact) const {
    return reference::attention_fp8_lse_bound(row, exact);
  }

 private:
  reference::AttentionFp8Row row_;
  double value_loss_;
};

class Fp8AttentionTest : public AttentionTest {
 protected:
  static AttentionOutputs launch(const Device& device, const AttentionProblem& p,
                                 const K7Variant& variant, const Fp8AttentionInputs& in,
                                 const FormatSpec& output, std::int32_t flush_tiles) {
    Fp8AttentionOperands operands(device, p, variant, in, output);
    const AttentionTile tile = variant.tile();
    const AttentionFp8Params params = operands.params(device, flush_tiles);
    if (params.batch * params.heads * params.q_tiles > 0) {
      run_kernel(device, fmt::format("attention_k7_{}", variant.name),
                 {.grid = {kPersistentCtas},
                  .block = {static_cast<std::uint32_t>(tile.threads)},
                  .dynamic_shared_bytes = static_cast<std::uint32_t>(tile.shared_bytes)},
                 params);
    }
    return operands.read();
  }

  /// Runs the problem and holds every element to its bound, and all of them together to what
  /// roundings of weights amount to when they are as good as random: a weight's relative error is
  /// uniform in at most +-2^-4, whose root mean square is 0.036; values of random sign add those
  /// as they add the values themselves. 0.045 leaves room for the sums' 13 bits.
  void check(const K7Variant& variant, const AttentionProblem& p, Fp8ScaleKind kind,
             const FormatSpec& output = kBf16, std::int32_t flush_tiles = 1) {
    SCOPED_TRACE(fmt::format("attention_k7_{}, q_len = {}, kv_len = {}, causal = {}, scales {}",
                             variant.name, p.longest_q(), p.longest_kv(), p.is_causal,
                             static_cast<int>(kind)));
    const Fp8AttentionInputs in(p, kind);
    const AttentionOutputs got = launch(device(), p, variant, in, output, flush_tiles);
    compare(p, in.real, Fp8AttentionBound(p, variant, output, flush_tiles, in.largest_v), got);
    if (HasFatalFailure()) return;
    const std::vector<double> exact = expected(p, in.real).out;
    double error = 0, all = 0;
    for (std::size_t i = 0; i < exact.size(); ++i) {
      error += (got.out[i] - exact[i]) * (got.out[i] - exact[i]);
      all += exact[i] * exact[i];
    }
    EXPECT_LE(std::sqrt(error), 0.045 * std::sqrt(all));
  }
};

}  // namespace tilewright::kernels
