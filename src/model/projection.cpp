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
                             std::int64_t x_stride, std::int64_t out_stride,
                             const ProjectionInput& input) {
  if (out_stride == 0) out_stride = projection.width();
  stack_ = make_stack(projection, {.m = tokens,
                                   .input = input.kind,
                                   .out_dtype = out_dtype,
                                   .x_stride = x_stride,
                                   .out_stride = out_stride,
                                   .eps = input.eps,
                                   .head_dim = input.head_dim,
                                   .rope_dims = input.rope_dims});
  if (stack_) return;
  if (input.kind == StackInput::kNormalised) x_stride = 0;
  const std::int64_t elem_bytes = bits_per_elem(out_dtype) / 8;
  for (const Projection::Group& group : projection.groups_) {
    steps_.push_back(
        {Linear(
             group.weight,
             {.m = tokens, .out_dtype = out_dtype, .x_stride = x_stride, .out_stride = out_stride}),
         group.first * elem_bytes});
  }
}

std::optional<LinearStack> ProjectionRun::make_stack(const Projection& projection,
                                                     LinearStackProblem problem) {
  // Measured (docs/notes/2026-11-26-few-rows.md): more rows, and narrow weights, gain nothing.
  constexpr std::int64_t kMostRows = 4, kLeastWidth = 1024;
  if (problem.m < 1 || problem.m > kMostRows || projection.width() < kLeastWidth)
    return std::nullopt;
  std::vector<LinearWeight> weights;
  std::vector<LinearWeightInfo> infos;
  for (const Projection::Group& group : projection.groups_) {
    weights.push_back(group.weight);
    infos.push_back(group.weight.info());
  }
  if (weights.size() > 2) return std::nullopt;
  if (weights.size() == 2) problem.second_column = projection.groups_[1].first;
  const Device& device = weights[0].device();
  if (!linear_stack_obstacle(device, infos, problem).empty()) return std::nullopt;
  return LinearStack(weights, problem);
}

std::size_t ProjectionRun::workspace_bytes() const noexcept {
  std::size_t most = 0;
  for (const Step& step : steps_) most = std::max(most, step.linear.plan().workspace_bytes);
  return most;
}

void ProjectionRun::run(const ProjectionCall& call) const {
  if (stack_) {
    return stack_->run({.x = call.x,
                        .norm = call.norm,
                        .positions = call.positions,
                        .rope = call.rope,
                        .out = call.out,
                        .stream = call.stream});
  }
  for (const Step& step : steps_) {
    step.linear.run({.x = call.x,
                     .out = static_cast<std::uint8_t*>(call.out) + step.offset_bytes,
                     .workspace = call.workspace,
                     .stream = call.stream});
  }
}

}  // namespace tilewright::model
