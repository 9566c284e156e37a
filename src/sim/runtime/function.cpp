// Attributes of kernels, and how many of them fit on the device.
#include "sim/runtime/answer.h"
#include "sim/runtime/launch.h"
#include "sim/runtime/registry.h"

namespace tilewright::sim::runtime {

namespace {

using Attribute = CUfunction_attribute;

int get(CUfunction function, Attribute attribute) {
  int value = 0;
  check(cuFuncGetAttribute(&value, attribute, function));
  return value;
}

std::size_t get_size(CUfunction function, Attribute attribute) {
  return static_cast<std::size_t>(get(function, attribute));
}

bool is_settable(Attribute attribute) {
  return attribute >= Attribute::kMaxDynamicSharedSizeBytes &&
         attribute <= Attribute::kClusterSchedulingPolicyPreference;
}

}  // namespace

extern "C" {

cudaError cudaFuncGetAttributes(cudaFuncAttributes* out, const void* function) {
  return in_context([&] {
    expect(out != nullptr);
    const CUfunction f = find_kernel(function);
    *out = {
        .shared_size_bytes = get_size(f, Attribute::kSharedSizeBytes),
        .const_size_bytes = get_size(f, Attribute::kConstSizeBytes),
        .local_size_bytes = get_size(f, Attribute::kLocalSizeBytes),
        .max_threads_per_block = get(f, Attribute::kMaxThreadsPerBlock),
        .num_regs = get(f, Attribute::kNumRegs),
        .ptx_version = get(f, Attribute::kPtxVersion),
        .binary_version = get(f, Attribute::kBinaryVersion),
        .cache_mode_ca = get(f, Attribute::kCacheModeCa),
        .max_dynamic_shared_size_bytes = get(f, Attribute::kMaxDynamicSharedSizeBytes),
        .preferred_shmem_carveout = get(f, Attribute::kPreferredSharedMemoryCarveout),
        .cluster_dim_must_be_set = get(f, Attribute::kClusterSizeMustBeSet),
        .required_cluster_width = get(f, Attribute::kRequiredClusterWidth),
        .required_cluster_height = get(f, Attribute::kRequiredClusterHeight),
        .required_cluster_depth = get(f, Attribute::kRequiredClusterDepth),
        .cluster_scheduling_policy_preference =
            get(f, Attribute::kClusterSchedulingPolicyPreference),
        .non_portable_cluster_size_allowed = get(f, Attribute::kNonPortableClusterSizeAllowed),
        .reserved = {},
    };
  });
}

cudaError cudaFuncSetAttribute(const void* function, Attribute attribute, int value) {
  return in_context([&] {
    const CUfunction kernel = find_kernel(function);
    expect(is_settable(attribute));
    check(cuFuncSetAttribute(kernel, attribute, value));
  });
}

cudaError cudaFuncSetCacheConfig(const void* function, CUfunc_cache config) {
  return in_context([&] { check(cuFuncSetCacheConfig(find_kernel(function), config)); });
}

cudaError cudaFuncSetSharedMemConfig(const void* function, CUsharedconfig config) {
  return in_context([&] { check(cuFuncSetSharedMemConfig(find_kernel(function), config)); });
}

cudaError cudaFuncGetName(const char** out, const void* function) {
  return in_context([&] { check(cuFuncGetName(out, find_kernel(function))); });
}

cudaError cudaFuncGetParamInfo(const void* function, std::size_t index, std::size_t* offset,
                               std::size_t* bytes) {
  return in_context(
      [&] { check(cuFuncGetParamInfo(find_kernel(function), index, offset, bytes)); });
}

cudaError cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* out, const void* function,
                                                                 int block_threads,
                                                                 std::size_t shared_bytes,
                                                                 unsigned flags) {
  return in_context([&] {
    check(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(out, find_kernel(function),
                                                               block_threads, shared_bytes, flags));
  });
}

cudaError cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* out, const void* function,
                                                        int block_threads,
                                                        std::size_t shared_bytes) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(out, function, block_threads,
                                                                shared_bytes, 0);
}

cudaError cudaOccupancyAvailableDynamicSMemPerBlock(std::size_t* out, const void* function,
                                                    int num_blocks, int block_threads) {
  return in_context([&] {
    check(cuOccupancyAvailableDynamicSMemPerBlock(out, find_kernel(function), num_blocks,
                                                  block_threads));
  });
}

cudaError cudaOccupancyMaxActiveClusters(int* out, const void* function,
                                         const cudaLaunchConfig* config) {
  return in_context([&] {
    expect(config != nullptr);
    const CUlaunchConfig converted = driver_config(*config);
    check(cuOccupancyMaxActiveClusters(out, find_kernel(function), &converted));
  });
}

cudaError cudaOccupancyMaxPotentialClusterSize(int* out, const void* function,
                                               const cudaLaunchConfig* config) {
  return in_context([&] {
    expect(config != nullptr);
    const CUlaunchConfig converted = driver_config(*config);
    check(cuOccupancyMaxPotentialClusterSize(out, find_kernel(function), &converted));
  });
}

}  // extern "C"

}  // namespace tilewright::sim::runtime
