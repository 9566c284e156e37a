#include "ops/linear/kernel.h"

#include "ops/linear/pack.h"
#include "ops/operator/operator.h"

#include <algorithm>
#include <cmath>

namespace tilewright::ops {

namespace {

LinearKernelList make_kernels() {
  LinearKernelList list;
  add_direct_kernels(list);
  add_band_kernels(list);
  add_wide_bf16_kernels(list);
  add_wide_spread_kernels(list);
  add_wide_e4m3_kernels(list);
  add_tensor_bf16_kernels(list);
  add_tensor_block_kernels(list);
  add_tensor_e4m3_kernels(list);
  return list;
}

}  // namespace

std::string LinearKernel::device_obstacle(const device::DeviceInfo& device,
                                          const LinearProblem&) const {
  return capability_ == 0 ? chip_obstacle(device) : capability_obstacle(capability_, device);
}

void LinearCall::launch_bytes(std::size_t index, const void* params, std::size_t bytes) const {
  entries[index].launch_bytes(dependent_launch(plan.launches[index]), params, bytes, stream);
}

std::span<const std::unique_ptr<LinearKernel>> linear_kernels() {
  static const LinearKernelList kernels = make_kernels();
  return kernels;
}

const LinearKernel* find_linear_kernel(const std::string& name) noexcept {
  for (const auto& kernel : linear_kernels())
    if (name == kernel->name()) return kernel.get();
  return nullptr;
}

bool keeps_rows(const device::DeviceInfo& device, const LinearWeightInfo& weight) noexcept {
  const bool is_e4m3_by_e4m3 =
      weight.format == NumberFormat::kFp8 && weight.activations == LinearActivations::kFp8;
  return is_blackwell(device) && (weight.format == NumberFormat::kBf16 || is_e4m3_by_e4m3);
}

kernels::PackedShape packed_shape(const LinearWeightInfo& weight) noexcept {
  return {to_kernel(weight.format), static_cast<std::int32_t>(weight.n / weight.groups),
          static_cast<std::int32_t>(weight.k)};
}

std::uint32_t resident_clusters(const device::DeviceInfo& device, std::uint32_t cluster,
                                std::uint32_t ctas_per_sm) noexcept {
  const std::uint32_t ctas = static_cast<std::uint32_t>(device.num_sms) * ctas_per_sm;
  const std::uint32_t filled = cluster <= 2 ? ctas : ctas * 10 / 11;
  return std::max(filled / cluster, 1u);
}

double step_cost_us(const StepCost& cost) noexcept {
  const double waves = std::ceil(cost.units / cost.slots);
  return cost.fixed_us +
         std::max(1e6 * cost.bytes / cost.bytes_per_s, waves * cost.steps * cost.step_us);
}

}  // namespace tilewright::ops
