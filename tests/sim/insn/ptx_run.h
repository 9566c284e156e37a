// Runs test programs of tests/ptx (ptx_case.h) on a simulated device.
#pragma once

#include "sim/machine.h"
#include "sim/parse/parser.h"
#include "tests/sim/insn/ptx_case.h"
#include "tests/sim/insn/ptx_map.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>

#include <gtest/gtest.h>

namespace tilewright::sim {

inline std::vector<std::filesystem::path> ptx_files() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(TILEWRIGHT_SOURCE_DIR) + "/tests/ptx")) {
    if (entry.path().extension() == ".ptx") files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

inline std::string read_text(const std::filesystem::path& path) {
  std::ifstream stream(path);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

inline const DeviceModel& model_for(const std::string& text) {
  const auto has = [&](const char* target) { return text.find(target) != std::string::npos; };
  return *find_device_model(has(".target sm_103")   ? "b300"
                            : has(".target sm_100") ? "b200"
                                                    : "h200");
}

inline Options options_for(const std::string& text) {
  Options options;
  options.is_exact_mma = text.find("\n// machine: exact_mma\n") != std::string::npos;
  if (text.find("\n// machine: separate_mul_add\n") != std::string::npos) {
    options.fuse_mul_add = false;
  }
  return options;
}

/// Parameters: the two buffers, then the maps.
inline std::vector<std::byte> params_of(const PtxCase& test, std::uint64_t in, std::uint64_t out) {
  std::vector<std::byte> params(test.maps.empty() ? 16 : 64 + test.maps.size() * kTensorMapBytes);
  std::memcpy(params.data(), &in, 8);
  std::memcpy(params.data() + 8, &out, 8);
  for (std::size_t i = 0; i < test.maps.size(); ++i) {
    const TensorMapFields fields = parse_map(test.maps[i], in, out);
    EXPECT_EQ(validate(fields), "");
    encode(fields, std::span<std::byte, kTensorMapBytes>(params.data() + 64 + i * kTensorMapBytes,
                                                         kTensorMapBytes));
  }
  return params;
}

/// The results of a launch with these operands; nothing after a fault, which is a failure.
inline std::vector<std::uint64_t> run_ptx_case(Machine& machine,
                                               const std::shared_ptr<const LoadedModule>& module,
                                               const PtxCase& test,
                                               const std::vector<std::uint64_t>& in) {
  std::vector<std::uint64_t> out(test.outputs.size() * kPtxLanes);
  const std::uint64_t in_address = machine.memory().allocate(in.size() * 8 + 8, "in");
  const std::uint64_t out_address = machine.memory().allocate(out.size() * 8, "out");
  if (!in.empty()) std::memcpy(reinterpret_cast<void*>(in_address), in.data(), in.size() * 8);
  std::memset(reinterpret_cast<void*>(out_address), 0, out.size() * 8);
  Launch launch;
  launch.module = module;
  launch.kernel = test.kernel;
  launch.block.x = test.num_threads;
  launch.cluster.x = test.cluster;
  launch.grid.x = test.grid == 0 ? test.cluster : test.grid;
  launch.params = params_of(test, in_address, out_address);
  const std::optional<Fault> fault = machine.launch(launch);
  EXPECT_FALSE(fault.has_value()) << fault->message;
  std::memcpy(out.data(), reinterpret_cast<const void*>(out_address), out.size() * 8);
  machine.memory().free(in_address);
  machine.memory().free(out_address);
  if (fault.has_value()) out.clear();
  return out;
}

}  // namespace tilewright::sim
