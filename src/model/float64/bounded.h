// Values of the float64 model, each with a bound on how far a kernel's may be from it.
#pragma once

#include "formats/block_format.h"
#include "model/float64/rows.h"
#include "model/float64/weights64.h"
#include "reference/model/rms_norm.h"
#include "reference/rotation/rope.h"
#include "reference/sparse_attention/compressor.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace tilewright::model {

/// A kernel that takes its input from [value - error, value + error] gives a result in the same
/// interval of the result: every function below passes on the error of its input (to the worst
/// case: absolute values, no luck) and adds what the kernels' arithmetic loses in this step.
///
/// Arithmetic of the kernels, u = 2^-24:
///   products   bf16 operands, fp32 sums of a tensor core: tensor_core_error() of the length, and
///              32 u for sums of parts and a factor on them, of the sum of magnitudes
///   sums       of squares and over heads in fp32 units: chains of at most kChain additions
///   storage    to nearest; where the next step reads what was stored, both ends of the interval
///              are rounded, so that a number far from a tie has no error left
struct Bounded {
  Doubles value, error;
};

inline constexpr double kUnit = 0x1p-24;
/// The longest chain of fp32 additions in a sum that is no tensor core's: 16 terms a lane, 5
/// exchanges, 64 slices of columns.
inline constexpr double kChain = 96;

Bounded exactly(std::span<const double> values);
Bounded part(const Bounded& x, std::int64_t first, std::int64_t count);
void append(Bounded& to, const Bounded& from);

/// The rows [first, last) of blocks of rows, made by threads: make(first, last). Few rows are a
/// block each, so that wide ones keep all threads busy.
template <class Make>
Bounded by_rows(const Rows& threads, std::int64_t rows, const Make& make) {
  const std::int64_t block = rows <= 64 ? 1 : 16;
  std::vector<Bounded> blocks(static_cast<std::size_t>((rows + block - 1) / block));
  threads.each(
      static_cast<std::int64_t>(blocks.size()),
      [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t b = begin; b < end; ++b)
          blocks[static_cast<std::size_t>(b)] = make(b * block, std::min((b + 1) * block, rows));
      },
      1);
  Bounded all;
  for (const Bounded& each : blocks) append(all, each);
  return all;
}

/// x [rows, k] times w [n, k].
Bounded linear(const Bounded& x, std::span<const double> w, std::int64_t rows);
Bounded rms_norm(const reference::RmsNormParams& params, const Bounded& x,
                 std::span<const double> weight = {});
/// Angles from an fp32 table.
Bounded rope(const reference::RopeParams& params, const Bounded& x,
             std::span<const std::int32_t> positions, std::span<const double> frequencies);
/// As the next step reads it.
Bounded round_to_bf16(const Bounded& x);
/// dim^-0.5 times the Hadamard transform of rows.
Bounded hadamard(std::int64_t dim, const Bounded& x);
/// The entries [first, first + count) of a compressor, before rounding. Token 0 of values and gates
/// is at position `first_token`, which the first entry's oldest slot does not precede.
Bounded pool(const reference::CompressorParams& params, const Bounded& values, const Bounded& gates,
             std::span<const double> ape, std::int64_t first_token, std::int64_t first,
             std::int64_t count);
/// silu(min(gate, limit)) * clamp(up, limit), times a factor that fp32 holds.
Bounded swiglu(const Bounded& gate, const Bounded& up, double limit, double factor);

/// What became of numbers that a kernel stored in blocks.
struct BlockVerdict {
  std::int64_t beyond = 0;     ///< that no input in the interval gives
  std::int64_t undecided = 0;  ///< for which the interval allows more than one code
  std::int64_t different = 0;  ///< that are not what `value` gives
  std::int64_t first = -1;     ///< the first one beyond
  bool has_scale = true;       ///< the scale is one that the interval allows
};

/// One block of numbers as decoded from a kernel's codes. `scale`: the kernel's, or nullptr if it
/// is not known; then any that the interval allows.
BlockVerdict check_block(const BlockFormat& format, std::span<const double> decoded,
                         const double* scale, std::span<const double> value,
                         std::span<const double> error);

}  // namespace tilewright::model
