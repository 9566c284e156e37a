// What holds for whatever module is loaded and run (see properties.h): nothing but a refusal or a
// fault comes out of it, in bounded time.
#pragma once

#include "sim/event/observer.h"
#include "sim/machine.h"
#include "tests/fuzz/ptx_properties.h"

namespace tilewright::fuzz {

/// Ends a launch that takes long: hostile kernels need not end.
class Budget final : public sim::Observer {
 public:
  void launch_started(sim::Grid&) override { left_ = kMostInstructions; }
  void executing(sim::Warp&, const sim::Insn&, std::uint32_t) override {
    if (--left_ == 0) throw sim::FaultError(sim::FaultKind::kTrap, "enough");
  }

 private:
  static constexpr int kMostInstructions = 3000;
  int left_ = kMostInstructions;
};

/// A device with little memory, so that a large variable costs no time.
inline const sim::DeviceModel& small_device() {
  static const sim::DeviceModel model = [] {
    sim::DeviceModel small = *sim::find_device_model("h200");
    small.global_bytes = 64 << 20;
    return small;
  }();
  return model;
}

/// What run() does, or nothing if it refuses; only with a kind that lies in what it was given.
template <class Run>
void run_or_refuse(Run&& run) {
  try {
    run();
  } catch (const Error& error) {
    check(error.kind() != ErrorKind::kInternal && error.kind() != ErrorKind::kDeviceError,
          error.what());
  }
}

/// Two warps, with the address of some memory in each parameter of 8 bytes.
inline void launch_kernel(sim::Machine& machine,
                          const std::shared_ptr<const sim::LoadedModule>& module,
                          const sim::KernelInfo& kernel) {
  constexpr std::uint64_t kBufferBytes = 1 << 16;
  const std::uint64_t buffer = machine.memory().allocate(kBufferBytes, "buffer");
  sim::Launch launch;
  launch.module = module;
  launch.kernel = kernel.name;
  launch.block.x = 64;
  launch.params.resize(kernel.param_bytes);
  for (const sim::ParamInfo& param : kernel.params) {
    if (param.size_bytes == 8) {
      std::memcpy(launch.params.data() + param.offset_bytes, &buffer, sizeof buffer);
    }
  }
  run_or_refuse([&] {
    const auto fault = machine.launch(launch);
    check(!fault || fault->kind != sim::FaultKind::kInternal, "an internal fault");
  });
  machine.memory().free(buffer);
}

/// Loads the module and runs its kernels; returns whether it could be loaded.
inline bool check_ptx_run(std::span<const std::byte> bytes) {
  if (!check_ptx(bytes)) return false;
  sim::Options options;
  options.checks = sim::parse_checks("all");
  options.num_threads = 1;
  sim::Machine machine(small_device(), options);
  machine.set_output([](std::string_view) {}, [](std::string_view) {});
  Budget budget;
  machine.set_observer(&budget);
  std::shared_ptr<const sim::LoadedModule> module;
  run_or_refuse(
      [&] { module = machine.load(sim::parse_module(std::string(text_of(bytes)), "input")); });
  if (!module) return false;
  constexpr std::size_t kMostKernels = 8;
  std::size_t num_run = 0;
  for (const sim::KernelInfo& kernel : module->kernels()) {
    if (!kernel.problem.empty()) {
      check(kernel.problem.starts_with("input"), "a problem without place");
    } else if (num_run++ < kMostKernels) {
      launch_kernel(machine, module, kernel);
    }
  }
  return num_run != 0;
}

}  // namespace tilewright::fuzz
