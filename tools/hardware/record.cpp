// record_hardware: runs every probe on a GPU and writes what it did, for the tests to compare with.
//
//   build/release/bin/record_hardware tests/golden/hardware/h200_fragments.safetensors [--device
// cuda:0]
//
// The file holds, per case, the 32-bit words that came back (as bytes where all are small whole
// floats); its metadata say on what device, driver and day, and carry a digest of each case's
// inputs. Exit status 1 if a result differs from what the layouts predict (the recording is written
// all the same: it is the hardware's word).

#include "base/error.h"
#include "base/safetensors_writer.h"
#include "device/kernel_registry.h"
#include "device/open_device.h"
#include "hardware/probe.h"

#include <CLI/CLI.hpp>
#include <ctime>
#include <map>

#include <fmt/chrono.h>
#include <fmt/format.h>

namespace tilewright::hardware {

namespace {

struct Recording {
  std::vector<std::pair<std::string, std::vector<std::uint32_t>>> words;
  std::map<std::string, std::string> metadata;
  int differing = 0;
};

Recording record(const device::Device& device) {
  Recording out;
  out.metadata = {{"device", device.info().name},
                  {"driver", fmt::format("CUDA {}", device.driver().version())},
                  {"toolkit", device::kernel_toolkit()},
                  {"date", fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr)))}};
  for (const ProbeCase& probe : probe_cases()) {
    std::vector<std::uint32_t> words = run_probe(device, probe);
    const bool is_equal = words == probe.expected;
    out.differing += !is_equal;
    fmt::print("{:40} {}\n", probe.name, is_equal ? "as predicted" : "DIFFERS");
    out.metadata["digest." + probe.name] = fmt::format("{:016x}", digest(probe));
    out.words.emplace_back(probe.name, std::move(words));
  }
  return out;
}

void write(const Recording& recording, const std::string& path) {
  std::vector<SafetensorsSpec> specs;
  std::map<std::string, std::vector<std::byte>> bytes;
  for (const auto& [name, words] : recording.words) {
    const StoredWords stored = store_words(words);
    specs.push_back({name, stored.dtype, {static_cast<std::int64_t>(words.size())}});
    bytes[name] = stored.bytes;
  }
  SafetensorsWriter writer(path, specs, recording.metadata);
  for (const auto& [name, data] : bytes) writer.append(name, data);
  writer.finish();
}

int run(int argc, char** argv) {
  CLI::App app("Records what single instructions do on a GPU.", "record_hardware");
  std::string path, spec = "cuda";
  app.add_option("file", path, "safetensors file to write")->required();
  app.add_option("--device", spec, "cuda or cuda:N")->capture_default_str();
  try {
    app.parse(argc, argv);
    const device::Device device = device::open_device(device::parse_device_spec(spec, "--device"));
    fmt::print("{}\n", device.describe());
    const Recording recording = record(device);
    write(recording, path);
    fmt::print("{} cases, {} differ from the prediction; wrote {}\n", recording.words.size(),
               recording.differing, path);
    return recording.differing == 0 ? 0 : 1;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "record_hardware: {}\n", error.what());
    return 1;
  }
}

}  // namespace
}  // namespace tilewright::hardware

int main(int argc, char** argv) {
  return tilewright::hardware::run(argc, argv);
}
