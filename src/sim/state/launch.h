// What is launched, and why it may stop: sizes, kernels' facts, modules, launches, faults.
#pragma once

#include "sim/parse/ast.h"

#include <cstddef>
#include <cstdint>
#include <memory>
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
  /// Of a thread at the entry, as ptxas sets them for setmaxnreg. 0: there is none, or nothing in
  /// the text says how many registers there are, and then ptxas leaves the instructions out
  std::uint32_t entry_registers = 0;
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
  bool is_in_graph = false;  ///< one of a graph's launches: nothing is read from the host before it
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

}  // namespace tilewright::sim
