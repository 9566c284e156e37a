#include "device/driver_libraries.h"

#include "base/env.h"

#include <filesystem>
#include <system_error>

#include <dlfcn.h>

namespace tilewright::device {

namespace {

std::filesystem::path folder_of_program() {
  std::error_code error;
  // Without /proc the relative path still works for a program started in its own folder.
  return std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
}

// Of the file that this code is in: a program, or a library that somebody's program has loaded.
std::filesystem::path folder_of_this_code() {
  Dl_info info{};
  static const char here = 0;
  if (::dladdr(&here, &info) == 0 || info.dli_fname == nullptr) return {};
  return std::filesystem::path(info.dli_fname).parent_path();
}

/// Those that exist; if none does, the first, for the message.
std::vector<std::string> simulators() {
  const std::filesystem::path places[] = {
      folder_of_program() / "../lib/sim", folder_of_program() / "../lib/tilewright/sim",
      folder_of_this_code() / "sim", folder_of_this_code() / "tilewright/sim"};
  std::vector<std::string> paths;
  for (const std::filesystem::path& place : places) {
    std::error_code error;
    const std::string path = (place / kDriverName).lexically_normal().string();
    if (std::filesystem::exists(path, error)) paths.push_back(path);
  }
  if (paths.empty()) paths.push_back((places[0] / kDriverName).lexically_normal().string());
  return paths;
}

}  // namespace

DriverLibraries DriverLibraries::standard() {
  const std::string sim = env_text(kSimLibraryVariable);
  return {
      .cuda =
          {
              kDriverName,
              "/usr/lib/x86_64-linux-gnu/libcuda.so.1",  // Debian, Ubuntu
              "/usr/lib/aarch64-linux-gnu/libcuda.so.1",
              "/usr/lib64/libcuda.so.1",               // Red Hat, SUSE
              "/usr/lib/wsl/lib/libcuda.so.1",         // Windows Subsystem for Linux
              "/run/opengl-driver/lib/libcuda.so.1",   // NixOS
              "/usr/local/nvidia/lib64/libcuda.so.1",  // container runtimes
          },
      .sim = sim.empty() ? simulators() : std::vector<std::string>{sim},
  };
}

}  // namespace tilewright::device
