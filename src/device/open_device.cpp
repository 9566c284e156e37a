#include "device/open_device.h"

#include "device/plan_device.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>
#include <vector>

namespace tilewright::device {

namespace {

using Kind = DeviceSpec::Kind;
using Reasons = std::vector<std::string>;

struct Found {
  const Driver* driver = nullptr;
  int ordinal = 0;
};

/// What a GPU has to be.
struct Wanted {
  bool is_simulated = false;  // else any driver will do, also a simulator that the loader finds
  std::optional<int> ordinal = std::nullopt;  // else the first that fits
  int capability = 0;                         // 0: any that is usable
};

std::string join(const Reasons& reasons) {
  return fmt::format("{}", fmt::join(reasons, "; "));
}

bool is_fitting(const DeviceInfo& info, const Wanted& wanted) {
  return wanted.capability != 0 ? info.compute_capability == wanted.capability
                                : is_usable_capability(info.compute_capability);
}

std::string reason_against(const DeviceInfo& info, const Wanted& wanted) {
  return fmt::format("GPU {} is {} with compute capability {}.{}, not {}", info.ordinal, info.name,
                     info.compute_capability / 10, info.compute_capability % 10,
                     wanted.capability != 0
                         ? fmt::format("{}.{}", wanted.capability / 10, wanted.capability % 10)
                         : "9.0 (Hopper) or 10.x (Blackwell)");
}

std::optional<Found> find_gpu(const Driver& driver, const Wanted& wanted, Reasons& reasons) {
  driver.initialize();
  int count = 0;
  driver.check(driver.cu.device_get_count(&count), "cuDeviceGetCount");
  if (count == 0) reasons.push_back(fmt::format("the driver {} sees no GPU", driver.path()));
  if (count > 0 && wanted.ordinal.value_or(0) >= count) {
    reasons.push_back(fmt::format("there is no GPU {}; the driver {} sees {}, counted from 0",
                                  *wanted.ordinal, driver.path(), count));
  }
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    if (wanted.ordinal.value_or(ordinal) != ordinal) continue;
    const DeviceInfo info = query_device(driver, ordinal);
    if (is_fitting(info, wanted)) return Found{&driver, ordinal};
    reasons.push_back(reason_against(info, wanted));
  }
  return std::nullopt;
}

bool is_absent(const std::string& path) {
  std::error_code error;
  const bool is_for_the_loader = path.find('/') == std::string::npos;
  return !is_for_the_loader && !std::filesystem::exists(path, error);
}

/// The GPU in the driver at this path, unless that driver was tried under another name.
std::optional<Found> find_at(const std::string& path, const Wanted& wanted,
                             std::vector<const Driver*>& tried, Reasons& reasons) {
  const Driver& driver = Driver::open(path);
  if (std::find(tried.begin(), tried.end(), &driver) != tried.end()) return std::nullopt;
  tried.push_back(&driver);
  if (!wanted.is_simulated || driver.is_simulator()) return find_gpu(driver, wanted, reasons);
  reasons.push_back(fmt::format("{} is a CUDA driver, not the simulator", path));
  return std::nullopt;
}

std::optional<Found> find(const std::vector<std::string>& paths, const Wanted& wanted,
                          Reasons& reasons) {
  std::vector<const Driver*> tried;
  std::vector<std::string> absent;
  for (const std::string& path : paths) {
    if (is_absent(path)) {
      absent.push_back(path);
      continue;
    }
    try {
      const std::optional<Found> found = find_at(path, wanted, tried, reasons);
      if (found) return found;
    } catch (const Error& error) {
      reasons.emplace_back(error.what());
    }
  }
  if (!absent.empty()) {
    reasons.push_back(fmt::format("there is no file {}", fmt::join(absent, ", ")));
  }
  return std::nullopt;
}

Device open_found(const Found& found, const std::string& spec, const std::string& why) {
  return {*found.driver, found.ordinal, spec, why};
}

Device open_cuda(const Found& found, const std::string& why) {
  return open_found(found, fmt::format("cuda:{}", found.ordinal), why);
}

constexpr const char* kSimulatorAdvice =
    "It comes with Tilewright's simulator: build that, or name its library in "
    "TILEWRIGHT_SIM_LIBRARY, or use a GPU with --device cuda:0";

Device open_auto(const DriverLibraries& libraries) {
  Reasons against_gpu;
  const std::optional<Found> gpu = find(libraries.cuda, {}, against_gpu);
  if (gpu) return open_cuda(*gpu, "auto: the first usable GPU");
  Reasons against_sim;
  const std::optional<Found> sim =
      find(libraries.sim, {.is_simulated = true, .capability = 90}, against_sim);
  if (sim) {
    return open_found(
        *sim, "sim:h200",
        fmt::format("auto: simulated, for want of a usable GPU: {}", join(against_gpu)));
  }
  fail(ErrorKind::kUnsupported,
       "device auto: no usable GPU: {}. And no simulator to fall back on: {}. {}",
       join(against_gpu), join(against_sim), kSimulatorAdvice);
}

Device open_gpu(const DeviceSpec& spec, const DriverLibraries& libraries) {
  Reasons reasons;
  const Wanted wanted = {.ordinal = spec.ordinal};
  const std::optional<Found> found = find(libraries.cuda, wanted, reasons);
  if (found) return open_cuda(*found, fmt::format("asked for as {}", to_string(spec)));
  fail(ErrorKind::kUnsupported,
       "device {}: no usable GPU: {}. Install a driver, choose another GPU, or run without one: "
       "--device sim:h200",
       to_string(spec), join(reasons));
}

Device open_simulated(const DeviceSpec& spec, const DriverLibraries& libraries) {
  Reasons reasons;
  const int capability = spec.kind == Kind::kSimH200 ? 90 : spec.kind == Kind::kSimB200 ? 100 : 103;
  const Wanted wanted = {.is_simulated = true, .capability = capability};
  const std::optional<Found> found = find(libraries.sim, wanted, reasons);
  if (found) return open_found(*found, to_string(spec), "asked for");
  fail(ErrorKind::kUnsupported, "device {}: the simulator library is missing or unusable: {}. {}",
       to_string(spec), join(reasons), kSimulatorAdvice);
}

}  // namespace

Device open_device(const DeviceSpec& spec, const DriverLibraries& libraries) {
  switch (spec.kind) {
    case Kind::kAuto:
      return open_auto(libraries);
    case Kind::kCuda:
      return open_gpu(spec, libraries);
    case Kind::kSimH200:
    case Kind::kSimB200:
    case Kind::kSimB300:
      return open_simulated(spec, libraries);
    case Kind::kPlanH200:
    case Kind::kPlanB200:
    case Kind::kPlanB300:
      return Device(planned_device_info(spec.kind), to_string(spec));
  }
  fail(ErrorKind::kInternal, "open_device: kind = {}; please report this",
       static_cast<int>(spec.kind));
}

}  // namespace tilewright::device
