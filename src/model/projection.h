// Several matrices that multiply the same activations, as few linear layers as their formats allow.
#pragma once

#include "tilewright/linear.h"

#include "model/weight_source.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace tilewright::model {

/// out[t, first(i) + r] = sum_c x[t, c] * matrix_i[r, c]: matrices stand above each other in one
/// weight where they can_stack(). Every matrix begins at a multiple of 16. With `groups` it is one
/// matrix, of which each group of rows takes columns of x of its own.
class Projection {
 public:
  Projection(const Device& device, const std::vector<MatrixRows>& parts, std::int64_t groups = 1);

  std::int64_t width() const noexcept { return width_; }  ///< columns of a row of out
  std::int64_t first(std::size_t part) const { return first_[part]; }
  /// The weight if it is one for all; else null.
  const LinearWeight* single() const noexcept {
    return groups_.size() == 1 ? &groups_[0].weight : nullptr;
  }

 private:
  friend class ProjectionRun;
  struct Group {
    LinearWeight weight;
    std::int64_t first;
  };
  std::vector<Group> groups_;
  std::vector<std::int64_t> first_;
  std::int64_t width_ = 0;
};

/// What a projection does to its rows on the way in, where stacks() says that it can.
struct ProjectionInput {
  StackInput kind = StackInput::kRows;
  double eps = 1e-6;                            ///< kNormalised
  std::int64_t head_dim = 512, rope_dims = 64;  ///< kTurnedBack
};

/// Addresses of a call; those that the input needs.
struct ProjectionCall {
  const void* x;
  void* out;
  void* workspace;
  void* stream;
  const void* norm = nullptr;
  const std::int32_t* positions = nullptr;
  RotaryTable rope = {};
};

/// The linear layers of a projection for a number of tokens: of few one launch.
class ProjectionRun {
 public:
  ProjectionRun(const Projection& projection, std::int64_t tokens, DType out_dtype,
                std::int64_t x_stride = 0, std::int64_t out_stride = 0,
                const ProjectionInput& input = {});
  /// Whether the rows come as ProjectionInput says. If not, x is bf16 and has all that done.
  bool takes_input() const noexcept { return stack_.has_value(); }
  std::size_t workspace_bytes() const noexcept;
  void run(const ProjectionCall& call) const;
  void run(const void* x, void* out, void* workspace, void* stream) const {
    run({x, out, workspace, stream});
  }

 private:
  struct Step {
    Linear linear;
    std::int64_t offset_bytes;
  };
  /// None if it cannot do all of the projection.
  static std::optional<LinearStack> make_stack(const Projection& projection,
                                               LinearStackProblem problem);

  std::optional<LinearStack> stack_;  ///< then there are no steps
  std::vector<Step> steps_;
};

}  // namespace tilewright::model
