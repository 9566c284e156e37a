// Kernel launches: everything that the driver checks before a kernel runs.
#include "base/error.h"
#include "sim/driver/abi/functions.h"
#include "sim/driver/module/occupancy.h"
#include "sim/driver/objects/graph.h"
#include "sim/driver/objects/module.h"
#include "sim/driver/objects/stream.h"

#include <cstring>
#include <limits>

namespace tilewright::sim {

namespace {

using Id = abi::CUlaunchAttributeID;

constexpr std::uint32_t kMaxGridX = std::numeric_limits<std::int32_t>::max();
constexpr std::uint32_t kMaxGridYz = 65535;
constexpr std::uint32_t kMaxBlockXy = 1024;
constexpr std::uint32_t kMaxBlockZ = 64;

/// The parameters from one buffer of the caller, as `extra` describes it.
std::vector<std::byte> params_from_buffer(const KernelInfo& info, void** extra) {
  const void* buffer = nullptr;
  std::size_t size = 0;
  for (std::size_t i = 0; reinterpret_cast<std::uintptr_t>(extra[i]) != abi::kLaunchParamEnd;
       i += 2) {
    const auto key = reinterpret_cast<std::uintptr_t>(extra[i]);
    if (key == abi::kLaunchParamBufferPointer) {
      buffer = extra[i + 1];
    } else if (key == abi::kLaunchParamBufferSize) {
      size = *static_cast<const std::size_t*>(extra[i + 1]);
    } else {
      refuse(CUresult::kInvalidValue);
    }
  }
  // The buffer may leave out the padding behind the last parameter, and may be too long.
  const std::size_t needed =
      info.params.empty() ? 0 : info.params.back().offset_bytes + info.params.back().size_bytes;
  expect(size >= needed && (buffer != nullptr || needed == 0));
  std::vector<std::byte> params(std::max<std::size_t>(info.param_bytes, needed));
  if (needed > 0) std::memcpy(params.data(), buffer, needed);
  return params;
}

std::vector<std::byte> params_of(const KernelInfo& info, void** arguments, void** extra) {
  expect(arguments == nullptr || extra == nullptr);
  if (extra != nullptr) return params_from_buffer(info, extra);
  expect(arguments != nullptr || info.params.empty());
  std::vector<std::byte> params(info.param_bytes);
  for (std::size_t i = 0; i < info.params.size(); ++i) {
    const ParamInfo& param = info.params[i];
    expect(arguments[i] != nullptr);
    std::memcpy(params.data() + param.offset_bytes, arguments[i], param.size_bytes);
  }
  return params;
}

/// The cluster of the launch, or the one the kernel was compiled for, or one CTA.
Dim3 cluster_of(const FunctionObject& function, const KernelWork& work) {
  const auto asked = work.attributes.find(Id::kClusterDimension);
  const bool is_compiled = function.cluster[0] > 0;
  const Dim3 compiled = {static_cast<std::uint32_t>(function.cluster[0]),
                         static_cast<std::uint32_t>(std::max(1, function.cluster[1])),
                         static_cast<std::uint32_t>(std::max(1, function.cluster[2]))};
  if (asked == work.attributes.end() || asked->second.cluster_dim.x == 0) {
    return is_compiled ? compiled : Dim3{};
  }
  const abi::CUlaunchDim& dim = asked->second.cluster_dim;
  const bool is_contradiction =
      is_compiled && (dim.x != compiled.x || dim.y != compiled.y || dim.z != compiled.z);
  expect(!is_contradiction);
  expect(dim.y != 0 && dim.z != 0);
  return {dim.x, dim.y, dim.z};
}

void require_cluster(const FunctionObject& function, const Launch& launch) {
  const Dim3& cluster = launch.cluster;
  const bool divides = launch.grid.x % cluster.x == 0 && launch.grid.y % cluster.y == 0 &&
                       launch.grid.z % cluster.z == 0;
  const std::uint32_t limit = function.is_nonportable_cluster_allowed
                                  ? function.model().max_cluster_optin
                                  : function.model().max_cluster;
  const std::uint32_t compiled_limit = function.info.bounds.max_cluster_rank;
  expect(divides && cluster.count() <= limit, CUresult::kInvalidClusterSize);
  expect(compiled_limit == 0 || cluster.count() <= compiled_limit, CUresult::kInvalidClusterSize);
}

void require_extents(const FunctionObject& function, const Launch& launch) {
  const Dim3& grid = launch.grid;
  const Dim3& block = launch.block;
  expect(grid.x >= 1 && grid.x <= kMaxGridX && grid.y >= 1 && grid.y <= kMaxGridYz && grid.z >= 1 &&
         grid.z <= kMaxGridYz);
  expect(block.x >= 1 && block.x <= kMaxBlockXy && block.y >= 1 && block.y <= kMaxBlockXy &&
         block.z >= 1 && block.z <= kMaxBlockZ);
  expect(block.count() <= kMaxBlockXy);
  const LaunchBounds& bounds = function.info.bounds;
  const std::uint32_t(&required)[3] = bounds.required_threads;
  const bool is_as_required =
      required[0] == 0 || (block.x == required[0] && block.y == std::max(1u, required[1]) &&
                           block.z == std::max(1u, required[2]));
  expect(is_as_required);
  // Too many threads by the kernel's own bounds is a wrong value, by its registers a lack of them.
  const bool has_bounds = bounds.max_threads[0] != 0;
  expect(block.count() <= function.max_threads(),
         has_bounds ? CUresult::kInvalidValue : CUresult::kLaunchOutOfResources);
}

void require_residency(const FunctionObject& function, const Launch& launch) {
  const auto threads = static_cast<std::uint32_t>(launch.block.count());
  const std::uint32_t num_ctas = max_ctas_per_sm(function, threads, launch.dynamic_shared_bytes);
  expect(num_ctas > 0, CUresult::kLaunchOutOfResources);
  if (!launch.is_cooperative) return;
  expect(launch.grid.count() <= std::uint64_t{num_ctas} * function.model().num_sms,
         CUresult::kCooperativeLaunchTooLarge);
}

void take_attributes(KernelWork& work, const abi::CUlaunchConfig& config) {
  expect(config.num_attrs == 0 || config.attrs != nullptr);
  for (unsigned i = 0; i < config.num_attrs; ++i) {
    const abi::CUlaunchAttribute& attribute = config.attrs[i];
    if (attribute.id == Id::kIgnore) continue;
    expect(attribute.id > Id::kIgnore && attribute.id <= Id::kNvlinkUtilCentricScheduling);
    work.attributes[attribute.id] = attribute.value;
  }
}

/// Events that the launch is to record, at its start or when it is done: the same here.
std::vector<std::shared_ptr<Event>> events_of(const KernelWork& work) {
  std::vector<std::shared_ptr<Event>> events;
  for (const Id id : {Id::kProgrammaticEvent, Id::kLaunchCompletionEvent}) {
    const auto found = work.attributes.find(id);
    if (found == work.attributes.end()) continue;
    events.push_back(Driver::get().events.find(found->second.launch_completion_event.event));
  }
  return events;
}

void launch(const abi::CUlaunchConfig& config, abi::CUfunction function, void** arguments,
            void** extra) {
  const std::shared_ptr<Stream> stream = find_stream(config.stream);
  if (stream->context.is_silently_broken()) return;
  Work work = make_kernel_work(config, function, arguments, extra);
  expect(std::get<KernelWork>(work).context == &stream->context, CUresult::kInvalidHandle);
  const std::vector<std::shared_ptr<Event>> events = events_of(std::get<KernelWork>(work));
  submit(*stream, std::move(work));
  for (const auto& event : events) submit(*stream, EventRecordWork{event});
}

abi::CUlaunchConfig config_of(unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                              unsigned block_y, unsigned block_z, unsigned shared_bytes,
                              abi::CUstream stream) {
  return {.grid_dim_x = grid_x,
          .grid_dim_y = grid_y,
          .grid_dim_z = grid_z,
          .block_dim_x = block_x,
          .block_dim_y = block_y,
          .block_dim_z = block_z,
          .shared_mem_bytes = shared_bytes,
          .stream = stream,
          .attrs = nullptr,
          .num_attrs = 0};
}

}  // namespace

Work make_kernel_work(const abi::CUlaunchConfig& config, abi::CUfunction handle, void** arguments,
                      void** extra) {
  KernelWork work;
  work.function = find_function(handle);
  const FunctionObject& function = *work.function;
  work.context = function.module->context;
  if (!function.info.problem.empty()) {
    say(fmt::format("kernel {} cannot run: {}", function.info.name, function.info.problem));
    refuse(CUresult::kInvalidPtx);
  }
  take_attributes(work, config);
  Launch& launch = work.launch;
  launch.module = function.module->loaded;
  launch.kernel = function.info.name;
  launch.grid = {config.grid_dim_x, config.grid_dim_y, config.grid_dim_z};
  launch.block = {config.block_dim_x, config.block_dim_y, config.block_dim_z};
  launch.dynamic_shared_bytes = config.shared_mem_bytes;
  launch.cluster = cluster_of(function, work);
  const auto cooperative = work.attributes.find(Id::kCooperative);
  launch.is_cooperative =
      cooperative != work.attributes.end() && cooperative->second.cooperative != 0;
  require_extents(function, launch);
  expect(launch.dynamic_shared_bytes <= function.max_dynamic_shared_bytes);
  require_cluster(function, launch);
  require_residency(function, launch);
  launch.params = params_of(function.info, arguments, extra);
  return work;
}

Work make_kernel_work(const abi::CUDA_KERNEL_NODE_PARAMS& p) {
  const abi::CUfunction function =
      p.func != nullptr ? p.func : reinterpret_cast<abi::CUfunction>(p.kern);
  return make_kernel_work(config_of(p.grid_dim_x, p.grid_dim_y, p.grid_dim_z, p.block_dim_x,
                                    p.block_dim_y, p.block_dim_z, p.shared_mem_bytes, nullptr),
                          function, p.kernel_params, p.extra);
}

namespace abi {

CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                        unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                        CUstream stream, void** arguments, void** extra) {
  return call([&] {
    launch(config_of(grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream),
           function, arguments, extra);
  });
}

CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** arguments,
                          void** extra) {
  return call([&] {
    expect(config != nullptr);
    launch(*config, function, arguments, extra);
  });
}

CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned grid_x, unsigned grid_y,
                                   unsigned grid_z, unsigned block_x, unsigned block_y,
                                   unsigned block_z, unsigned shared_bytes, CUstream stream,
                                   void** arguments) {
  return call([&] {
    CUlaunchAttribute cooperative{};
    cooperative.id = CUlaunchAttributeID::kCooperative;
    cooperative.value.cooperative = 1;
    CUlaunchConfig config =
        config_of(grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream);
    config.attrs = &cooperative;
    config.num_attrs = 1;
    launch(config, function, arguments, nullptr);
  });
}

}  // namespace abi
}  // namespace tilewright::sim
