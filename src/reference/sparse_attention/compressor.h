// Float64 reference of DeepSeek-V4's KV compressor: CSA (ratio 4, overlapping groups), HCA (128).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tilewright::reference {

/// Group j covers the tokens ratio * j .. ratio * j + ratio - 1 and gives entry j. With overlap a
/// token has two halves of dim channels: the first serves the NEXT group, the second its own, so
/// that entry j pools 2 * ratio slots.
struct CompressorParams {
  int64_t ratio = 4;
  int64_t dim = 512;    ///< channels of an entry
  bool overlap = true;  ///< CSA and its indexer: true, HCA: false

  constexpr int64_t width() const { return overlap ? 2 * dim : dim; }  ///< channels of a token
};

/// The state of one sequence while tokens arrive one by one: as many rows as entries read, fp64.
///
/// A row is the token's values (W_kv x) and its scores (W_gate x + ape[p mod ratio]). Reading past
/// the sequence's beginning gives score -inf, whatever an earlier sequence left behind: reset().
/// `spare` more rows let as many of the last tokens be taken back (speculative decoding). A state
/// may begin at a position `first`: there are no tokens before it.
class CompressorState {
 public:
  /// Errors   InvalidArgument unless ratio and dim are at least 1, spare and first at least 0
  explicit CompressorState(const CompressorParams& params, int64_t spare = 0, int64_t first = 0);

  /// Back to an empty sequence.
  void reset();
  int64_t num_tokens() const noexcept { return num_tokens_; }
  /// Removes the last tokens.
  /// Errors   InvalidArgument for more than there are, or more than `spare` below the most that
  ///          there have been
  void take_back(int64_t tokens);

  /// Takes the token at position num_tokens(). Returns the pooled entry [dim] if the token
  /// completes a group, (p + 1) mod ratio == 0, otherwise nothing:
  ///
  ///     e_c = sum_t values[t,c] softmax_t(scores[t,c])     for every channel by itself
  ///
  /// Shapes   values, gates [width]; ape [ratio, width]
  /// Errors   InvalidArgument if an array does not have its shape
  std::vector<double> push(std::span<const double> values, std::span<const double> gates,
                           std::span<const double> ape);

 private:
  std::vector<double> pool() const;

  CompressorParams params_;
  int64_t num_tokens_ = 0, most_tokens_ = 0;
  std::vector<double> values_, scores_;  // [ring, width], row p mod ring
  int64_t window_;                       // tokens that an entry reads
  int64_t ring_;
};

/// The pooled entries of a whole sequence from position 0.
/// Shapes   values, gates [tokens, width]; ape [ratio, width]; result [tokens / ratio, dim]
/// Errors   InvalidArgument if an array does not have its shape
/// Source   DeepSeek-V4 reference model
std::vector<double> compressor_pool(const CompressorParams& params, std::span<const double> values,
                                    std::span<const double> gates, std::span<const double> ape);

struct CompressorFinishParams {
  int64_t dim = 512;
  int64_t ratio = 4;
  int64_t first_entry = 0;  ///< entry number of the first row
  double eps = 1e-6;
  bool round_bf16 = false;  ///< the pooled value, the result of the norm, and of the rotation
};

/// pooled entries -> weighted RMS norm -> rotation of the last 2 * frequencies.size() channels at
/// position j * ratio, the FIRST token of group j.
/// Shapes   pooled, result [entries, dim]; norm_weight [dim]; frequencies [rotary_dim / 2]
/// Errors   as rms_norm() and rope()
/// Source   DeepSeek-V4 reference model
std::vector<double> compressor_finish(const CompressorFinishParams& params,
                                      std::span<const double> pooled,
                                      std::span<const double> norm_weight,
                                      std::span<const double> frequencies);

}  // namespace tilewright::reference
