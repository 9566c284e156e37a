// One piece of work on a stream, as a value: it is run at once, or kept as a node of a graph.
#pragma once

#include "sim/driver/objects/state.h"

#include <functional>
#include <variant>

namespace tilewright::sim {

struct KernelWork {
  std::shared_ptr<FunctionObject> function;
  Context* context = nullptr;  ///< of the function, whose module may be unloaded meanwhile
  Launch launch;
  std::map<abi::CUlaunchAttributeID, abi::CUlaunchAttributeValue> attributes;
  std::vector<void*> param_pointers;  ///< into launch.params: what cuGraphKernelNodeGetParams gives
};

/// Rows of width_bytes, height of them in a plane, depth planes. All memory is host memory here.
struct CopyWork {
  struct Side {
    std::uint64_t address = 0;  ///< of the first byte that is copied
    std::size_t pitch_bytes = 0;
    std::size_t plane_bytes = 0;
  };
  Side from, to;
  std::size_t width_bytes = 0, height = 1, depth = 1;
  abi::CUDA_MEMCPY3D asked{};  ///< what graph nodes give back

  std::size_t span_bytes(const Side& side) const noexcept;
};

struct MemsetWork {
  abi::CUDA_MEMSET_NODE_PARAMS params{};
};

struct HostWork {
  abi::CUhostFn function = nullptr;
  void* data = nullptr;
  std::function<void()> callback;  ///< instead of the two
};

struct EmptyWork {};

struct EventRecordWork {
  std::shared_ptr<Event> event;
};

struct EventWaitWork {
  std::shared_ptr<Event> event;
};

struct GraphWork {
  std::shared_ptr<Graph> graph;
};

using Work = std::variant<KernelWork, CopyWork, MemsetWork, HostWork, EmptyWork, EventRecordWork,
                          EventWaitWork, GraphWork>;

/// Does it, now. Nothing happens in a context that is broken. Errors   Failure
void run(Context& context, const Work& work);

/// Does it, or adds it to the graph that the stream is captured into.
void submit(Stream& stream, Work work);

/// Errors   Failure: CUDA_ERROR_INVALID_VALUE unless all bytes lie in one live allocation, or
/// outside of what the driver knows and `may_be_pageable`
void require_range(std::uint64_t address, std::size_t size_bytes, bool may_be_pageable);

/// Errors   Failure if the node could not run: unknown memory, element size
void validate(const CopyWork& work);
void validate(const MemsetWork& work);

}  // namespace tilewright::sim
