// The linear operator: a weight on the device, a plan with its loaded kernels, and launching them.
#include "tilewright/linear.h"

#include "base/error.h"
#include "device/internal.h"
#include "ops/linear/pack.h"
#include "ops/linear/plan.h"
#include "ops/linear/problem.h"
#include "ops/linear/weight.h"
#include "ops/operator/arguments.h"
#include "ops/operator/operator.h"

#include <utility>

namespace tilewright {

struct Linear::State : ops::LoadedPlan<LinearPlan> {
  State(const LinearWeight& prepared, LinearPlan made)
      : LoadedPlan(prepared.device(), std::move(made)), weight(prepared) {}

  LinearWeight weight;  // keeps its memory
  const ops::LinearKernel& kernel = *ops::find_linear_kernel(plan().kernel);
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

device::Buffer upload(const device::Device& device, std::span<const std::byte> bytes) {
  device::Buffer buffer(device, bytes.size());
  buffer.copy_from_host(bytes);
  return buffer;
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
  const LinearWeightInfo info = {source.format, activations, host.n, host.k};
  if (activations == LinearActivations::kBlockScaled) {
    ops::check_linear_weight(info);
    return LinearWeight(std::make_shared<const State>(ops::prepare_scaled_rows(device, host)));
  }
  if (ops::keeps_rows(inner.info(), info)) {
    const bool is_fp8 = source.format == NumberFormat::kFp8;
    const ops::E4m3Rows rows = is_fp8 ? ops::e4m3_rows(host) : ops::E4m3Rows{};
    return LinearWeight(std::make_shared<const State>(State{
        device, info, ops::packed_shape(info), ops::word_order(activations), 1, 1,
        upload(inner, is_fp8 ? std::as_bytes(std::span(rows.values)) : std::as_bytes(host.values)),
        upload(inner, std::as_bytes(std::span(rows.scales)))}));
  }
  const ops::PackedWeight packed = ops::pack_weight(host, activations);
  return LinearWeight(std::make_shared<const State>(
      State{device, info, packed.shape, packed.order, packed.alpha(kernels::WordOrder::kBf16),
            packed.alpha(kernels::WordOrder::kE4m3), upload(inner, std::as_bytes(packed.bytes())),
            upload(inner, std::as_bytes(std::span(packed.block_scales)))}));
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
  state.kernel.run({state.device(), state.plan(), Internal::of(state.weight), arguments,
                    state.entries, state.stream(arguments.stream)});
}

LinearPlan plan_linear(const Device& device, const LinearWeightInfo& weight,
                       const LinearProblem& problem) {
  return ops::make_linear_plan(opened(device).info(), weight, problem);
}

}  // namespace tilewright
