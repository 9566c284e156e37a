// One way to compute a linear layer: when it fits, what it launches, and launching it.
#pragma once

#include "tilewright/linear.h"

#include "device/kernel.h"
#include "ops/linear/source.h"
#include "ops/linear/weight.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace tilewright::ops {

/// What a launch needs: the plan, its loaded kernels, the weight and the addresses. Of a kernel
/// that takes no groups all but the weight are a group's.
struct LinearCall {
  const device::Device& device;
  const LinearPlan& plan;
  const StateOf<LinearWeight>& weight;
  const LinearArguments& arguments;
  std::span<const device::Kernel> entries;  ///< one for each launch of the plan
  const device::Stream& stream;
  std::int64_t group = 0;

  template <class T>
  const T* bricks() const {
    return weight.pointer_to<T>(weight.bricks, group);
  }
  template <class T = float>
  const T* block_scales() const {
    return weight.pointer_to<T>(weight.block_scales, group);
  }
  template <class Params>
  void launch(std::size_t index, const Params& params) const {
    launch_bytes(index, &params, sizeof params);
  }
  void launch_bytes(std::size_t index, const void* params, std::size_t bytes) const;
};

/// A candidate: a kernel with its tiles. Adding one is a row in linear_kernels().
class LinearKernel {
 public:
  /// `capability`: of the only devices that it is for, 90 or 100; 0: of both.
  LinearKernel(std::string name, std::string idea, int capability = 0)
      : name_(std::move(name)), idea_(std::move(idea)), capability_(capability) {}
  virtual ~LinearKernel() = default;

  const std::string& name() const noexcept { return name_; }
  const std::string& idea() const noexcept { return idea_; }

  /// Whether it reads weights as keeps_rows() has them, and not packed ones.
  virtual bool reads_rows() const { return false; }
  /// Whether a launch computes all groups of such a weight; if not, there are launches for each.
  virtual bool takes_groups(NumberFormat) const { return false; }
  /// Whether it reads weights prepared for block-scaled activations, and no others.
  virtual bool is_block_scaled() const { return false; }
  /// Why it cannot do a complete problem on any device; empty if it can.
  virtual std::string obstacle(const LinearWeightInfo& weight, const LinearProblem& p) const = 0;
  /// Why not on this device.
  virtual std::string device_obstacle(const device::DeviceInfo& device,
                                      const LinearProblem& p) const;
  /// Launches and workspace of a plan whose weight and problem are set; m > 0.
  virtual void lay_out(const device::DeviceInfo& device, LinearPlan& plan) const = 0;
  virtual void run(const LinearCall& call) const = 0;
  /// Microseconds where no rate was measured, from the time of a step; only its order means
  /// something.
  virtual double model_us(const device::DeviceInfo& device, const LinearWeightInfo& weight,
                          const LinearProblem& p) const = 0;

 private:
  std::string name_, idea_;
  int capability_;
};

/// All of them. Ties in cost go to the first.
std::span<const std::unique_ptr<LinearKernel>> linear_kernels();

/// nullptr if there is none of that name.
const LinearKernel* find_linear_kernel(const std::string& name) noexcept;

using LinearKernelList = std::vector<std::unique_ptr<LinearKernel>>;
void add_direct_kernels(LinearKernelList& list);
void add_band_kernels(LinearKernelList& list);
void add_wide_bf16_kernels(LinearKernelList& list);
void add_wide_spread_kernels(LinearKernelList& list);
void add_wide_e4m3_kernels(LinearKernelList& list);
void add_tensor_bf16_kernels(LinearKernelList& list);
void add_tensor_block_kernels(LinearKernelList& list);
void add_tensor_e4m3_kernels(LinearKernelList& list);

/// Whether a device keeps such weights as rows, and not packed: bf16, and fp8 for fp8 activations,
/// on Blackwell, where the tensor cores take them as they are.
bool keeps_rows(const device::DeviceInfo& device, const LinearWeightInfo& weight) noexcept;

/// A weight as the kernels that are block-scaled read it: rows, and scales in tiles.
/// Errors   InvalidArgument if a scale of kFp8 is no power of two
StateOf<LinearWeight> prepare_scaled_rows(const Device& device, const HostWeight& weight);

/// How a group of a weight is packed.
kernels::PackedShape packed_shape(const LinearWeightInfo& weight) noexcept;

/// Clusters of that many CTAs that are on the device at once. Clusters of 4 and 8 do not fill the
/// GPCs of a Hopper GPU: an H200 holds 30 and 15 of them, 62 and 30 with two CTAs to a
/// SM.
std::uint32_t resident_clusters(const device::DeviceInfo& device, std::uint32_t cluster,
                                std::uint32_t ctas_per_sm = 1) noexcept;

/// Work that is dealt to slots in units of so many equal steps.
struct StepCost {
  double bytes = 0;             ///< of the whole problem: memory is a limit as well
  double bytes_per_s = 4.3e12;  ///< an H200 copies that fast
  double units = 1, slots = 1, steps = 1;
  double step_us = 0, fixed_us = 3;
};
double step_cost_us(const StepCost& cost) noexcept;

}  // namespace tilewright::ops
