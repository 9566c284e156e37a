// What the fake CUDA driver knows, shared with the tests: its GPUs, every call, every live handle,
// every misuse, and which call is to fail next.
#pragma once

#include "device/driver_abi.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace tilewright::device::fake {

struct Gpu {
  std::string name = "Fake H200";
  int capability = 90;
  std::size_t memory_bytes = std::size_t{1} << 30;
  int primary_context_users = 0;
  /// Overrides of cuDeviceGetAttribute, by attribute.
  std::map<int, int> attributes = {};
};

/// A kernel launch as the driver saw it.
struct Launch {
  std::string kernel;
  abi::CUlaunchConfig config;
  std::vector<abi::CUlaunchAttribute> attributes;
  std::vector<std::byte> params;
};

/// The arguments of cuTensorMapEncodeTiled.
struct TensorMapCall {
  abi::CUtensorMapDataType type;
  std::uint32_t rank;
  std::uint64_t address;
  std::vector<std::uint64_t> dims, strides_bytes;
  std::vector<std::uint32_t> box, element_strides;
  abi::CUtensorMapInterleave interleave;
  abi::CUtensorMapSwizzle swizzle;
  abi::CUtensorMapL2promotion l2_promotion;
  abi::CUtensorMapFloatOOBfill oob_fill;
};

/// Anything with a handle. One struct for all kinds: most members are used by one kind only.
struct Object {
  std::string
      kind;  // "stream", "event", "module", "function", "graph", "graph exec", "memory", ...
  abi::CUcontext context = nullptr;
  std::size_t bytes = 0;                        // memory, and params of a function
  std::string name;                             // function
  std::map<std::string, std::size_t> entries;   // module: kernel -> bytes of params
  std::map<int, int> attributes;                // function
  bool is_capturing = false;                    // stream
  bool is_capture_broken = false;               // stream
  std::vector<std::function<void()>> recorded;  // stream being captured, graph, graph exec
  /// Graph, stream being captured: for each of `recorded` a kernel, or "" for what is none.
  std::vector<std::string> nodes;
  std::optional<int> tick;  // event: when it was recorded
  unsigned flags = 0;       // stream, event, pinned memory
  int priority = 0;         // stream
};

struct State {
  std::recursive_mutex mutex;

  // --- set by tests
  std::vector<Gpu> gpus = {Gpu{}};
  /// What kernels do when they run, by name; they get the bytes of their Params.
  std::map<std::string, std::function<void(const std::byte*)>> kernel_bodies;
  /// The next call of this function returns this. One shot.
  std::string failing_function;
  abi::CUresult failing_result = abi::CUresult::kSuccess;
  /// So many calls from now on succeed, then one, whichever it is, returns failing_result.
  std::optional<int> calls_until_failure;

  // --- read by tests
  std::vector<std::string> calls;       // exported names, in order
  std::vector<std::string> violations;  // what a correct caller never does
  std::map<std::uint64_t, Object> objects;
  std::vector<Launch> launches;  // that ran
  std::vector<TensorMapCall> tensor_maps;
  std::map<int, std::uint64_t> jit_options;  // of the last cuModuleLoadDataEx
  int failures_delivered = 0;
  bool is_initialized = false;
  std::uint64_t next_handle = 0x7000;
  int next_tick = 0;

  std::size_t count(const std::string& function) const {
    std::size_t n = 0;
    for (const std::string& call : calls) n += call == function ? 1 : 0;
    return n;
  }
  /// The kinds of all handles that somebody must still give back, and primary contexts in use.
  std::vector<std::string> leaks() const {
    std::vector<std::string> found;
    for (const auto& [handle, object] : objects) {
      if (object.kind != "function" && object.kind != "context") found.push_back(object.kind);
    }
    for (const Gpu& gpu : gpus) {
      for (int i = 0; i < gpu.primary_context_users; ++i) found.push_back("primary context");
    }
    return found;
  }
};

/// Exported by the fake driver: its state, and how many contexts the calling thread has pushed.
using StateFunction = State* (*)();
using ContextDepthFunction = std::size_t (*)();
/// Exported too: frees everything and forgets everything.
using ResetFunction = void (*)();

}  // namespace tilewright::device::fake
