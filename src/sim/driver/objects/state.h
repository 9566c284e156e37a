// What the driver remembers: devices, contexts, and the objects behind the handles.
//
// Work is done in order of submission: a stream is a queue that is drained at once, before the call
// that submits returns. So nothing is ever pending, every query says "done", and work on different
// streams never overlaps. Errors still appear as on a device: a launch that faults returns success,
// and the context is broken from the next call on that could notice.
#pragma once

#include "sim/driver/objects/blocks.h"
#include "sim/driver/objects/call.h"
#include "sim/driver/objects/registry.h"
#include "sim/machine.h"

#include <array>
#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace tilewright::sim {

struct Stream;
struct Graph;
struct GraphNode;
struct GraphExec;
struct LinkState;
struct UserObject;
struct ModuleObject;
struct FunctionObject;
struct Library;
struct KernelObject;

/// A context of one device.
struct Context {
  explicit Context(Device& device_);
  ~Context();

  Device& device;
  const std::uint64_t id;
  bool is_primary = false;
  std::atomic<bool> is_active = false;  ///< false: destroyed, or a primary one not retained
  unsigned flags = 0;
  abi::CUfunc_cache cache_config = abi::CUfunc_cache::kNone;
  abi::CUsharedconfig shared_config = abi::CUsharedconfig::kDefaultBankSize;
  std::array<std::size_t, 10> limits{};
  std::shared_ptr<Stream> legacy_stream;

  /// The calling thread's stream, made when it is first asked for.
  std::shared_ptr<Stream> per_thread_stream();

  /// Breaks the context. The first fault counts.
  void break_with(CUresult fault);
  /// Whether work is to be skipped: broken, though no call has said so yet.
  bool is_silently_broken() const;
  /// From here on every call says so. Errors   Failure with the fault
  void report_fault();
  /// The host knows that all work has ended. Errors   as report_fault()
  void synchronize();
  void clear();  ///< as new: no fault, default settings

 private:
  mutable std::mutex mutex_;
  std::optional<CUresult> fault_;
  bool is_reported_ = false;
  std::map<std::thread::id, std::shared_ptr<Stream>> per_thread_streams_;
};

struct MemoryPool {
  Device* device = nullptr;
  bool is_default = false;
  std::map<abi::CUmemPool_attribute, std::uint64_t> attributes;
  std::uint64_t max_used_bytes = 0;
};

struct Device {
  Device(int ordinal_, const DeviceModel& model_, const Options& options);

  const int ordinal;
  const DeviceModel model;
  std::shared_ptr<Context> primary;
  std::mutex mutex;  ///< of what follows
  int num_retains = 0;
  unsigned primary_flags = 0;
  std::shared_ptr<MemoryPool> default_pool;
  std::shared_ptr<MemoryPool> current_pool;
  std::mutex launch_mutex;  ///< one launch at a time

  /// Made when it is first needed: it reserves address space.
  Machine& machine();
  /// nullptr before that.
  Machine* existing_machine() noexcept { return ready_machine_.load(); }
  /// At the end of the process: lets the machine write its report. False if it is lost.
  bool close() noexcept;

 private:
  const Options& options_;
  std::mutex machine_mutex_;
  std::unique_ptr<Machine> machine_;
  std::atomic<Machine*> ready_machine_ = nullptr;
};

struct Event {
  Context* context = nullptr;
  unsigned flags = 0;
  std::mutex mutex;  ///< of what follows
  bool is_recorded = false;
  std::chrono::steady_clock::time_point time;
  std::shared_ptr<struct Capture> capture;  ///< last recorded in a stream that was captured
  std::vector<GraphNode*> captured_after;
};

/// The driver of this process. Never destroyed: programs call it until their very end.
class Driver {
 public:
  static Driver& get();

  /// Errors   Failure, after saying why: a variable of the environment makes no sense
  void initialize();
  bool is_initialized() const noexcept { return is_initialized_.load(); }
  bool is_closed() const noexcept { return is_closed_.load(); }

  const std::vector<std::unique_ptr<Device>>& devices() const noexcept { return devices_; }
  /// Errors   Failure: CUDA_ERROR_INVALID_DEVICE
  Device& device(abi::CUdevice ordinal);
  const Options& options() const noexcept { return options_; }
  std::uint64_t next_id() noexcept { return next_id_++; }

  Blocks blocks;
  Registry<abi::CUcontext, Context> contexts;
  Registry<abi::CUstream, Stream> streams;
  Registry<abi::CUevent, Event> events;
  Registry<abi::CUmodule, ModuleObject> modules;
  Registry<abi::CUfunction, FunctionObject> functions;
  Registry<abi::CUlibrary, Library> libraries;
  Registry<abi::CUkernel, KernelObject> kernels;
  Registry<abi::CUmemoryPool, MemoryPool> pools;
  Registry<abi::CUgraph, Graph> graphs;
  Registry<abi::CUgraphNode, GraphNode> graph_nodes;
  Registry<abi::CUgraphExec, GraphExec> graph_execs;
  Registry<abi::CUlinkState, LinkState> links;
  Registry<abi::CUuserObject, UserObject> user_objects;

 private:
  Driver() = default;
  /// Of on_exit(): a program whose report is lost has failed, as one whose output is.
  static void end_process(int status, void* nothing) noexcept;
  /// False if a report is lost.
  bool close() noexcept;

  std::mutex mutex_;
  std::atomic<bool> is_initialized_ = false;
  std::atomic<bool> is_closed_ = false;
  std::atomic<std::uint64_t> next_id_ = 1;
  Options options_;
  std::vector<std::unique_ptr<Device>> devices_;
};

/// The calling thread's contexts, the current one last.
std::vector<std::shared_ptr<Context>>& context_stack();

/// Errors   Failure: CUDA_ERROR_INVALID_CONTEXT, CUDA_ERROR_CONTEXT_IS_DESTROYED
Context& current_context();

/// The current context, which must not be broken. Errors   also the fault that broke it
Context& usable_context();

/// As call(), with the current context as it is.
template <class Body>
CUresult call_in_context(Body&& body) noexcept {
  return call([&] { body(current_context()); });
}

/// As call(), with the current context, in which faults surface.
template <class Body>
CUresult call_in_usable_context(Body&& body) noexcept {
  return call([&] { body(usable_context()); });
}

/// Host memory becomes usable by kernels of every device; and no longer.
void announce_host_range(const Block& block);
void withdraw_host_range(std::uint64_t address);
/// Gives back what the block holds.
void release_block(const Block& block) noexcept;

/// Ends everything that lives in the context.
void tear_down(Context& context);

}  // namespace tilewright::sim
