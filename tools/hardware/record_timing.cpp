// record_timing: times small pieces of code on a GPU, for the constants of the simulator's timing
// model.
//
//   build/release/bin/record_timing tests/golden/hardware/h200_timing.json [--device cuda:0]
//                                                                        [--only WORD]
//
// The file holds the device, driver and day, and all samples of each probe as they were read.

#include "base/error.h"
#include "base/file.h"
#include "device/kernel_registry.h"
#include "device/open_device.h"
#include "hardware/timing_case.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <ctime>
#include <nlohmann/json.hpp>

#include <fmt/chrono.h>
#include <fmt/format.h>

namespace tilewright::hardware {

namespace {

using Json = nlohmann::ordered_json;

const char* name_of(Reading reading) {
  switch (reading) {
    case Reading::kSpan:
      return "clocks";
    case Reading::kMean:
      return "clocks, mean of CTAs";
    case Reading::kWarps:
      return "clocks by warpgroup";
    case Reading::kMarks:
      return "clocks since the first mark";
    case Reading::kGaps:
      return "clocks between CTAs";
    case Reading::kMicroseconds:
      return "microseconds";
    case Reading::kPlaces:
      return "SMs, CTAs of one";
    case Reading::kClock:
      return "MHz, microseconds";
  }
  return "";
}

Json describe(const TimingCase& timing) {
  Json out = {{"name", timing.name},
              {"kernel", timing.kernel},
              {"blocks", timing.blocks},
              {"threads", timing.threads},
              {"operations", timing.operations},
              {"unit", name_of(timing.reading)}};
  if (timing.cluster > 1) out["cluster"] = timing.cluster;
  if (timing.shared_bytes != 0) out["shared_bytes"] = timing.shared_bytes;
  if (timing.stride != 0) out["stride"] = timing.stride;
  if (timing.count != 0) out["count"] = timing.count;
  if (timing.reading == Reading::kClock) out["memory_bytes"] = timing.memory_bytes;
  if (timing.has_zeros) out["zeros"] = true;
  return out;
}

Json to_json(const TimingSamples& samples) {
  Json out = Json::array();
  for (const std::vector<double>& sample : samples.values) {
    if (sample.size() == 1) {
      out.push_back(sample.front());
    } else {
      out.push_back(sample);
    }
  }
  return out;
}

/// The median of the samples, or of the last number of each.
double median_of(const TimingSamples& samples) {
  std::vector<double> numbers;
  for (const auto& sample : samples.values) numbers.push_back(sample.back());
  if (numbers.empty()) return 0;
  const auto middle = numbers.begin() + static_cast<std::ptrdiff_t>(numbers.size() / 2);
  std::ranges::nth_element(numbers, middle);
  return *middle;
}

/// Runs the cases whose names have the word. A case that fails is told and left out.
Json record(const device::Device& device, const std::string& only, int& num_failed) {
  Json probes = Json::array();
  TimingRunner runner(device);
  for (const TimingCase& timing : timing_cases()) {
    if (timing.name.find(only) == std::string::npos) continue;
    try {
      const TimingSamples samples = runner.run(timing);
      const double median = median_of(samples);
      fmt::print("{:60} {:12.1f} {:12.3f}\n", timing.name, median, median / timing.operations);
      Json probe = describe(timing);
      probe["samples"] = to_json(samples);
      probes.push_back(std::move(probe));
    } catch (const Error& error) {
      ++num_failed;
      fmt::print("{:60} failed: {}\n", timing.name, error.what());
    }
    std::fflush(stdout);
  }
  return probes;
}

Json record_launches(const device::Device& device) {
  Json out = Json::array();
  for (const LaunchSamples& samples : time_launches(device)) {
    std::vector<double> sorted = samples.microseconds;
    std::ranges::sort(sorted);
    fmt::print("{:60} {:12.2f} us {:12.3f}\n", samples.name, sorted[sorted.size() / 2],
               sorted[sorted.size() / 2] / samples.launches);
    out.push_back({{"name", samples.name},
                   {"operations", samples.launches},
                   {"unit", "microseconds"},
                   {"samples", samples.microseconds}});
  }
  return out;
}

int run(int argc, char** argv) {
  CLI::App app("Times small pieces of code on a GPU.", "record_timing");
  std::string path, spec = "cuda", only;
  app.add_option("file", path, "JSON file to write")->required();
  app.add_option("--device", spec, "cuda or cuda:N")->capture_default_str();
  app.add_option("--only", only, "probes whose name has this word");
  try {
    app.parse(argc, argv);
    const device::Device device = device::open_device(device::parse_device_spec(spec, "--device"));
    fmt::print("{}\n", device.describe());
    Json out = {{"device", device.info().name},
                {"clock_khz", device.info().clock_khz},
                {"multiprocessors", device.info().num_sms},
                {"driver", fmt::format("CUDA {}", device.driver().version())},
                {"toolkit", device::kernel_toolkit()},
                {"date", fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr)))}};
    int num_failed = 0;
    out["probes"] = record(device, only, num_failed);
    if (only.empty()) out["launches"] = record_launches(device);
    write_file(path, out.dump() + '\n');
    fmt::print("{} probes, {} failed; wrote {}\n", out["probes"].size(), num_failed, path);
    return num_failed == 0 ? 0 : 1;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "record_timing: {}\n", error.what());
    return 1;
  }
}

}  // namespace
}  // namespace tilewright::hardware

int main(int argc, char** argv) {
  return tilewright::hardware::run(argc, argv);
}
