#include "sim/driver/abi/functions.h"
#include "sim/driver/objects/module.h"

#include <algorithm>

namespace tilewright::sim {

namespace {

using FunctionAttribute = abi::CUfunction_attribute;

constexpr std::uint32_t kMaxThreads = 1024;
constexpr std::uint32_t kWarpThreads = 32;
constexpr std::uint32_t kRegisterUnit = 256;  // registers are given to warps in units of so many

std::uint32_t product(const std::uint32_t (&extents)[3]) {
  return extents[0] * std::max(1u, extents[1]) * std::max(1u, extents[2]);
}

bool has_cluster(const FunctionObject& function) {
  return function.info.bounds.required_cluster[0] != 0;
}

}  // namespace

std::uint32_t FunctionObject::max_threads() const {
  std::uint32_t limit = kMaxThreads;
  if (info.bounds.max_threads[0] != 0) limit = std::min(limit, product(info.bounds.max_threads));
  if (info.bounds.required_threads[0] != 0) {
    limit = std::min(limit, product(info.bounds.required_threads));
  }
  const std::uint32_t per_warp =
      (info.num_registers * kWarpThreads + kRegisterUnit - 1) / kRegisterUnit * kRegisterUnit;
  if (per_warp == 0) return limit;
  constexpr std::uint32_t kParts = 4;  // of an SM: each must have room for a quarter of the warps
  return std::min(limit, model().registers_per_sm / kParts / per_warp * kParts * kWarpThreads);
}

int get_attribute(const FunctionObject& function, FunctionAttribute attribute) {
  const KernelInfo& info = function.info;
  switch (attribute) {
    case FunctionAttribute::kMaxThreadsPerBlock:
      return static_cast<int>(function.max_threads());
    case FunctionAttribute::kSharedSizeBytes:
      return static_cast<int>(info.static_shared_bytes);
    case FunctionAttribute::kConstSizeBytes:
      return static_cast<int>(info.const_bytes);
    case FunctionAttribute::kLocalSizeBytes:
      return static_cast<int>(info.local_bytes);
    case FunctionAttribute::kNumRegs:
      return static_cast<int>(info.num_registers);
    case FunctionAttribute::kPtxVersion:
      return function.module->loaded->syntax().target;
    case FunctionAttribute::kBinaryVersion:
      return function.model().compute_capability;
    case FunctionAttribute::kCacheModeCa:
      return 0;
    case FunctionAttribute::kMaxDynamicSharedSizeBytes:
      return static_cast<int>(function.max_dynamic_shared_bytes);
    case FunctionAttribute::kPreferredSharedMemoryCarveout:
      return function.carveout;
    case FunctionAttribute::kClusterSizeMustBeSet:
      return info.bounds.is_explicit_cluster && !has_cluster(function) ? 1 : 0;
    case FunctionAttribute::kRequiredClusterWidth:
      return function.cluster[0];
    case FunctionAttribute::kRequiredClusterHeight:
      return function.cluster[1];
    case FunctionAttribute::kRequiredClusterDepth:
      return function.cluster[2];
    case FunctionAttribute::kNonPortableClusterSizeAllowed:
      return function.is_nonportable_cluster_allowed ? 1 : 0;
    case FunctionAttribute::kClusterSchedulingPolicyPreference:
      return function.cluster_policy;
  }
  refuse(CUresult::kInvalidValue);
}

void set_attribute(FunctionObject& function, FunctionAttribute attribute, int value) {
  const auto set_cluster = [&](int dimension) {
    expect(!has_cluster(function) && value >= 0);
    function.cluster[dimension] = value;
  };
  switch (attribute) {
    case FunctionAttribute::kMaxDynamicSharedSizeBytes: {
      const std::uint32_t limit = function.model().shared_bytes_per_cta_optin;
      const std::uint32_t used = function.info.static_shared_bytes;
      expect(value >= 0 && used <= limit && static_cast<std::uint32_t>(value) <= limit - used);
      function.max_dynamic_shared_bytes = static_cast<std::uint32_t>(value);
      return;
    }
    case FunctionAttribute::kPreferredSharedMemoryCarveout:
      expect(value >= -1 && value <= 100);
      function.carveout = value;
      return;
    case FunctionAttribute::kRequiredClusterWidth:
      return set_cluster(0);
    case FunctionAttribute::kRequiredClusterHeight:
      return set_cluster(1);
    case FunctionAttribute::kRequiredClusterDepth:
      return set_cluster(2);
    case FunctionAttribute::kNonPortableClusterSizeAllowed:
      expect(value == 0 || value == 1);
      function.is_nonportable_cluster_allowed = value != 0;
      return;
    case FunctionAttribute::kClusterSchedulingPolicyPreference:
      expect(value >= 0 && value <= 2);
      function.cluster_policy = value;
      return;
    default:
      refuse(CUresult::kInvalidValue);
  }
}

namespace abi {

CUresult cuFuncGetAttribute(int* out, CUfunction_attribute attribute, CUfunction handle) {
  return call([&] {
    expect(out != nullptr);
    *out = get_attribute(*find_function(handle), attribute);
  });
}

CUresult cuFuncSetAttribute(CUfunction handle, CUfunction_attribute attribute, int value) {
  return call([&] { set_attribute(*find_function(handle), attribute, value); });
}

CUresult cuFuncSetCacheConfig(CUfunction handle, CUfunc_cache config) {
  return call([&] {
    find_function(handle);
    expect(config >= CUfunc_cache::kNone && config <= CUfunc_cache::kEqual);
  });
}

CUresult cuFuncSetSharedMemConfig(CUfunction handle, CUsharedconfig) {
  return call([&] { find_function(handle); });
}

CUresult cuFuncGetModule(CUmodule* out, CUfunction handle) {
  return call([&] {
    expect(out != nullptr);
    *out = Registry<CUmodule, ModuleObject>::handle_of(find_function(handle)->module);
  });
}

CUresult cuFuncGetName(const char** out, CUfunction handle) {
  return call([&] {
    expect(out != nullptr);
    *out = find_function(handle)->info.name.c_str();
  });
}

CUresult cuFuncGetParamInfo(CUfunction handle, size_t index, size_t* offset, size_t* bytes) {
  return call([&] {
    expect(offset != nullptr);
    const std::shared_ptr<FunctionObject> function = find_function(handle);
    expect(index < function->info.params.size());
    *offset = function->info.params[index].offset_bytes;
    if (bytes != nullptr) *bytes = function->info.params[index].size_bytes;
  });
}

CUresult cuFuncIsLoaded(CUfunctionLoadingState* out, CUfunction handle) {
  return call([&] {
    expect(out != nullptr);
    find_function(handle);
    *out = CUfunctionLoadingState::kLoaded;
  });
}

CUresult cuFuncLoad(CUfunction handle) {
  return call([&] { find_function(handle); });
}

}  // namespace abi
}  // namespace tilewright::sim
