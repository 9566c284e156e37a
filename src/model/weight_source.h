// Matrices of a checkpoint as the linear and MoE operators take them.
#pragma once

#include "tilewright/linear.h"

#include "model/weights.h"

#include <cstdint>
#include <span>
#include <vector>

namespace tilewright::model {

/// Rows that a matrix takes in a stack: filled up with zeros to a multiple of 16.
constexpr std::int64_t stacked_rows(std::int64_t rows) {
  return (rows + 15) / 16 * 16;
}

/// Rows [first, first + rows) of a matrix.
struct MatrixRows {
  const Matrix* matrix = nullptr;
  std::int64_t first = 0, rows = 0;
};
inline MatrixRows all_rows(const Matrix& matrix) {
  return {&matrix, 0, matrix.rows};
}

/// A weight for an operator, and what its views need alive beside the checkpoint.
struct WeightSource {
  LinearWeightSource source;
  std::vector<std::uint8_t> values, scales;
};

/// bf16, fp8, mxfp4 or nvfp4 as they are; everything else in bf16.
NumberFormat weight_format(const Matrix& matrix);
/// Whether `lower` can stand below `upper` in one weight: plain ones always, fp8 ones if `upper`
/// ends with a block of scales.
bool can_stack(const MatrixRows& upper, const MatrixRows& lower);

/// Matrices of one width above each other, each with its stacked_rows(); more than one only if each
/// can_stack() below the one before. With `groups` it is one matrix whose rows are that many groups
/// (LinearWeightSource); those of fp8 that share blocks of scales become bf16.
/// Errors   InvalidArgument if rows of a quantised matrix do not begin with a block, and as
///          check_checkpoint_scales
WeightSource weight_source(std::span<const MatrixRows> parts, std::int64_t groups = 1);

}  // namespace tilewright::model
