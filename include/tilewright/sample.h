// The next tokens from logits, on a device; and the gathering of the rows that need logits.
#pragma once

#include "tilewright/device.h"
#include "tilewright/plan.h"
#include "tilewright/tensor.h"

#include <cstdint>
#include <memory>

namespace tilewright {

/// ids[r] = a token drawn from softmax(logits[r,:] / temperature[r]), cut in this order
///
///     top_k   to so many of the likeliest tokens; 0: all
///     min_p   to those whose probability is at least min_p times that of the likeliest
///     top_p   of what is left to the likeliest whose probabilities reach this share of its sum
///
/// and for temperature 0 (below 2^-100) the token with the largest logit. Of equal logits the lower
/// token comes first. NaN counts as -inf, -0 as 0; what is -inf is never drawn. A row without a
/// finite largest logit gives -1.
///
///     token = argmax_i (z_i / temperature + g_i)     over the tokens that are left
///     g_i   = -ln(-ln(1 - v)),  v = (word i mod 4 of Philox4x32-10 + 0.5) / 2^32
///             counter (i / 4, position, sequence low, high), key (seed low, high)
///
/// A token depends on its row alone: not on the rows beside it, nor on their number. So a sequence
/// says the same in every batch, and the same after every restart
///
/// Shapes   logits: `parts` arrays of [rows, vocab / parts], as ranks give them that divide the
///          vocabulary; vocab at most 327,680. All else [rows]; seeds [rows, 2]: a seed, and what
///          makes sequences with one seed differ
/// Layout   a row of a part begins at a multiple of 4 elements, and so do parts
/// Numbers  top_k is exact. Weights that top_p adds up are off by at most 2^-21 of themselves and
///          2^-43 of the largest; probabilities of what is drawn by at most 2^-16 of themselves
/// Source   Salmon and others 2011 (Philox); Gumbel-max: folklore
struct SampleProblem {
  std::int64_t rows = 0, vocab = 0;
  DType logits_dtype = DType::kF32;  ///< or kBF16
  std::int64_t parts = 1;
  std::int64_t row_stride = 0;   ///< elements; 0: vocab / parts, rounded up to a multiple of 4
  std::int64_t part_stride = 0;  ///< elements; 0: rows * row_stride
};

struct SamplePlan : Plan {
  SampleProblem problem;  ///< with strides filled in
};

/// Device addresses, and the stream to work on. Where one is null all rows have the default.
struct SampleArguments {
  const void* logits = nullptr;
  const float* temperature = nullptr;       ///< 0
  const std::int32_t* top_k = nullptr;      ///< 0: all
  const float* top_p = nullptr;             ///< 1; above 0
  const float* min_p = nullptr;             ///< 0; at most 1
  const std::uint64_t* seeds = nullptr;     ///< 0
  const std::int32_t* positions = nullptr;  ///< 0. Below 0: the row takes no part, its id is -1
  std::int32_t* ids = nullptr;
  float* log_probs = nullptr;  ///< ln softmax(logits)[id], without temperature; null: not wanted
  void* stream = nullptr;      ///< CUstream; null: the default stream
};

/// A plan with its kernel loaded on a device.
///
/// Thread   run() may be called from several threads if outputs differ
class Sample {
 public:
  /// Errors   InvalidArgument if the problem makes no sense (the message names field, value, rule);
  ///          Unsupported on a device without the kernel
  Sample(const Device& device, const SampleProblem& problem);
  ~Sample();
  Sample(Sample&&) noexcept;
  Sample& operator=(Sample&&) noexcept;

  const SamplePlan& plan() const noexcept;
  /// Enqueues one kernel. Allocates nothing, waits for nothing; may be captured in a CUDA graph.
  /// Errors   InvalidArgument if an address is missing or misaligned; DeviceError
  void run(const SampleArguments& arguments) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The plan alone. Errors as Sample's constructor.
SamplePlan plan_sample(const Device& device, const SampleProblem& problem);

/// out[r,:] = x[index[r],:], and zeros for an index outside of x: of a step's tokens those that
/// need logits.
///
/// Shapes   x [x_rows, cols], out [rows, cols] of bf16; index [rows]
/// Layout   contiguous, 16-byte aligned
struct GatherRowsProblem {
  std::int64_t rows = 0, x_rows = 0;
  std::int64_t cols = 0;  ///< a multiple of 8
};

struct GatherRowsPlan : Plan {
  GatherRowsProblem problem;
};

/// Device addresses, and the stream to work on.
struct GatherRowsArguments {
  const void* x = nullptr;
  const std::int32_t* index = nullptr;
  void* out = nullptr;
  void* stream = nullptr;  ///< CUstream; null: the default stream
};

/// A plan with its kernel loaded on a device.
///
/// Thread   as Sample
class GatherRows {
 public:
  /// Errors   as Sample
  GatherRows(const Device& device, const GatherRowsProblem& problem);
  ~GatherRows();
  GatherRows(GatherRows&&) noexcept;
  GatherRows& operator=(GatherRows&&) noexcept;

  const GatherRowsPlan& plan() const noexcept;
  /// Enqueues one kernel. Errors as Sample::run().
  void run(const GatherRowsArguments& arguments) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The plan alone. Errors as GatherRows' constructor.
GatherRowsPlan plan_gather_rows(const Device& device, const GatherRowsProblem& problem);

}  // namespace tilewright
