// Kernel launches: what <<<>>> becomes, and the calls that programs make themselves.
#include "sim/runtime/launch.h"

#include "sim/runtime/answer.h"
#include "sim/runtime/registry.h"

#include <vector>

namespace tilewright::sim::runtime {

namespace {

constexpr unsigned kMaxGridX = 0x7fffffff;
constexpr unsigned kMaxGridYz = 65535;
constexpr unsigned kMaxBlockXy = 1024;
constexpr unsigned kMaxBlockZ = 64;

/// What stood between <<< and >>>, between the caller and the stub that takes it.
struct Configuration {
  dim3 grid, block;
  std::size_t shared_bytes;
  CUstream stream;
};
thread_local std::vector<Configuration> configurations;

bool is_in(unsigned value, unsigned limit) {
  return value >= 1 && value <= limit;
}

/// Shapes that no device takes have an error of their own in the runtime.
void require_shape(const dim3& grid, const dim3& block) {
  const bool is_grid =
      is_in(grid.x, kMaxGridX) && is_in(grid.y, kMaxGridYz) && is_in(grid.z, kMaxGridYz);
  const bool is_block =
      is_in(block.x, kMaxBlockXy) && is_in(block.y, kMaxBlockXy) && is_in(block.z, kMaxBlockZ);
  expect(is_grid && is_block, cudaError::kInvalidConfiguration);
  expect(std::uint64_t{block.x} * block.y * block.z <= kMaxBlockXy,
         cudaError::kInvalidConfiguration);
}

cudaError launch(const cudaLaunchConfig& config, const void* function, void** arguments) {
  return in_context([&] {
    const CUfunction kernel = find_kernel(function);
    require_shape(config.grid_dim, config.block_dim);
    const CUlaunchConfig converted = driver_config(config);
    check(cuLaunchKernelEx(&converted, kernel, arguments, nullptr));
  });
}

cudaLaunchConfig plain(const dim3& grid, const dim3& block, std::size_t shared_bytes,
                       CUstream stream) {
  return {grid, block, shared_bytes, stream, nullptr, 0};
}

}  // namespace

CUlaunchConfig driver_config(const cudaLaunchConfig& c) {
  expect(c.dynamic_smem_bytes <= 0xffffffff);
  return {.grid_dim_x = c.grid_dim.x,
          .grid_dim_y = c.grid_dim.y,
          .grid_dim_z = c.grid_dim.z,
          .block_dim_x = c.block_dim.x,
          .block_dim_y = c.block_dim.y,
          .block_dim_z = c.block_dim.z,
          .shared_mem_bytes = static_cast<unsigned>(c.dynamic_smem_bytes),
          .stream = c.stream,
          .attrs = c.attrs,
          .num_attrs = c.num_attrs};
}

extern "C" {

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, std::size_t shared_bytes,
                                     CUstream stream) {
  configurations.push_back({grid, block, shared_bytes, stream});
  return 0;
}

cudaError __cudaPopCallConfiguration(dim3* grid, dim3* block, std::size_t* shared_bytes,
                                     void* stream) {
  return answer([&] {
    expect(!configurations.empty(), cudaError::kMissingConfiguration);
    const Configuration top = configurations.back();
    configurations.pop_back();
    *grid = top.grid;
    *block = top.block;
    *shared_bytes = top.shared_bytes;
    *static_cast<CUstream*>(stream) = top.stream;
  });
}

cudaError __cudaLaunchKernel(CUkernel kernel, dim3 grid, dim3 block, void** arguments,
                             std::size_t shared_bytes, CUstream stream) {
  return launch(plain(grid, block, shared_bytes, stream), kernel, arguments);
}

cudaError cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** arguments,
                           std::size_t shared_bytes, CUstream stream) {
  return launch(plain(grid, block, shared_bytes, stream), function, arguments);
}

cudaError cudaLaunchCooperativeKernel(const void* function, dim3 grid, dim3 block, void** arguments,
                                      std::size_t shared_bytes, CUstream stream) {
  CUlaunchAttribute cooperative{};
  cooperative.id = CUlaunchAttributeID::kCooperative;
  cooperative.value.cooperative = 1;
  cudaLaunchConfig config = plain(grid, block, shared_bytes, stream);
  config.attrs = &cooperative;
  config.num_attrs = 1;
  return launch(config, function, arguments);
}

cudaError cudaLaunchKernelExC(const cudaLaunchConfig* config, const void* function,
                              void** arguments) {
  if (config == nullptr) return remember(cudaError::kInvalidValue);
  return launch(*config, function, arguments);
}

}  // extern "C"

}  // namespace tilewright::sim::runtime
