// The last part of a step: the head for the rows that need it, and the tokens that are drawn there.
#pragma once

#include "tilewright/sample.h"

#include "model/kernel_runner/step.h"

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

namespace tilewright::model {

/// A row of a step after which a token is drawn.
struct DrawnRow {
  std::int64_t row = 0;       ///< of the step's tokens
  std::int64_t position = 0;  ///< of the token that is drawn
  DrawnRows how = {};
};

/// How many tokens a step has, and how many rows draw, both filled up as recorded steps need it.
struct DrawCount {
  std::int64_t tokens = 0, rows = 0;

  /// Whether rows of the step draw where they stand.
  bool is_in_place() const noexcept { return rows == tokens; }
  auto operator<=>(const DrawCount&) const = default;
};
/// Of this rank, or where ranks divide the sequences of every rank.
using DrawShape = std::vector<DrawCount>;

/// Gathers rows, multiplies them by the head and draws, all on the device. Of ranks that divide the
/// head each has all logits, and draws alike; of ranks that divide the sequences each draws for its
/// own, and all get all ids.
///
/// Thread   one call at a time: memory is shared
class KernelSampler {
 public:
  /// `rows`: the most that draw on one rank.
  KernelSampler(const Device& device, const Config& config, const Projection& head,
                const StepRanks& ranks, std::int64_t rows);

  /// What run() draws next; nothing of it may be running. Rows beyond `drawn` take no part.
  void upload(const DrawShape& shape, std::span<const DrawnRow> drawn);
  std::size_t workspace_bytes(const DrawShape& shape);
  /// Enqueues; may be recorded after a first call of that shape.
  /// `x`: [tokens, hidden] of this rank.
  void run(const DrawShape& shape, const std::uint16_t* x, void* workspace, void* stream);
  /// Those of the last run(), which has to be done. `drawn_rows`: of the step of each rank, those
  /// after which a token was wanted.
  std::vector<std::int32_t> ids(const DrawShape& shape,
                                std::span<const std::vector<std::int64_t>> drawn_rows) const;

 private:
  struct Inputs;
  const DrawCount& own(const DrawShape& shape) const;
  const ProjectionRun& head_for(std::int64_t rows);

  Device device_;
  std::int64_t hidden_, vocab_, most_rows_;
  const Projection& head_;
  StepRanks ranks_;
  ByteArray inputs_;
  Bf16Array gathered_rows_;
  FloatArray logits_, all_logits_;
  IntArray ids_, all_ids_;
  std::map<std::int64_t, ProjectionRun> heads_;  // by rows
  std::map<std::int64_t, Sample> samples_;
  std::map<std::pair<std::int64_t, std::int64_t>, GatherRows> gathers_;  // by tokens and rows
};

}  // namespace tilewright::model
