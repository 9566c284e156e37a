#include "device/driver_libraries.h"

#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace tilewright::device {

namespace {

std::string simulator_beside_program() {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  // Without /proc the relative path still works for a program started in its own folder.
  return (program.parent_path() / "../lib/sim" / kDriverName).lexically_normal().string();
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
      .sim = {sim != nullptr && *sim != '\0' ? std::string(sim) : simulator_beside_program()},
  };
}

}  // namespace tilewright::device
