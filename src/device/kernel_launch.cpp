// Launching: the checks, and the translation into the driver's terms. Nothing is formatted unless a
// check fails: launches are counted in microseconds.
#include "base/error.h"
#include "device/kernel.h"

#include <array>

namespace tilewright::device {

using abi::CUfunction_attribute;
using abi::CUresult;

namespace {

constexpr std::uint32_t kMaxGridYz = 65535;  // of every GPU so far

std::string text_of(const Dim3& dim) {
  return fmt::format("{} x {} x {}", dim.x, dim.y, dim.z);
}

std::string text_of(const LaunchConfig& config) {
  return fmt::format("grid = {}, block = {}, cluster = {}, dynamic shared memory = {} bytes{}{}",
                     text_of(config.grid), text_of(config.block),
                     config.cluster ? text_of(*config.cluster) : "none",
                     config.dynamic_shared_bytes,
                     config.is_dependent_launch ? ", dependent launch" : "",
                     config.is_cooperative ? ", cooperative" : "");
}

/// A launch in the driver's own terms.
struct DriverLaunch {
  DriverLaunch(const LaunchConfig& config, abi::CUstream stream) {
    driver_config = {
        .grid_dim_x = config.grid.x,
        .grid_dim_y = config.grid.y,
        .grid_dim_z = config.grid.z,
        .block_dim_x = config.block.x,
        .block_dim_y = config.block.y,
        .block_dim_z = config.block.z,
        .shared_mem_bytes = config.dynamic_shared_bytes,
        .stream = stream,
        .attrs = attributes.data(),
        .num_attrs = 0,
    };
    if (config.cluster) {
      add(abi::CUlaunchAttributeID::kClusterDimension).cluster_dim = {
          config.cluster->x, config.cluster->y, config.cluster->z};
    }
    if (config.is_dependent_launch) {
      add(abi::CUlaunchAttributeID::kProgrammaticStreamSerialization)
          .programmatic_stream_serialization_allowed = 1;
    }
    if (config.is_cooperative) add(abi::CUlaunchAttributeID::kCooperative).cooperative = 1;
  }
  DriverLaunch(const DriverLaunch&) = delete;  // driver_config points into it
  DriverLaunch& operator=(const DriverLaunch&) = delete;

  abi::CUlaunchAttributeValue& add(abi::CUlaunchAttributeID id) {
    abi::CUlaunchAttribute& attribute = attributes.at(driver_config.num_attrs++);
    attribute.id = id;
    return attribute.value;
  }

  std::array<abi::CUlaunchAttribute, 3> attributes{};
  abi::CUlaunchConfig driver_config{};
};

}  // namespace

void Kernel::require_cluster(const LaunchConfig& config) const {
  const std::optional<Dim3>& compiled = attributes().required_cluster;
  if (config.cluster && compiled && *config.cluster != *compiled) {
    fail(ErrorKind::kInvalidArgument,
         "kernel {}: cluster = {}, but it was compiled for {}. Leave the cluster out", name(),
         text_of(*config.cluster), text_of(*compiled));
  }
  const Dim3& grid = config.grid;
  // Without one in the launch, the driver takes the compiled one.
  const Dim3 cluster = config.cluster.value_or(compiled.value_or(Dim3{}));
  if (cluster.count() == 0 || grid.x % cluster.x != 0 || grid.y % cluster.y != 0 ||
      grid.z % cluster.z != 0) {
    fail(ErrorKind::kInvalidArgument, "kernel {}: cluster = {} does not divide grid = {}", name(),
         text_of(cluster), text_of(grid));
  }
  if (cluster.count() <= kMaxPortableCluster) return;
  if (attribute(CUfunction_attribute::kNonPortableClusterSizeAllowed) != 0) return;
  fail(ErrorKind::kInvalidArgument,
       "kernel {}: cluster = {} has {} blocks, {} are portable. Call allow_nonportable_cluster() "
       "first",
       name(), text_of(cluster), cluster.count(), kMaxPortableCluster);
}

void Kernel::require_launchable(const LaunchConfig& config) const {
  const Dim3& grid = config.grid;
  if (grid.count() == 0 || grid.x > INT32_MAX || grid.y > kMaxGridYz || grid.z > kMaxGridYz) {
    fail(ErrorKind::kInvalidArgument,
         "kernel {}: grid = {}; every extent must be at least 1, x at most 2^31 - 1, y and z at "
         "most {}",
         name(), text_of(grid), kMaxGridYz);
  }
  const auto max_threads = static_cast<std::uint64_t>(attributes().max_block_threads);
  if (config.block.count() == 0 || config.block.count() > max_threads) {
    fail(ErrorKind::kInvalidArgument,
         "kernel {}: block = {} is {} threads; this kernel can have 1 to {} ({} registers per "
         "thread)",
         name(), text_of(config.block), config.block.count(), max_threads, attributes().registers);
  }
  require_cluster(config);
  require_dynamic_shared(config.dynamic_shared_bytes);
}

void Kernel::launch_bytes(const LaunchConfig& config, const void* params, std::size_t params_bytes,
                          const Stream& stream) const {
  require(attributes().params_bytes.value_or(params_bytes) == params_bytes,
          ErrorKind::kInvalidArgument,
          "kernel {}: launched with an argument of {} bytes, compiled with one of {}. Host and "
          "device code disagree about Params; rebuild both",
          name(), params_bytes, attributes().params_bytes.value_or(0));
  const auto current = device().make_current();
  require_launchable(config);
  const DriverLaunch launch(config, stream.handle());
  void* arguments[] = {const_cast<void*>(params)};
  const CUresult result =
      device().cu().launch_kernel_ex(&launch.driver_config, handle(), arguments, nullptr);
  if (result == CUresult::kSuccess) return;
  device().raise(result, "cuLaunchKernelEx",
                 fmt::format("kernel = {}, {}", name(), text_of(config)));
}

int Kernel::max_active_clusters(LaunchConfig config) const {
  const auto current = device().make_current();
  require_launchable(config);
  config.is_dependent_launch = false;  // says nothing about what fits
  const DriverLaunch launch(config, nullptr);
  int num_clusters = 0;
  const CUresult result =
      device().cu().occupancy_max_active_clusters(&num_clusters, handle(), &launch.driver_config);
  if (result == CUresult::kSuccess) return num_clusters;
  device().raise(result, "cuOccupancyMaxActiveClusters",
                 fmt::format("kernel = {}, {}", name(), text_of(config)));
}

}  // namespace tilewright::device
