// The linear operator: a weight on the device, a plan with its loaded kernels, and launching them.
#include "tilewright/linear.h"

#include "base/error.h"
#include "device/internal.h"
#include "ops/linear/pack.h"
#include "ops/linear/plan.h"
#include "ops/linear/problem.h"
#include "ops/linear/spread.h"
#include "ops/linear/weight.h"
#include "ops/operator/arguments.h"
#include "ops/operator/operator.h"

#include <optional>
#include <span>
#include <utility>

namespace tilewright {

struct Linear::State : ops::LoadedPlan<LinearPlan> {
  State(const LinearWeight& prepared, LinearPlan made)
      : LoadedPlan(prepared.device(), std::move(made)), weight(prepared) {}

  LinearWeight weight;  // keeps its memory
  const ops::LinearKernel& kernel = *ops::find_linear_kernel(plan().kernel);
  const ops::LinearSplit split = ops::split_groups(plan(), kernel);
};

namespace {

constexpr ops::ArgumentChecks kChecks("linear");

void check_arguments(const LinearPlan& plan, const LinearArguments& a) {
  const bool is_e4m3 = plan.problem.x_dtype == DType::kF8_E4M3;
  const bool has_blocks = plan.problem.activation_scales == ScaleSharing::kBlock;
  kChecks.address("x", a.x, ops::kRowAlignment);
  kChecks.address_if(is_e4m3, "x_scales", a.x_scales,
                     has_blocks ? ops::kRowAlignment : ops::kWordAlignment);
  kChecks.address_if(plan.problem.has_bias, "bias", a.bias, ops::kWordAlignment);
  kChecks.address("out", a.out, ops::kRowAlignment);
  kChecks.workspace(a.workspace, plan.workspace_bytes);
}

/// Bytes on their way to the device: those of each group behind those of the one before.
class GroupBytes {
 public:
  GroupBytes(const device::Device& device, std::int64_t groups)
      : device_(device), groups_(static_cast<std::size_t>(groups)) {}

  void add(std::span<const std::byte> bytes) {
    if (!buffer_) buffer_.emplace(device_, groups_ * bytes.size());
    buffer_->copy_from_host(bytes, at_);
    at_ += bytes.size();
  }
  device::Buffer take() { return std::move(*buffer_); }

 private:
  const device::Device& device_;
  std::size_t groups_, at_ = 0;
  std::optional<device::Buffer> buffer_;
};

// Packed, or as rows where the device keeps them.
StateOf<LinearWeight> prepare_groups(const Device& device, const ops::HostWeight& host,
                                     const LinearWeightInfo& info) {
  const device::Device& inner = opened(device);
  const bool is_fp8 = info.format == NumberFormat::kFp8;
  const bool keeps_rows = ops::keeps_rows(inner.info(), info);
  GroupBytes bricks(inner, info.groups), scales(inner, info.groups);
  float alpha_bf16 = 1, alpha_e4m3 = 1;
  bool has_power_scales = is_fp8 && !keeps_rows;
  for (std::int64_t g = 0; g < info.groups; ++g) {
    const ops::HostWeight part = host.group(g, info.groups);
    if (keeps_rows) {
      const ops::E4m3Rows rows = is_fp8 ? ops::e4m3_rows(part) : ops::E4m3Rows{};
      bricks.add(is_fp8 ? std::as_bytes(std::span(rows.values)) : std::as_bytes(part.values));
      scales.add(std::as_bytes(std::span(rows.scales)));
      continue;
    }
    const ops::PackedWeight packed = ops::pack_weight(part, info.activations);
    bricks.add(std::as_bytes(packed.bytes()));
    scales.add(std::as_bytes(std::span(packed.block_scales)));
    has_power_scales = has_power_scales && ops::are_power_scales(packed.block_scales);
    alpha_bf16 = packed.alpha(kernels::WordOrder::kBf16);  // the same in all groups
    alpha_e4m3 = packed.alpha(kernels::WordOrder::kE4m3);
  }
  return {device,          info,       ops::packed_shape(info), ops::word_order(info.activations),
          alpha_bf16,      alpha_e4m3, bricks.take(),           scales.take(),
          has_power_scales};
}

// The arguments of a group.
LinearArguments of_group(const LinearPlan& part, const LinearArguments& all, std::int64_t group) {
  LinearArguments a = all;
  const LinearWeightInfo& w = part.weight;
  const LinearProblem& p = part.problem;
  a.x = static_cast<const std::uint8_t*>(all.x) + group * w.k * ops::linear_elem_bytes(p.x_dtype);
  a.out = static_cast<std::uint8_t*>(all.out) + group * w.n * ops::linear_elem_bytes(p.out_dtype);
  if (p.has_bias) a.bias = all.bias + group * w.n;
  return a;
}

}  // namespace

LinearWeight::LinearWeight(std::shared_ptr<const State> state) noexcept
    : state_(std::move(state)) {}

LinearWeight LinearWeight::prepare(const Device& device, const LinearWeightSource& source,
                                   LinearActivations activations) {
  const device::Device& inner = opened(device);
  require(source.format != NumberFormat::kBf16 || activations != LinearActivations::kFp8,
          ErrorKind::kInvalidArgument,
          "linear: a bf16 weight for fp8 activations; quantise it to fp8 first, or prepare it for "
          "bf16 activations");
  require(source.up_values.data == nullptr, ErrorKind::kInvalidArgument,
          "linear: up_values are given; expected one weight. Prepare a BlockScaledWeight of a gate "
          "and up, or two weights.");
  const ops::HostWeight host = ops::check_weight_source(source, &inner);
  const LinearWeightInfo info = {source.format, activations, host.n, host.k, source.groups};
  ops::check_linear_weight(info);
  if (activations == LinearActivations::kBlockScaled)
    return LinearWeight(std::make_shared<const State>(ops::prepare_scaled_rows(device, host)));
  return LinearWeight(std::make_shared<const State>(prepare_groups(device, host, info)));
}

const LinearWeightInfo& LinearWeight::info() const noexcept {
  return state_->info;
}

std::size_t LinearWeight::bytes() const noexcept {
  return state_->bricks.size_bytes() + state_->block_scales.size_bytes();
}

const Device& LinearWeight::device() const noexcept {
  return state_->handle;
}

Linear::Linear(const LinearWeight& weight, const LinearProblem& problem) {
  state_ = std::make_unique<State>(weight, plan_linear(weight.device(), weight.info(), problem));
}

Linear::~Linear() = default;
Linear::Linear(Linear&&) noexcept = default;
Linear& Linear::operator=(Linear&&) noexcept = default;

const LinearPlan& Linear::plan() const noexcept {
  return state_->plan();
}

void Linear::run(const LinearArguments& arguments) const {
  const State& state = *state_;
  if (state.plan().launches.empty()) return;
  check_arguments(state.plan(), arguments);
  const device::Stream stream = state.stream(arguments.stream);
  const std::span<const device::Kernel> entries(state.entries);
  const std::size_t launches = state.split.part.launches.size();
  for (std::int64_t g = 0; g < state.split.parts; ++g) {
    const LinearArguments of = of_group(state.split.part, arguments, g);
    state.kernel.run({state.device(), state.split.part, Internal::of(state.weight), of,
                      entries.subspan(static_cast<std::size_t>(g) * launches, launches), stream,
                      g});
  }
}

LinearPlan plan_linear(const Device& device, const LinearWeightInfo& weight,
                       const LinearProblem& problem) {
  return ops::make_linear_plan(opened(device).info(), weight, problem);
}

}  // namespace tilewright
