#include "sim/driver/objects/work.h"

#include "sim/driver/abi/functions.h"
#include "sim/driver/objects/graph.h"
#include "sim/driver/objects/module.h"
#include "sim/driver/objects/stream.h"
#include "sim/event/finding.h"

#include <cstring>

namespace tilewright::sim {

namespace {

CUresult result_of(FaultKind kind) noexcept {
  switch (kind) {
    case FaultKind::kIllegalAddress:
      return CUresult::kIllegalAddress;
    case FaultKind::kMisalignedAddress:
      return CUresult::kMisalignedAddress;
    case FaultKind::kIllegalInstruction:
      return CUresult::kIllegalInstruction;
    case FaultKind::kInvalidPc:
      return CUresult::kInvalidPc;
    case FaultKind::kInvalidAddressSpace:
      return CUresult::kInvalidAddressSpace;
    case FaultKind::kAssert:
      return CUresult::kAssert;
    case FaultKind::kHardwareStackError:
      return CUresult::kHardwareStackError;
    case FaultKind::kLaunchOutOfResources:
      return CUresult::kLaunchOutOfResources;
    case FaultKind::kTrap:
    case FaultKind::kDeadlock:
    case FaultKind::kClusterBlockNotPresent:
    case FaultKind::kFinding:
    case FaultKind::kInternal:
      break;
  }
  return CUresult::kLaunchFailed;
}

void run_work(Context&, const KernelWork& work) {
  Context& context = *work.context;
  std::optional<Fault> fault;
  {
    const std::lock_guard lock(context.device.launch_mutex);
    Launch launch = work.launch;
    const auto dependent =
        work.attributes.find(abi::CUlaunchAttributeID::kProgrammaticStreamSerialization);
    launch.is_dependent = dependent != work.attributes.end() &&
                          dependent->second.programmatic_stream_serialization_allowed != 0;
    fault = context.device.machine().launch(launch);
  }
  if (!fault) return;
  const CUresult result = result_of(fault->kind);
  if (fault->is_told) {
    const char* name = nullptr;
    abi::cuGetErrorName(result, &name);
    say(fmt::format("{}: the launch fails for this: {}", readable_name(work.launch.kernel), name));
  } else {
    say(fault->message);
  }
  // A launch that does not fit leaves the context as it was.
  if (result == CUresult::kLaunchOutOfResources) refuse(result);
  context.break_with(result);
}

void run_work(Context& context, const CopyWork& work) {
  validate(work);
  if (work.width_bytes == 0) return;  // the addresses may be null
  Machine& machine = context.device.machine();
  for (std::size_t z = 0; z < work.depth; ++z) {
    for (std::size_t y = 0; y < work.height; ++y) {
      const auto at = [&](const CopyWork::Side& side) {
        return side.address + z * side.plane_bytes + y * side.pitch_bytes;
      };
      std::memmove(reinterpret_cast<void*>(at(work.to)),
                   reinterpret_cast<const void*>(at(work.from)), work.width_bytes);
      machine.mark_copied(at(work.to), at(work.from), work.width_bytes);
    }
  }
}

template <class Element>
void fill_row(std::uint64_t address, unsigned value, std::size_t width) {
  const auto element = static_cast<Element>(value);
  auto* const row = reinterpret_cast<Element*>(address);
  std::fill_n(row, width, element);
}

void run_work(Context& context, const MemsetWork& work) {
  validate(work);
  const abi::CUDA_MEMSET_NODE_PARAMS& p = work.params;
  for (std::size_t y = 0; y < p.height; ++y) {
    const std::uint64_t row = p.dst + y * p.pitch;
    if (p.element_size == 1) fill_row<std::uint8_t>(row, p.value, p.width);
    if (p.element_size == 2) fill_row<std::uint16_t>(row, p.value, p.width);
    if (p.element_size == 4) fill_row<std::uint32_t>(row, p.value, p.width);
    context.device.machine().mark_defined(row, std::uint64_t{p.width} * p.element_size);
  }
}

void run_work(Context&, const HostWork& work) {
  if (work.callback) {
    work.callback();
  } else {
    work.function(work.data);
  }
}

void run_work(Context&, const EmptyWork&) {}

void run_work(Context&, const EventRecordWork& work) {
  const std::lock_guard lock(work.event->mutex);
  work.event->is_recorded = true;
  work.event->time = std::chrono::steady_clock::now();
  work.event->capture.reset();
}

void run_work(Context&, const EventWaitWork&) {}  // what it waits for was done at submission

void run_work(Context& context, const GraphWork& work) {
  run_graph(context, *work.graph);
}

}  // namespace

std::size_t CopyWork::span_bytes(const Side& side) const noexcept {
  if (width_bytes == 0 || height == 0 || depth == 0) return 0;
  return (depth - 1) * side.plane_bytes + (height - 1) * side.pitch_bytes + width_bytes;
}

void require_range(std::uint64_t address, std::size_t size_bytes, bool may_be_pageable) {
  if (size_bytes == 0) return;
  expect(address != 0);
  Driver& driver = Driver::get();
  if (const std::optional<Block> block = driver.blocks.find(address)) {
    expect(size_bytes <= block->end() - address || (block->is_host() && may_be_pageable));
    return;
  }
  for (const auto& device : driver.devices()) {  // variables of modules, and freed memory
    Machine* const machine = device->existing_machine();
    if (machine == nullptr) continue;
    const GlobalMemory& memory = machine->memory();
    if (address < memory.begin() || address >= memory.end()) continue;
    const auto allocation = memory.find(address);
    expect(allocation && !allocation->is_freed);
    expect(size_bytes <= allocation->address + allocation->size_bytes - address);
    return;
  }
  expect(may_be_pageable);
}

void validate(const CopyWork& work) {
  const bool is_from_host = work.asked.src_memory_type != abi::CUmemorytype::kDevice;
  const bool is_to_host = work.asked.dst_memory_type != abi::CUmemorytype::kDevice;
  require_range(work.from.address, work.span_bytes(work.from), is_from_host);
  require_range(work.to.address, work.span_bytes(work.to), is_to_host);
}

void validate(const MemsetWork& work) {
  const abi::CUDA_MEMSET_NODE_PARAMS& p = work.params;
  expect(p.element_size == 1 || p.element_size == 2 || p.element_size == 4);
  expect(p.dst % p.element_size == 0);
  expect(p.height <= 1 || p.pitch % p.element_size == 0);
  if (p.width == 0 || p.height == 0) return;
  const std::size_t row_bytes = p.width * p.element_size;
  expect(p.height == 1 || p.pitch >= row_bytes);
  require_range(p.dst, (p.height - 1) * p.pitch + row_bytes, false);
}

void run(Context& context, const Work& work) {
  if (context.is_silently_broken()) return;
  const bool is_other = !std::holds_alternative<KernelWork>(work);
  if (is_other && !std::holds_alternative<GraphWork>(work))
    context.device.machine().forget_launches();
  std::visit([&](const auto& each) { run_work(context, each); }, work);
}

void submit(Stream& stream, Work work) {
  {
    const std::lock_guard lock(stream.mutex);
    if (stream.current_capture() != nullptr) {
      expect(stream.current_capture()->status == abi::CUstreamCaptureStatus::kActive,
             CUresult::kStreamCaptureInvalidated);
      GraphNode& node =
          stream.current_capture()->graph->add(std::move(work), stream.captured_after);
      stream.captured_after = {&node};
      return;
    }
  }
  run(stream.context, work);
}

}  // namespace tilewright::sim
