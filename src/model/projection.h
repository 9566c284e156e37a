// Several matrices that multiply the same activations, as few linear layers as their formats allow.
#pragma once

#include "tilewright/linear.h"

#include "model/weight_source.h"

#include <cstddef>
#include <cstdint>
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

/// The linear layers of a projection for a number of tokens.
class ProjectionRun {
 public:
  ProjectionRun(const Projection& projection, std::int64_t tokens, DType out_dtype,
                std::int64_t x_stride = 0, std::int64_t out_stride = 0);
  std::size_t workspace_bytes() const noexcept;
  void run(const void* x, void* out, void* workspace, void* stream) const;

 private:
  struct Step {
    Linear linear;
    std::int64_t offset_bytes;
  };
  std::vector<Step> steps_;
};

}  // namespace tilewright::model
