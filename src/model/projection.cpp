#include "model/projection.h"

#include <algorithm>

namespace tilewright::model {

Projection::Projection(const Device& device, const std::vector<MatrixRows>& parts,
                       std::int64_t groups) {
  std::vector<MatrixRows> stack;
  std::int64_t stack_first = 0;
  const auto prepare = [&](const std::vector<MatrixRows>& matrices, std::int64_t first) {
    const WeightSource source = weight_source(matrices, groups);
    groups_.push_back({LinearWeight::prepare(device, source.source), first});
  };
  const auto finish_stack = [&] {
    if (!stack.empty()) prepare(stack, stack_first);
    stack.clear();
  };
  for (const MatrixRows& part : parts) {
    if (!stack.empty() && !can_stack(stack.back(), part)) finish_stack();
    if (stack.empty()) stack_first = width_;
    stack.push_back(part);
    first_.push_back(width_);
    width_ += stacked_rows(part.rows);
  }
  finish_stack();
}

ProjectionRun::ProjectionRun(const Projection& projection, std::int64_t tokens, DType out_dtype,
                             std::int64_t x_stride, std::int64_t out_stride) {
  const std::int64_t elem_bytes = bits_per_elem(out_dtype) / 8;
  for (const Projection::Group& group : projection.groups_) {
    steps_.push_back(
        {Linear(group.weight, {.m = tokens,
                               .out_dtype = out_dtype,
                               .x_stride = x_stride,
                               .out_stride = out_stride == 0 ? projection.width() : out_stride}),
         group.first * elem_bytes});
  }
}

std::size_t ProjectionRun::workspace_bytes() const noexcept {
  std::size_t most = 0;
  for (const Step& step : steps_) most = std::max(most, step.linear.plan().workspace_bytes);
  return most;
}

void ProjectionRun::run(const void* x, void* out, void* workspace, void* stream) const {
  for (const Step& step : steps_) {
    step.linear.run({.x = x,
                     .out = static_cast<std::uint8_t*>(out) + step.offset_bytes,
                     .workspace = workspace,
                     .stream = stream});
  }
}

}  // namespace tilewright::model
