#include "verify/device_facts.h"

#include "tilewright/kernels.h"

#include "base/json.h"
#include "verify/counted_occupancy.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

namespace tilewright::cli {

namespace {

using nlohmann::json;

constexpr const char* kReportVariable = "TILEWRIGHT_SIM_REPORT";

// Facts of a launch, which a sum over launches would make nonsense of.
constexpr const char* kFacts[] = {"occupancy", "registers_per_thread_estimate",
                                  "local_bytes_per_thread", "static_shared_bytes",
                                  "dynamic_shared_bytes"};

// The kernel is one of ours, unless the report has others too.
void correct_occupancy(json& kernel, const Device& device) {
  const std::string target = kernel_target(device);
  for (const EmbeddedKernel& embedded : embedded_kernels()) {
    if (embedded.name == kernel["kernel"].get<std::string>() && embedded.target == target)
      use_real_registers(kernel, embedded);
  }
}

// a += b, member by member; what is no number is kept.
void add_counts(json& a, const json& b) {
  for (const auto& [key, value] : b.items()) {
    if (value.is_number()) {
      a[key] = a.value(key, 0.0) + value.get<double>();
    } else if (value.is_object()) {
      if (!a.contains(key)) a[key] = json::object();
      add_counts(a[key], value);
    } else if (!a.contains(key)) {
      a[key] = value;
    }
  }
}

}  // namespace

void request_counts() {
  ::setenv(kReportVariable, "memory", 0);
}

json take_counts(const Device& device) {
  if (!device.is_simulated()) return nullptr;
  using TakeReport = const char* (*)(int);
  const auto take =
      reinterpret_cast<TakeReport>(device.driver_function("tilewright_simulator_take_report"));
  if (take == nullptr) return nullptr;
  const std::string text = take(device.ordinal());
  if (text.empty()) return nullptr;
  json out = json::object();
  json report = parse_json(text, "the simulator's report");
  double most_instructions = -1;
  json facts;  // of the launch that does most
  json names = json::array();
  for (json& kernel : report["kernels"]) {
    const double instructions = kernel["total"]["warp_instructions"].get<double>();
    if (instructions > most_instructions) {
      correct_occupancy(kernel, device);
      facts = json::object();
      for (const char* const name : kFacts) facts[name] = kernel[name];
    }
    most_instructions = std::max(instructions, most_instructions);
    for (const char* const name : kFacts) kernel.erase(name);
    for (const char* const large : {"lines", "source_lines", "faults", "grid", "block", "cluster"})
      kernel.erase(large);
    kernel["bounds"].erase("largest");
    kernel["bounds"].erase("note");
    names.push_back(kernel["kernel"]);
    add_counts(out, kernel);
  }
  if (out.empty()) return nullptr;
  out["kernels"] = std::move(names);
  out.update(facts);
  return out;
}

json read_clocks(const Device& device) {
  if (device.is_simulated()) return nullptr;
  const std::string command =
      "nvidia-smi --query-gpu=clocks.sm,clocks.mem,power.draw,temperature.gpu "
      "--format=csv,noheader,nounits -i " +
      device.uuid() + " 2>/dev/null";
  FILE* const pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return nullptr;
  double sm = 0, memory = 0, power = 0, temperature = 0;
  const int read = std::fscanf(pipe, "%lf, %lf, %lf, %lf", &sm, &memory, &power, &temperature);
  ::pclose(pipe);
  if (read != 4) return nullptr;
  return {
      {"sm_mhz", sm}, {"memory_mhz", memory}, {"power_w", power}, {"temperature_c", temperature}};
}

}  // namespace tilewright::cli
