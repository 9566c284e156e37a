// Tensors of an attention problem on the host: from files or drawn, as they will lie on a device.
#pragma once

#include "tilewright/attention.h"

#include "base/tensor.h"
#include "formats/format_spec.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tilewright::cli {

/// Element types are those of the problem; strides say where the elements are.
struct AttentionData {
  AttentionProblem problem;
  std::vector<std::uint16_t> q, k, v;
  std::vector<float> sink = {};
  /// [batch + 1] if packed: where sequences begin.
  std::vector<std::int32_t> cu_q = {}, cu_kv = {};
};

/// Where the rows of one sequence are: the first ones are 0 unless sequences are packed.
struct AttentionSequence {
  std::int64_t q_first, q_len, kv_first, kv_len;
};
AttentionSequence find_sequence(const AttentionData& data, std::int64_t batch);

/// 2 * (head_dim + value_dim) for every visible score, packed sequences by their lengths.
double visible_flops(const AttentionData& data);

/// bf16 or fp16.
const FormatSpec& attention_format(DType dtype);

/// Codes of a tensor in host memory, rounded to the type: F16, BF16, F32 or F64.
std::vector<std::uint16_t> to_codes(const ConstTensorView& tensor, DType dtype,
                                    const std::string& name);

/// The same tensors as float32.
std::vector<float> to_floats(const ConstTensorView& tensor, const std::string& name);

/// Where the letters of `layout` put batch (b), rows (n), heads (h) and head_dim (d, the last) of a
/// tensor; dimensions without a letter have one element. "bnhd", "bhnd", "hnd", ...
struct AttentionExtents {
  std::int64_t batch, rows, heads, head_dim;
  Strides strides;
};
/// Errors   InvalidArgument naming tensor, shape and layout
AttentionExtents read_layout(const std::string& layout, std::span<const std::int64_t> shape,
                             const std::string& name);

/// Columns of v and out.
std::int64_t value_dim(const AttentionProblem& problem) noexcept;

/// Sizes and strides of the problem from the shapes of q, k and v. out lies as q does, with rows as
/// wide as those of v.
/// Errors   InvalidArgument if they do not fit each other
void set_extents(AttentionProblem& problem, const AttentionExtents& q, const AttentionExtents& k,
                 const AttentionExtents& v);

/// What values are drawn from: N(0,1), or with outliers as FlashAttention-3's accuracy is measured,
/// N(0,1) + N(0,100) * Bernoulli(0.001).
enum class Drawn { kNormal, kOutlier };
/// That many values, rounded to the type; the same for the same seed everywhere.
std::vector<std::uint16_t> draw_values(Drawn from, std::int64_t count, std::uint64_t seed,
                                       DType dtype);
inline std::vector<std::uint16_t> draw_normal(std::int64_t count, std::uint64_t seed, DType dtype) {
  return draw_values(Drawn::kNormal, count, seed, dtype);
}

/// Elements that strides reach over: the size of the memory behind a tensor.
std::int64_t span_elems(std::int64_t batch, std::int64_t rows, std::int64_t heads,
                        std::int64_t head_dim, const Strides& strides);

}  // namespace tilewright::cli
