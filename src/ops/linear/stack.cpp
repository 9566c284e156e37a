// Few rows by one or two weights in one launch: checks, plan and launch of the slab kernel.
#include "tilewright/linear.h"

#include "base/error.h"
#include "device/internal.h"
#include "ops/linear/kernel.h"
#include "ops/linear/problem.h"
#include "ops/linear/slab_tile.h"
#include "ops/linear/weight.h"
#include "ops/operator/arguments.h"
#include "ops/operator/operator.h"
#include "ops/operator/problem_checks.h"
#include "ops/operator/rotary_checks.h"

#include <algorithm>
#include <array>
#include <limits>

namespace tilewright {

const char* to_string(StackInput input) noexcept {
  switch (input) {
    case StackInput::kRows:
      return "rows";
    case StackInput::kNormalised:
      return "normalised";
    case StackInput::kTurnedBack:
      return "turned back";
  }
  return "?";
}

namespace {

using kernels::SlabInput;
using kernels::SlabPairParams;
using kernels::SlabParams;
using kernels::SlabTile;

constexpr const char* kStack = "linear-stack";
constexpr ops::ArgumentChecks kStackChecks(kStack);

static_assert(LinearStackProblem::kMostRows == SlabTile::kMaxTokens);

SlabInput slab_input(StackInput input) {
  return input == StackInput::kNormalised   ? SlabInput::kNormalised
         : input == StackInput::kTurnedBack ? SlabInput::kTurnedBack
                                            : SlabInput::kRows;
}

std::string weights_obstacle(std::span<const LinearWeightInfo> weights,
                             const LinearStackProblem& p) {
  for (const LinearWeightInfo& w : weights) {
    std::string obstacle = ops::slab_obstacle(w, p.m);
    if (!obstacle.empty()) return obstacle;
    if (w.activations != LinearActivations::kBf16)
      return "reads weights that were prepared for bf16 activations";
  }
  if (weights.size() == 2 &&
      (weights[0].format != NumberFormat::kFp8 || weights[1].format != NumberFormat::kBf16))
    return "takes two weights where the first is fp8 and the second bf16";
  return {};
}

LinearStackProblem complete_stack(std::span<const LinearWeightInfo> weights,
                                  const LinearStackProblem& problem) {
  ops::ProblemChecks checks(kStack);
  LinearStackProblem p = problem;
  checks.expect(weights.size() == 1 || weights.size() == 2, "weights", weights.size(), "1 or 2");
  checks.finish();
  const LinearWeightInfo& first = weights.front();
  const std::int64_t last_column = weights.size() == 2 ? p.second_column + weights[1].n : first.n;
  checks.range("m", p.m, 1, LinearStackProblem::kMostRows);
  checks.expect(p.out_dtype == DType::kBF16 || p.out_dtype == DType::kF32, "out_dtype", p.out_dtype,
                "BF16 or F32");
  if (weights.size() == 2) {
    checks.expect(first.k == weights[1].k, "k", weights[1].k, "{}, that of the first weight",
                  first.k);
    checks.expect(first.groups == 1 && weights[1].groups == 1, "groups",
                  std::max(first.groups, weights[1].groups), "1 of two weights");
    checks.expect(p.second_column >= first.n && p.second_column % 16 == 0, "second_column",
                  p.second_column, "a multiple of 16, behind the {} columns of the first weight",
                  first.n);
  }
  if (p.x_stride == 0) p.x_stride = first.k * first.groups;
  if (p.out_stride == 0) p.out_stride = last_column;
  constexpr std::int64_t kMost = std::int64_t{1} << 32;
  checks.expect(p.x_stride >= first.k * first.groups && p.x_stride % 8 == 0 && p.x_stride <= kMost,
                "x_stride", p.x_stride, "a multiple of 8 from {} to 2^32", first.k * first.groups);
  checks.expect(p.out_stride >= last_column && p.out_stride % 8 == 0 && p.out_stride <= kMost,
                "out_stride", p.out_stride, "a multiple of 8 from {} to 2^32", last_column);
  if (p.input == StackInput::kNormalised) {
    checks.eps("eps", p.eps);
    checks.expect(first.groups == 1, "groups", first.groups, "1 of rows that are normalised");
  }
  if (p.input == StackInput::kTurnedBack) {
    checks.expect(p.head_dim > 0 && p.head_dim % 16 == 0, "head_dim", p.head_dim,
                  "a multiple of 16");
    checks.expect(p.rope_dims > 0 && p.rope_dims % 16 == 0 && p.rope_dims <= p.head_dim,
                  "rope_dims", p.rope_dims, "a multiple of 16 up to head_dim = {}", p.head_dim);
  }
  checks.finish();
  return p;
}

SlabParams stack_sizes(const LinearWeightInfo& weight, const LinearStackProblem& p) {
  SlabParams sizes = ops::slab_sizes(weight, p.m);
  sizes.input = slab_input(p.input);
  return sizes;
}

// What CTAs the two get so that the busiest reads least.
ops::SlabStack choose_pair(const device::DeviceInfo& device, const ops::SlabStack& of) {
  static constexpr std::array<int, 1> kFp8Bricks = {2}, kBf16Bricks = {1};
  ops::SlabStack best = of;
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (int ctas = 1; ctas < device.num_sms; ++ctas) {
    const std::vector<SlabTile> tiles = {
        ops::choose_slab_tile(device, kernels::WeightFormat::kFp8, of.sizes[0], ctas, kFp8Bricks),
        ops::choose_slab_tile(device, kernels::WeightFormat::kBf16, of.sizes[1],
                              device.num_sms - ctas, kBf16Bricks)};
    const std::int64_t bytes =
        std::max(ops::slab_bytes(tiles[0], of.sizes[0]), ops::slab_bytes(tiles[1], of.sizes[1]));
    if (bytes >= least) continue;
    least = bytes;
    best.tiles = tiles;
  }
  return best;
}

ops::SlabStack choose_stack(const device::DeviceInfo& device, const LinearStackPlan& plan) {
  static constexpr std::array<int, 2> kBricks = {2, 1};
  ops::SlabStack stack;
  for (const LinearWeightInfo& w : plan.weights)
    stack.sizes.push_back(stack_sizes(w, plan.problem));
  if (plan.weights.size() == 2) {
    stack = choose_pair(device, stack);
  } else {
    stack.tiles = {ops::choose_slab_tile(device, ops::packed_shape(plan.weights[0]).format,
                                         stack.sizes[0], device.num_sms, kBricks)};
  }
  return stack;
}

Launch stack_launch(const device::DeviceInfo& device, const LinearStackPlan& plan,
                    const ops::SlabStack& stack) {
  Launch launch = {
      .step = "multiply",
      .entry = plan.weights.size() == 2
                   ? "linear_slab_pair"
                   : fmt::format("linear_slab_{}_b{}", to_string(plan.weights[0].format),
                                 stack.tiles[0].bricks),
      .grid = {0, 1, 1},
      .block = {static_cast<std::uint32_t>(stack.tiles[0].threads()), 1, 1}};
  for (std::size_t i = 0; i < stack.tiles.size(); ++i) {
    SlabParams sizes = stack.sizes[i];
    launch.grid[0] += static_cast<std::uint32_t>(stack.tiles[i].ctas);
    launch.shared_bytes = std::max(launch.shared_bytes, stack.tiles[i].cut(sizes));
  }
  launch.shared_bytes = ops::slab_shared_bytes(device, launch.shared_bytes);
  return launch;
}

// The plan with its launch, and what speaks against it.
std::string lay_out_stack(const device::DeviceInfo& device, LinearStackPlan& plan) {
  std::string obstacle = weights_obstacle(plan.weights, plan.problem);
  if (obstacle.empty()) obstacle = ops::capability_obstacle(90, device);
  if (!obstacle.empty()) return obstacle;
  plan.launches = {stack_launch(device, plan, choose_stack(device, plan))};
  return ops::launch_obstacle(device.compute_capability, device, plan.launches[0]);
}

LinearStackPlan make_stack_plan(const device::DeviceInfo& device,
                                std::span<const LinearWeightInfo> weights,
                                const LinearStackProblem& problem) {
  LinearStackPlan plan;
  plan.weights.assign(weights.begin(), weights.end());
  plan.problem = complete_stack(weights, problem);
  const std::string obstacle = lay_out_stack(device, plan);
  require(obstacle.empty(), ErrorKind::kUnsupported, "{}: its kernel {}", kStack, obstacle);
  for (const LinearWeightInfo& w : weights) {
    const LinearProblem p = {.m = plan.problem.m, .out_dtype = plan.problem.out_dtype};
    plan.flops += ops::linear_flops(w, p);
    plan.bytes += ops::linear_bytes(w, p);
    plan.notes.push_back({"weight", fmt::format("[{}, {}] {}", w.n, w.k, to_string(w.format))});
  }
  plan.notes.push_back(
      {"rows", fmt::format("{}, {}", plan.problem.m, to_string(plan.problem.input))});
  return plan;
}

std::vector<LinearWeightInfo> infos_of(std::span<const LinearWeight> weights) {
  std::vector<LinearWeightInfo> infos;
  for (const LinearWeight& w : weights) infos.push_back(w.info());
  return infos;
}

}  // namespace

struct LinearStack::State : ops::LoadedPlan<LinearStackPlan> {
  State(std::span<const LinearWeight> given, LinearStackPlan made)
      : LoadedPlan(given.front().device(), std::move(made)),
        weights(given.begin(), given.end()),
        stack(choose_stack(device().info(), plan())) {}

  SlabParams params(std::size_t index, const LinearStackArguments& a) const {
    const LinearStackProblem& p = plan().problem;
    const StateOf<LinearWeight>& weight = Internal::of(weights[index]);
    SlabParams params = stack.sizes[index];
    stack.tiles[index].cut(params);
    params.weights = weight.pointer_to<std::uint8_t>(weight.bricks);
    params.block_scales = weight.pointer_to<float>(weight.block_scales);
    params.x = a.x;
    params.is_y_f32 = p.out_dtype == DType::kF32;
    const std::int64_t column = index == 0 ? 0 : p.second_column;
    params.y = static_cast<std::uint8_t*>(a.out) + column * (params.is_y_f32 != 0 ? 4 : 2);
    params.x_stride = p.x_stride;
    params.y_stride = p.out_stride;
    params.matrix_bytes = weight.shape.bytes();
    params.scale_rows = weight.shape.scale_blocks_rows();
    params.alpha = weight.alpha_bf16;
    params.norm = static_cast<const std::uint16_t*>(a.norm);
    params.positions = a.positions;
    params.rope = a.rope.angles;
    params.num_positions = ops::narrow(a.rope.positions);
    params.head_dim = ops::narrow(p.head_dim);
    params.rope_dims = ops::narrow(p.rope_dims);
    params.eps = static_cast<float>(p.eps);
    return params;
  }

  std::vector<LinearWeight> weights;  // keep their memory
  ops::SlabStack stack;
};

LinearStack::LinearStack(std::span<const LinearWeight> weights, const LinearStackProblem& problem) {
  kStackChecks.check(!weights.empty(), "no weights; expected 1 or 2");
  state_ = std::make_unique<State>(weights, make_stack_plan(opened(weights.front().device()).info(),
                                                            infos_of(weights), problem));
}

LinearStack::~LinearStack() = default;
LinearStack::LinearStack(LinearStack&&) noexcept = default;
LinearStack& LinearStack::operator=(LinearStack&&) noexcept = default;

const LinearStackPlan& LinearStack::plan() const noexcept {
  return state_->plan();
}

void LinearStack::run(const LinearStackArguments& a) const {
  const LinearStackProblem& p = plan().problem;
  kStackChecks.address("x", a.x, ops::kRowAlignment);
  kStackChecks.address("out", a.out, ops::kRowAlignment);
  kStackChecks.address_if(p.input == StackInput::kNormalised, "norm", a.norm, ops::kRowAlignment);
  if (p.input == StackInput::kTurnedBack) {
    kStackChecks.address("positions", a.positions, ops::kWordAlignment);
    kStackChecks.range("rope.positions", a.rope.positions, 1);
    ops::check_one_table(kStackChecks, a.rope, ops::kWordAlignment);
  }
  const device::LaunchConfig config = ops::dependent_launch(plan().launches[0]);
  const device::Stream stream = state_->stream(a.stream);
  if (plan().weights.size() == 1) {
    state_->entries[0].launch(config, state_->params(0, a), stream);
  } else {
    state_->entries[0].launch(
        config,
        SlabPairParams{state_->params(0, a), state_->params(1, a), state_->stack.tiles[0].ctas},
        stream);
  }
}

std::string linear_stack_obstacle(const Device& device, std::span<const LinearWeightInfo> weights,
                                  const LinearStackProblem& problem) {
  LinearStackPlan plan;
  plan.weights.assign(weights.begin(), weights.end());
  plan.problem = complete_stack(weights, problem);
  return lay_out_stack(opened(device).info(), plan);
}

LinearStackPlan plan_linear_stack(const Device& device, std::span<const LinearWeightInfo> weights,
                                  const LinearStackProblem& problem) {
  return make_stack_plan(opened(device).info(), weights, problem);
}

}  // namespace tilewright
