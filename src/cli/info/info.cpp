// tilewright info: devices, driver, toolkit, embedded kernels.

#include "tilewright/kernels.h"

#include "base/error.h"
#include "base/source_commit.h"
#include "cli/info/checkpoint.h"
#include "cli/tool/command.h"
#include "device/device.h"
#include "device/device_spec.h"
#include "device/driver_libraries.h"
#include "device/open_device.h"
#include "sim/model/device_model.h"

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tilewright::cli {

namespace {

using nlohmann::json;

// A driver library and the GPUs it shows, or the reason why there is none.
struct DriverReport {
  const device::Driver* driver = nullptr;
  std::vector<device::DeviceInfo> devices;
  std::vector<std::string> problems;
};

DriverReport look_for_driver(const std::vector<std::string>& paths) {
  DriverReport out;
  for (const std::string& path : paths) {
    try {
      const device::Driver& driver = device::Driver::open(path);
      out.driver = &driver;
      driver.initialize();
      int count = 0;
      driver.check(driver.cu.device_get_count(&count), "cuDeviceGetCount");
      for (int i = 0; i < count; ++i) out.devices.push_back(device::query_device(driver, i));
      return out;
    } catch (const Error& error) {
      out.problems.emplace_back(error.what());
    }
  }
  return out;
}

std::string version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

/// What --device takes for a GPU of this driver: "cuda:0", "sim:h200".
std::string spec_of(const device::DeviceInfo& info, bool is_simulator) {
  if (!is_simulator) return fmt::format("cuda:{}", info.ordinal);
  for (const sim::DeviceModel& model : sim::device_models()) {
    if (model.name == info.name) return fmt::format("sim:{}", model.key);
  }
  return fmt::format("sim, device {}", info.ordinal);
}

json driver_to_json(const DriverReport& report, bool is_simulator) {
  json devices = json::array();
  for (const device::DeviceInfo& info : report.devices) {
    devices.push_back({{"name", info.name},
                       {"spec", spec_of(info, is_simulator)},
                       {"ordinal", info.ordinal},
                       {"compute_capability", version_text(info.compute_capability * 100)},
                       {"multiprocessors", info.num_sms},
                       {"memory_bytes", info.memory_bytes},
                       {"l2_bytes", info.l2_bytes},
                       {"shared_per_block_optin_bytes", info.shared_per_block_optin_bytes},
                       {"is_usable", device::is_usable_capability(info.compute_capability)}});
  }
  json out = {{"devices", devices}, {"problems", report.problems}};
  if (report.driver != nullptr) {
    out["path"] = report.driver->path();
    out["cuda_version"] = version_text(report.driver->version());
  }
  return out;
}

std::string describe_driver(const DriverReport& report, bool is_simulator, const Style& style) {
  if (report.driver == nullptr) {
    return report.problems.empty() ? "not found\n"
                                   : fmt::format("none: {}\n", report.problems.front());
  }
  std::string out =
      fmt::format("{}, CUDA {}\n", report.driver->path(), version_text(report.driver->version()));
  if (report.devices.empty()) {
    out += fmt::format("            {}\n",
                       report.problems.empty() ? "shows no GPU" : report.problems.front());
  }
  for (const device::DeviceInfo& info : report.devices) {
    constexpr double kGiB = 1 << 30, kMiB = 1 << 20;
    out += fmt::format(
        "            {}: {}, compute capability {}.{}, {} SMs, {:.0f} GiB, {:.0f} MiB "
        "L2{}\n",
        spec_of(info, is_simulator), style.bold(info.name), info.compute_capability / 10,
        info.compute_capability % 10, info.num_sms, static_cast<double>(info.memory_bytes) / kGiB,
        static_cast<double>(info.l2_bytes) / kMiB,
        device::is_usable_capability(info.compute_capability) ? "" : " (not supported)");
  }
  return out;
}

std::map<std::string, int> kernels_by_target() {
  std::map<std::string, int> out;
  for (const EmbeddedKernel& kernel : embedded_kernels()) ++out[std::string(kernel.target)];
  return out;
}

// What --device or the environment asks for. Errors   InvalidArgument if that is no device
device::DeviceSpec asked_device(const Context& context) {
  return device::resolve_device_spec(
      context.device.empty() ? std::nullopt : std::optional<std::string_view>(context.device));
}

// What that leads to, or why nothing.
std::string chosen_device(const device::DeviceSpec& asked, std::string& problem) {
  try {
    return device::open_device(asked).label();
  } catch (const Error& error) {
    problem = error.what();
    return {};
  }
}

void run_info(Context& context) {
  const device::DeviceSpec asked = asked_device(context);
  const device::DriverLibraries libraries = device::DriverLibraries::standard();
  const DriverReport gpu = look_for_driver(libraries.cuda);
  const DriverReport simulator = look_for_driver(libraries.sim);
  std::string problem;
  const std::string chosen = chosen_device(asked, problem);
  const bool is_missing = chosen.empty() && asked != device::DeviceSpec{};
  if (is_missing) context.exit_status = 1;  // what was asked for by name
  const auto kernels = kernels_by_target();
  const SourceCommit commit = source_commit(kBuiltCommit);
  if (context.json) {
    print_json({{"version", TILEWRIGHT_VERSION},
                {"commit", commit.hash},
                {"dirty", commit.is_dirty},
                {"device", chosen.empty() ? json() : json(chosen)},
                {"device_problem", problem.empty() ? json() : json(problem)},
                {"cuda_driver", driver_to_json(gpu, false)},
                {"simulator", driver_to_json(simulator, true)},
                {"toolkit", kernel_compiler()},
                {"kernels", kernels},
                {"cpu_threads", std::thread::hardware_concurrency()}});
    return;
  }
  const Style style = context.style();
  std::string out = style.bold(fmt::format("tilewright {}", TILEWRIGHT_VERSION)) +
                    fmt::format(", commit {}{}\n", commit.hash, commit.is_dirty ? ", changed" : "");
  out += "device      " +
         (is_missing       ? "none: " + problem
          : chosen.empty() ? "none: neither a usable GPU nor the simulator"
                           : chosen) +
         "\n";
  out += "driver      " + describe_driver(gpu, false, style);
  out += "simulator   " + describe_driver(simulator, true, style);
  std::vector<std::string> counts;
  for (const auto& [target, count] : kernels)
    counts.push_back(fmt::format("{} for {}", count, target));
  out += kernels.empty() ? std::string("kernels     none: built without the CUDA compiler\n")
                         : fmt::format("kernels     {}, compiled with nvcc {}\n",
                                       fmt::join(counts, ", "), kernel_compiler());
  out += fmt::format("host        {} threads\n", std::thread::hardware_concurrency());
  print(out);
}

}  // namespace

void add_info(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand(
      "info", "show devices, driver, toolkit and embedded kernels, or a model's memory");
  auto args = std::make_shared<CheckpointInfoArgs>();
  add_checkpoint_info_options(*command, *args);
  command->footer(
      "For example:\n"
      "  tilewright info\n"
      "  tilewright info --checkpoint flash --ranks 2,4 --context 131072 --sequences 16");
  command->callback([args, &context] {
    args->checkpoint.empty() ? run_info(context) : run_checkpoint_info(*args, context);
  });
}

}  // namespace tilewright::cli
