#include "device/driver_libraries.h"

#include <cstdlib>
#include <filesystem>
#include <system_error>

#include <dlfcn.h>

namespace tilewright::device {

namespace {

std::string simulator_beside_program() {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  // Without /proc the relative path still works for a program started in its own folder.
  return (program.parent_path() / "../lib/sim" / kDriverName).lexically_normal().string();
}

// Of the file that this code is in: a program, or a library that somebody's Python has loaded.
std::string simulator_beside_library() {
  Dl_info info{};
  static const char here = 0;
  if (::dladdr(&here, &info) == 0 || info.dli_fname == nullptr) return {};
  return (std::filesystem::path(info.dli_fname).parent_path() / "sim" / kDriverName).string();
}

std::vector<std::string> simulators() {
  std::vector<std::string> paths = {simulator_beside_program()};
  const std::string beside_library = simulator_beside_library();
  std::error_code error;
  if (std::filesystem::exists(beside_library, error)) paths.push_back(beside_library);
  return paths;
}

}  // namespace

DriverLibraries DriverLibraries::standard() {
  const char* const sim = std::getenv(kSimLibraryVariable);
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
      .sim = sim != nullptr && *sim != '\0' ? std::vector<std::string>{sim} : simulators(),
  };
}

}  // namespace tilewright::device
