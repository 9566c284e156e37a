#include "sim/driver/module/occupancy.h"

#include "sim/driver/abi/functions.h"

#include <algorithm>
#include <bit>

namespace tilewright::sim {

namespace {

/// Clusters stay within a group of SMs (a GPC); their number per group differs from
/// chip to chip as some are fused off. Taken as evenly spread. Devices made smaller have fewer.
constexpr std::uint32_t kMostGroups = 8;
constexpr std::uint32_t kSmsPerGroup = 18;
constexpr std::uint32_t kThreadsOfWarp = 32;

std::uint64_t num_clusters(const DeviceModel& model, std::uint64_t ctas_per_sm,
                           std::uint64_t cluster_ctas) {
  const std::uint32_t num_groups =
      std::min(kMostGroups, (model.num_sms + kSmsPerGroup - 1) / kSmsPerGroup);
  std::uint64_t sum = 0;
  for (std::uint32_t group = 0; group < num_groups; ++group) {
    const std::uint32_t num_sms =
        model.num_sms / num_groups + (group < model.num_sms % num_groups ? 1 : 0);
    sum += num_sms * ctas_per_sm / cluster_ctas;
  }
  return sum;
}

/// A launch configuration's threads. Errors   Failure: CUDA_ERROR_INVALID_VALUE
std::uint32_t threads_of(const abi::CUlaunchConfig& config) {
  const std::uint64_t threads =
      Dim3{config.block_dim_x, config.block_dim_y, config.block_dim_z}.count();
  expect(threads >= 1 && threads <= 1024);
  return static_cast<std::uint32_t>(threads);
}

std::uint64_t cluster_ctas_of(const FunctionObject& function, const abi::CUlaunchConfig& config) {
  std::uint64_t ctas = 1;
  if (function.cluster[0] > 0) {
    ctas = static_cast<std::uint64_t>(function.cluster[0]) *
           static_cast<std::uint64_t>(std::max(1, function.cluster[1])) *
           static_cast<std::uint64_t>(std::max(1, function.cluster[2]));
  }
  for (unsigned i = 0; i < config.num_attrs; ++i) {
    const abi::CUlaunchAttribute& attribute = config.attrs[i];
    if (attribute.id != abi::CUlaunchAttributeID::kClusterDimension) continue;
    const abi::CUlaunchDim& dim = attribute.value.cluster_dim;
    ctas = Dim3{dim.x, dim.y, dim.z}.count();
  }
  return ctas;
}

struct BlockSize {
  int num_blocks = 0;
  int threads = 0;
};

/// The block size that keeps the most threads resident; the largest of equals.
BlockSize best_block_size(const FunctionObject& function, abi::CUoccupancyB2DSize shared_of,
                          std::size_t shared_bytes, int limit) {
  const int most = static_cast<int>(function.max_threads());
  const int largest = limit > 0 ? std::min(limit, most) : most;
  constexpr int kWarp = static_cast<int>(kThreadsOfWarp);
  BlockSize best;
  int best_resident = 0;
  // From the largest down, in whole warps, after a limit that may be no multiple of one.
  for (int threads = largest; threads > 0; threads = (threads - 1) / kWarp * kWarp) {
    const std::size_t shared = shared_of != nullptr ? shared_of(threads) : shared_bytes;
    const auto ctas = static_cast<int>(max_ctas_per_sm(
        function, static_cast<std::uint32_t>(threads), static_cast<std::uint32_t>(shared)));
    if (ctas * threads <= best_resident) continue;
    best_resident = ctas * threads;
    best = {.num_blocks = ctas * static_cast<int>(function.model().num_sms), .threads = threads};
  }
  return best;
}

}  // namespace

std::uint32_t max_ctas_per_sm(const FunctionObject& function, std::uint32_t threads,
                              std::uint32_t dynamic_shared_bytes) {
  return function.machine().max_active_ctas_per_sm(function.info, threads, dynamic_shared_bytes);
}

namespace abi {

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* out, CUfunction handle,
                                                              int threads, size_t shared_bytes,
                                                              unsigned flags) {
  return call_in_usable_context([&](Context&) {
    expect(out != nullptr && threads > 0 && flags <= 1);
    const std::shared_ptr<FunctionObject> function = find_function(handle);
    const bool fits = static_cast<std::uint32_t>(threads) <= function->max_threads() &&
                      shared_bytes <= function->model().shared_bytes_per_cta_optin;
    *out = fits ? static_cast<int>(max_ctas_per_sm(*function, static_cast<std::uint32_t>(threads),
                                                   static_cast<std::uint32_t>(shared_bytes)))
                : 0;
  });
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* out, CUfunction handle, int threads,
                                                     size_t shared_bytes) {
  return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(out, handle, threads, shared_bytes,
                                                              0);
}

CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int* num_blocks, int* threads, CUfunction handle,
                                                   CUoccupancyB2DSize shared_of,
                                                   size_t shared_bytes, int limit, unsigned flags) {
  return call_in_usable_context([&](Context&) {
    expect(num_blocks != nullptr && threads != nullptr && limit >= 0 && flags <= 1);
    const BlockSize best = best_block_size(*find_function(handle), shared_of, shared_bytes, limit);
    *num_blocks = best.num_blocks;
    *threads = best.threads;
  });
}

CUresult cuOccupancyMaxPotentialBlockSize(int* num_blocks, int* threads, CUfunction handle,
                                          CUoccupancyB2DSize shared_of, size_t shared_bytes,
                                          int limit) {
  return cuOccupancyMaxPotentialBlockSizeWithFlags(num_blocks, threads, handle, shared_of,
                                                   shared_bytes, limit, 0);
}

CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t* out, CUfunction handle, int num_blocks,
                                                 int threads) {
  return call_in_usable_context([&](Context&) {
    expect(out != nullptr && num_blocks > 0 && threads > 0);
    const std::shared_ptr<FunctionObject> function = find_function(handle);
    const DeviceModel& model = function->model();
    const std::uint64_t share = model.shared_bytes_per_sm / static_cast<unsigned>(num_blocks);
    const std::uint64_t taken =
        model.reserved_shared_bytes_per_cta + function->info.static_shared_bytes;
    const std::uint64_t most = model.shared_bytes_per_cta_optin;
    const std::uint64_t rest = share > taken ? share - taken : 0;
    *out = std::min(rest, most - std::min<std::uint64_t>(most, function->info.static_shared_bytes));
  });
}

CUresult cuOccupancyMaxActiveClusters(int* out, CUfunction handle, const CUlaunchConfig* config) {
  return call_in_usable_context([&](Context&) {
    expect(out != nullptr && config != nullptr);
    const std::shared_ptr<FunctionObject> function = find_function(handle);
    const std::uint64_t ctas = cluster_ctas_of(*function, *config);
    const std::uint32_t limit = function->is_nonportable_cluster_allowed
                                    ? function->model().max_cluster_optin
                                    : function->model().max_cluster;
    expect(ctas >= 1 && ctas <= limit, CUresult::kInvalidClusterSize);
    expect(config->shared_mem_bytes <= function->max_dynamic_shared_bytes);
    const std::uint32_t per_sm =
        max_ctas_per_sm(*function, threads_of(*config), config->shared_mem_bytes);
    *out = static_cast<int>(num_clusters(function->model(), per_sm, ctas));
  });
}

CUresult cuOccupancyMaxPotentialClusterSize(int* out, CUfunction handle,
                                            const CUlaunchConfig* config) {
  return call_in_usable_context([&](Context&) {
    expect(out != nullptr && config != nullptr);
    const std::shared_ptr<FunctionObject> function = find_function(handle);
    const std::uint32_t per_sm =
        max_ctas_per_sm(*function, threads_of(*config), config->shared_mem_bytes);
    std::uint32_t size = function->is_nonportable_cluster_allowed
                             ? function->model().max_cluster_optin
                             : function->model().max_cluster;
    while (size > 1 && num_clusters(function->model(), per_sm, size) == 0) size /= 2;
    *out = static_cast<int>(per_sm == 0 ? 0 : std::bit_floor(size));
  });
}

}  // namespace abi
}  // namespace tilewright::sim
