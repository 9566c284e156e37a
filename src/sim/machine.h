// The simulated device as the driver sees it: memory, loaded modules, launches.
#pragma once

#include "sim/model/device_model.h"
#include "sim/model/options.h"
#include "sim/parse/ast.h"
#include "sim/state/global_memory.h"
#include "sim/state/launch.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace tilewright::sim {

class Observer;  // event/observer.h
class Findings;  // event/finding.h

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

  /// What the checks have found since the machine was made, or since they were taken.
  const Findings& findings() const noexcept;
  /// The same as JSON text (report/finding_json.h), and forgets them.
  std::string take_findings();

  /// Launches from now on run with these. SMs, contraction and what is done with the text of
  /// modules remain as they were. When the init check begins, what global memory holds so far
  /// counts as defined.
  /// Thread   not while another thread uses the machine
  void set_options(const Options& options);

  /// Tells the init check that the host has written these bytes of global memory (a copy, a
  /// memset), or that nothing has (a fresh allocation). Fresh allocations are undefined anyway.
  /// Global memory is only checked once one of the two was called: a host that does not say what it
  /// writes is not judged by it.
  void mark_defined(std::uint64_t address, std::uint64_t bytes);
  /// The same for a copy: from global memory that is undefined in part, or from the host.
  void mark_copied(std::uint64_t to, std::uint64_t from, std::uint64_t bytes);
  void mark_undefined(std::uint64_t address, std::uint64_t bytes);

  /// How many CTAs of this size one SM holds at a time.
  std::uint32_t max_active_ctas_per_sm(const KernelInfo& kernel, std::uint32_t threads,
                                       std::uint32_t dynamic_shared_bytes) const;

  /// Where printf of the device and findings go; standard output and standard error by default.
  void set_output(std::function<void(std::string_view)> print,
                  std::function<void(std::string_view)> report);

  void set_report_output(std::function<void(std::string_view)> report);

  /// The report, as JSON text, of all launches since the last call; empty if the options want no
  /// report.
  std::string take_report();

  /// Writes the report to where the options say, once for all launches so far; the destructor does
  /// it otherwise. Returns   false if it is lost: the report's output says why
  bool finish_report() noexcept;

  /// One that observes everything in all launches from now on, nullptr for none. It is not owned.
  void set_observer(Observer* observer);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tilewright::sim
