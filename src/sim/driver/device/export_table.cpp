#include "sim/driver/device/export_table.h"

#include "sim/driver/objects/call.h"

#include <cstring>
#include <filesystem>
#include <mutex>
#include <set>
#include <string>

#include <dlfcn.h>
#include <fmt/format.h>

namespace tilewright::sim {

namespace {

/// The first private table that NVIDIA's runtime library cannot do without.
constexpr unsigned char kRuntimeInterface[16] = {0x6b, 0xd5, 0xfb, 0x6c, 0x5b, 0xf4, 0xe7, 0x4a,
                                                 0x89, 0x87, 0xd9, 0x39, 0x12, 0xfd, 0x9d, 0xf9};

/// The file that was loaded to this address, "" if that is not known.
std::string file_at(const void* address) {
  Dl_info info{};
  return dladdr(address, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : "";
}

bool is_program(const std::string& file) {
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  return !error && std::filesystem::equivalent(file, program, error);
}

std::string runtime_beside_us() {
  const auto driver = std::filesystem::absolute(file_at(kRuntimeInterface));
  return driver.parent_path() / "libcudart.so.13";
}

/// What helps depends on where NVIDIA's runtime is: only a shared one can be replaced.
std::string remedy_for(const std::string& file) {
  const std::string name = std::filesystem::path(file).filename().string();
  if (name.starts_with("libcudart.so")) {
    return fmt::format(
        "It is a shared library, found before the simulator's: put LD_PRELOAD={} "
        "before the command",
        runtime_beside_us());
  }
  if (file.empty() || is_program(file)) {
    return "It is linked into the program, as nvcc does unless told otherwise: link with nvcc "
           "-cudart shared";
  }
  return fmt::format(
      "It is linked into that library, where nothing can replace it. What helps: a "
      "build of {} with nvcc -cudart shared; or to launch its kernels by the "
      "driver API (cuda.bindings.driver, cuda.core), which needs no runtime",
      name);
}

void say_once(const std::string& file) {
  static std::mutex mutex;
  static std::set<std::string> said;
  const std::lock_guard lock(mutex);
  if (!said.insert(file).second) return;
  say(
      fmt::format("{} brings NVIDIA's CUDA runtime, which runs on NVIDIA's driver only. The "
                  "simulator has a runtime of its own. {}",
                  file.empty() ? "the program" : file, remedy_for(file)));
}

}  // namespace

// NVIDIA's runtime library checks that the driver below it is NVIDIA's own and stops if it is not
// (cudaErrorSoftwareValidityNotEstablished). That check is theirs to make: there are no tables here
// that would answer it, so that the runtime fails early, and this says why.
const void* find_export_table(const abi::CUuuid& id, const void* caller) noexcept {
  if (std::memcmp(id.bytes, kRuntimeInterface, sizeof id.bytes) == 0) {
    answer([&] { say_once(file_at(caller)); });
  }
  return nullptr;
}

}  // namespace tilewright::sim
