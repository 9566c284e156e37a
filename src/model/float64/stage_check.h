// Whether every stage of a run of kernels is what its own inputs give.
#pragma once

#include "model/float64/bounded.h"
#include "model/float64/layer64.h"

#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tilewright::model {

/// What became of one stage of one layer, over all its rows.
struct StageVerdict {
  std::string name;  ///< "layers.1.lse"
  std::int64_t rows = 0, elems = 0;
  std::int64_t beyond_rows = 0;  ///< rows with an element beyond its bound
  double worst = 0;              ///< largest difference in parts of its bound
  double max_difference = 0;     ///< of numbers; NaN and infinities that are not the same: infinity
  double squares = 0, squared_differences = 0;  ///< sums of finite numbers and of their differences
  bool is_code = false;                         ///< codes, scales, choices
  /// Of codes and choices: those that the bound leaves open, and those that are not what exact
  /// arithmetic gives. The second are among the first, or beyond.
  std::int64_t undecided = 0, different = 0;
  std::string first;  ///< where the first element beyond its bound is

  bool is_met() const noexcept { return beyond_rows == 0; }
  /// Root mean square of the differences by that of the numbers; of zeros 0.
  double relative_rms() const { return squares > 0 ? std::sqrt(squared_differences / squares) : 0; }
};

/// Listens to a runner of kernels (Runner::set_stage_sink) and computes every stage of sequence 0
/// again, in float64, from what the runner itself had stored before that stage. So a bound covers
/// the roundings between two stages alone (bounded.h), whatever came before:
///
///   numbers   |difference| <= passed-on error + u (|value| + error), u of the stage's own format
///   bytes     a code lies between those of the ends of the interval that bf16 rows may lie in, a
///             scale between those of the block's possible maxima. The share of bytes that may
///             differ, by one code, is `undecided`
///   choices   an entry (an expert) that is not chosen has no score that is larger than a chosen
///             one's by more than the two bounds; a table leaves no choice
///
/// A stage whose inputs the runner does not give is not checked, nor is one of an unknown name. Of
/// wide models some positions alone are checked, and the entries that they are part of: what other
/// rows of the caches hold is taken as it was stored.
class StageCheck {
 public:
  /// `tokens`: those that sequence 0 will be fed, from position 0. `options` are the runner's.
  /// `positions`: those that are checked, ascending; none: all.
  StageCheck(std::shared_ptr<const Weights> weights, const RunnerOptions& options,
             std::vector<std::int32_t> tokens, std::vector<std::int64_t> positions = {});

  void receive(const Stage& stage);
  /// In the order in which stages came first.
  std::vector<StageVerdict> verdicts() const;

 private:
  using Handler = void (StageCheck::*)(const Stage&);
  struct Named {
    std::string_view name;
    Handler handler;
  };
  static const Named kHandlers[];
  // Of one sequence and layer, as the runner stored it.
  struct LayerMemory {
    Doubles x;  // attn_in of all tokens
    Doubles kv, compressed, index_keys;
  };
  // Rows whose codes, scales and rotated numbers come one after the other.
  struct CacheRows {
    Bounded rows;
    Doubles codes;
  };

  // stage_check.cpp
  bool is_checked(const Stage& stage, std::int64_t row) const;
  StageVerdict& verdict(std::string_view name);
  void compare(const Stage& stage, const Bounded& expected, double unit);
  void note(StageVerdict& verdict, const Stage& stage, std::int64_t row, const std::string& what);
  const Doubles& now(const char* name) const;
  std::vector<std::int32_t> positions() const;
  void check_choice(const Stage& stage, std::int64_t row, const Bounded& scores,
                    const std::vector<std::int64_t>& chosen);
  const Layer64& weights() const { return *layers_[static_cast<std::size_t>(layer_)]; }
  LayerMemory& memory() { return memory_[static_cast<std::size_t>(layer_)]; }
  LayerKind kind() const { return config_.kind(layer_); }

  // stage_check_layer.cpp
  Bounded mix_logits(const Hyper64& hyper, std::int64_t rows) const;
  void begin_streams();
  void check_mix(const Stage& stage);
  void check_head_mix(const Stage& stage);
  void check_input(const Stage& stage);
  void check_streams(const Stage& stage);
  void check_router_scores(const Stage& stage);
  void check_router_ids(const Stage& stage);
  void check_router_weights(const Stage& stage);
  void check_moe(const Stage& stage);
  void check_logits(const Stage& stage);
  Bounded expert(std::span<const double> x, std::int64_t id, double weight) const;

  // stage_check_cache.cpp
  Bounded window_rows(const Stage& stage);
  Bounded entry_rows(const Stage& stage, const Compressor64& weights, std::int64_t dim);
  const BlockFormat& row_format() const;
  Doubles code_values(std::span<const double> bytes) const;
  void remember(const Stage& stage);
  void check_plain_row(const Stage& stage);
  void check_codes(const Stage& stage);
  void check_scales(const Stage& stage);
  void check_rotated(const Stage& stage);
  void check_index_keys(const Stage& stage);
  void check_index_queries(const Stage& stage);
  void check_blocks(const Stage& stage, const Bounded& expected);

  // stage_check_attention.cpp
  void check_latent(const Stage& stage);
  void check_query(const Stage& stage);
  void check_index_weights(const Stage& stage);
  void check_index_scores(const Stage& stage);
  void check_selected(const Stage& stage);
  void check_lse(const Stage& stage);
  void check_attended(const Stage& stage);
  void check_turned(const Stage& stage);
  void check_projected(const Stage& stage);
  void attend();

  std::shared_ptr<const Weights> source_;
  const Config& config_;
  RunnerOptions options_;
  std::vector<std::int32_t> tokens_;
  std::vector<std::int64_t> checked_;  // positions; none: all
  std::vector<std::int64_t> numbers_;  // positions or entries of the rows of the stage
  Doubles embed_, head_, norm_;
  Hyper64 hc_head_;
  std::vector<std::optional<Layer64>> layers_;  // when they come; without routed experts
  mutable ThreadPool pool_;
  Rows rows_{pool_};
  std::vector<LayerMemory> memory_;
  std::int64_t layer_ = 0;
  std::map<std::string, Doubles, std::less<>> now_;  // the latest stage of every name
  std::vector<std::int64_t> final_;                  // positions of the rows of final_norm
  Doubles stored_streams_;                           // before the sub-layer that is being checked
  Bounded scores_;                                   // of the indexer, or of the router
  CacheRows cache_;                                  // of checked rows
  Doubles stored_;                                   // codes of all rows, then what they mean
  reference::SparseAttentionResult attended_;
  std::vector<StageVerdict> verdicts_;
  std::map<std::string, std::size_t, std::less<>> place_;
};

}  // namespace tilewright::model
