// The simulated device as the driver sees it: memory, loaded modules, launches.
#pragma once

#include "sim/device_model.h"
#include "sim/memory/global_memory.h"
#include "sim/options.h"
#include "sim/parse/ast.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tilewright::sim {

struct Dim3 {
  std::uint32_t x = 1, y = 1, z = 1;
  std::uint64_t count() const noexcept { return std::uint64_t{x} * y * z; }
};

/// One parameter of a kernel.
struct ParamInfo {
  std::uint32_t offset_bytes = 0;
  std::uint32_t size_bytes = 0;
};

/// A kernel's facts, known when its module is loaded.
struct KernelInfo {
  std::string name;
  std::vector<ParamInfo> params;
  std::uint32_t param_bytes = 0;
  std::uint32_t static_shared_bytes = 0;
  std::uint32_t local_bytes = 0;  ///< per thread
  std::uint32_t const_bytes = 0;
  std::uint32_t num_registers = 0;  ///< estimated; within the launch bounds
  LaunchBounds bounds;
  std::string
      problem;  ///< why it cannot run (an unknown instruction, with its place); "" if it can
};

/// Global and constant variables by name.
struct VariableInfo {
  std::string name;
  std::uint64_t address = 0;
  std::uint64_t size_bytes = 0;
};

struct KernelCode;  // program/
class Observer;     // check/
class Findings;     // check/

/// A module whose variables have addresses and whose kernels are ready to run.
class LoadedModule {
 public:
  virtual ~LoadedModule() = default;
  virtual const Module& syntax() const = 0;
  virtual std::vector<KernelInfo> kernels() const = 0;
  virtual std::vector<VariableInfo> variables() const = 0;
};

struct Launch {
  std::shared_ptr<const LoadedModule> module;
  std::string kernel;
  Dim3 grid, block, cluster;
  std::uint32_t dynamic_shared_bytes = 0;
  std::vector<std::byte> params;  ///< KernelInfo::param_bytes
  bool is_cooperative = false;
  /// It may begin before the launch before it has ended: programmatic stream serialization. Both
  /// run one after the other here; the race check says what relies on that.
  bool is_dependent = false;
};

/// Why a launch stopped.
enum class FaultKind : std::uint8_t {
  kIllegalAddress,
  kMisalignedAddress,
  kIllegalInstruction,
  kInvalidPc,
  kInvalidAddressSpace,
  kTrap,
  kAssert,
  kHardwareStackError,
  kDeadlock,
  kClusterBlockNotPresent,
  kLaunchOutOfResources,
  kFinding,
  kInternal,
};

struct Fault {
  FaultKind kind = FaultKind::kInternal;
  std::string message;   ///< complete, several lines
  bool is_told = false;  ///< the message has gone to the output of findings already
};

/// Thread    launches run one at a time; everything else is safe at any time
class Machine {
 public:
  Machine(const DeviceModel& model, Options options);
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  const DeviceModel& model() const noexcept;
  const Options& options() const noexcept;
  GlobalMemory& memory() noexcept;

  /// Gives the module's variables memory, fills it, and translates its functions. A function that
  /// holds an instruction this machine does not know is loaded with KernelInfo::problem set; the
  /// others are usable. Errors   ParseError, Unsupported (a target that this device does not run),
  /// OutOfMemory
  std::shared_ptr<const LoadedModule> load(Module module);

  /// Runs to the end. Empty if all went well.
  /// Errors   InvalidArgument for a launch that the device would refuse (sizes, shared memory,
  /// cluster, bounds)
  std::optional<Fault> launch(const Launch& launch);

  /// The host has waited for all launches so far, or something else than a launch came after them:
  /// nothing of theirs is under way when the next one begins.
  void forget_launches();

  /// What the checks have found since the machine was made.
  const Findings& findings() const noexcept;

  /// Tells the init check that the host has written these bytes of global memory (a copy, a
  /// memset), or that nobody has (a fresh allocation). Fresh allocations are undefined anyway.
  /// Global memory is only checked once one of the two was called: a host that does not say what it
  /// writes is not judged by it.
  void mark_defined(std::uint64_t address, std::uint64_t bytes);
  /// The same for a copy: from global memory that is undefined in part, or from the host.
  void mark_copied(std::uint64_t to, std::uint64_t from, std::uint64_t bytes);
  void mark_undefined(std::uint64_t address, std::uint64_t bytes);

  /// How many CTAs of this size one multiprocessor holds at a time.
  std::uint32_t max_active_ctas_per_sm(const KernelInfo& kernel, std::uint32_t threads,
                                       std::uint32_t dynamic_shared_bytes) const;

  /// Where printf of the device and findings go; standard output and standard error by default.
  void set_output(std::function<void(std::string_view)> print,
                  std::function<void(std::string_view)> report);

  /// The report, as JSON text, of all launches since the last call; empty if the options want no
  /// report.
  std::string take_report();

  /// One that is told of everything in all launches from now on, nullptr for none. It is not owned.
  void set_observer(Observer* observer);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tilewright::sim
