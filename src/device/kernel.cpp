#include "device/kernel.h"

#include "base/error.h"

#include <algorithm>
#include <atomic>

namespace tilewright::device {

using abi::CUfunction;
using abi::CUfunction_attribute;
using abi::CUresult;

struct Kernel::State {
  std::shared_ptr<const LoadedModule> module;  // keeps the function alive
  std::string name;
  CUfunction function = nullptr;
  KernelAttributes attributes;
  /// What the driver allowed when last asked: spares asking at every launch.
  mutable std::atomic<std::uint32_t> allowed_shared_bytes = 0;
};

namespace {

int read_attribute(const Device& device, CUfunction function, CUfunction_attribute attribute) {
  int value = 0;
  device.check(device.cu().func_get_attribute(&value, attribute, function), "cuFuncGetAttribute",
               "attribute = {}", static_cast<int>(attribute));
  return value;
}

std::optional<Dim3> read_required_cluster(const Device& device, CUfunction function) {
  using Attribute = CUfunction_attribute;
  const auto read = [&](Attribute attribute) {
    return static_cast<std::uint32_t>(read_attribute(device, function, attribute));
  };
  const Dim3 cluster = {read(Attribute::kRequiredClusterWidth),
                        read(Attribute::kRequiredClusterHeight),
                        read(Attribute::kRequiredClusterDepth)};
  return cluster.count() == 0 ? std::nullopt : std::optional(cluster);
}

/// Size of the first parameter, which is to be the only one; nothing if the driver cannot tell.
/// Whether there is a second one could only be learnt by provoking an error, which
/// compute-sanitizer reports.
std::optional<std::size_t> read_params_bytes(const Device& device, CUfunction function,
                                             const std::string& name) {
  const auto param_info = device.cu().func_get_param_info;
  if (param_info == nullptr) return std::nullopt;
  std::size_t offset_bytes = 0;
  std::size_t size_bytes = 0;
  const CUresult result = param_info(function, 0, &offset_bytes, &size_bytes);
  require(result != CUresult::kInvalidValue, ErrorKind::kInvalidArgument,
          "kernel {}: it takes no argument; kernels of Tilewright take exactly one, `const "
          "__grid_constant__ Params`",
          name);
  device.check(result, "cuFuncGetParamInfo", "kernel = {}", name);
  return size_bytes;
}

KernelAttributes read_attributes(const Device& device, CUfunction function,
                                 const std::string& name) {
  using Attribute = CUfunction_attribute;
  const auto read = [&](Attribute attribute) {
    return read_attribute(device, function, attribute);
  };
  return {
      .registers = read(Attribute::kNumRegs),
      .local_bytes = read(Attribute::kLocalSizeBytes),
      .static_shared_bytes = read(Attribute::kSharedSizeBytes),
      .const_bytes = read(Attribute::kConstSizeBytes),
      .max_block_threads = read(Attribute::kMaxThreadsPerBlock),
      .ptx_version = read(Attribute::kPtxVersion),
      .binary_version = read(Attribute::kBinaryVersion),
      .required_cluster = read_required_cluster(device, function),
      .params_bytes = read_params_bytes(device, function, name),
  };
}

}  // namespace

Kernel Kernel::find(const std::shared_ptr<const LoadedModule>& module,
                    const std::string& module_name, const std::string& name) {
  const Device& device = module->device();
  const auto current = device.make_current();
  CUfunction function = nullptr;
  device.check(device.cu().module_get_function(&function, module->get(), name.c_str()),
               "cuModuleGetFunction", "kernel = {}, module = {}", name, module_name);
  const auto state = std::make_shared<State>();
  state->module = module;
  state->name = name;
  state->function = function;
  state->attributes = read_attributes(device, function, name);
  return Kernel(state);
}

const std::string& Kernel::name() const noexcept {
  return state_->name;
}
const KernelAttributes& Kernel::attributes() const noexcept {
  return state_->attributes;
}
const Device& Kernel::device() const noexcept {
  return state_->module->device();
}
CUfunction Kernel::handle() const noexcept {
  return state_->function;
}

int Kernel::attribute(CUfunction_attribute attribute) const {
  const auto current = device().make_current();
  return read_attribute(device(), handle(), attribute);
}

void Kernel::allow_dynamic_shared_bytes(std::uint32_t bytes) const {
  const int limit = device().info().shared_per_block_optin_bytes - attributes().static_shared_bytes;
  require(
      bytes <= static_cast<std::uint32_t>(std::max(limit, 0)), ErrorKind::kInvalidArgument,
      "kernel {}: {} bytes of dynamic shared memory and {} static ones exceed the {} bytes that "
      "a block may have on {}. Use smaller tiles or fewer stages",
      name(), bytes, attributes().static_shared_bytes, device().info().shared_per_block_optin_bytes,
      device().label());
  // The limit is the function's, and operators share it: one must not lower what another needs.
  const int allowed = attribute(CUfunction_attribute::kMaxDynamicSharedSizeBytes);
  if (bytes <= static_cast<std::uint32_t>(std::max(allowed, 0))) return;
  const auto current = device().make_current();
  device().check(
      device().cu().func_set_attribute(handle(), CUfunction_attribute::kMaxDynamicSharedSizeBytes,
                                       static_cast<int>(bytes)),
      "cuFuncSetAttribute", "kernel = {}, dynamic shared memory = {} bytes", name(), bytes);
}

void Kernel::allow_nonportable_cluster() const {
  const auto current = device().make_current();
  device().check(device().cu().func_set_attribute(
                     handle(), CUfunction_attribute::kNonPortableClusterSizeAllowed, 1),
                 "cuFuncSetAttribute", "kernel = {}, clusters of more than 8 blocks", name());
}

void Kernel::require_dynamic_shared(std::uint32_t bytes) const {
  if (bytes <= state_->allowed_shared_bytes.load(std::memory_order_relaxed)) return;
  const auto allowed =
      static_cast<std::uint32_t>(attribute(CUfunction_attribute::kMaxDynamicSharedSizeBytes));
  state_->allowed_shared_bytes.store(allowed, std::memory_order_relaxed);
  if (bytes <= allowed) return;
  fail(ErrorKind::kInvalidArgument,
       "kernel {}: launched with {} bytes of dynamic shared memory, {} are allowed. Call "
       "allow_dynamic_shared_bytes({}) first",
       name(), bytes, allowed, bytes);
}

int Kernel::max_active_blocks_per_sm(std::uint32_t block_threads,
                                     std::uint32_t dynamic_shared_bytes) const {
  const auto current = device().make_current();
  int num_blocks = 0;
  device().check(device().cu().occupancy_max_active_blocks_per_sm(
                     &num_blocks, handle(), static_cast<int>(block_threads), dynamic_shared_bytes),
                 "cuOccupancyMaxActiveBlocksPerMultiprocessor",
                 "kernel = {}, block = {} threads, dynamic shared memory = {} bytes", name(),
                 block_threads, dynamic_shared_bytes);
  return num_blocks;
}

}  // namespace tilewright::device
