// Where CUDA drivers are looked for: the real one and the simulator, both named libcuda.so.1.
#pragma once

#include <string>
#include <vector>

namespace tilewright::device {

/// Paths in the order in which they are tried. A name without '/' is left to the dynamic loader.
struct DriverLibraries {
  std::vector<std::string> cuda;  ///< of the real driver
  std::vector<std::string> sim;   ///< of the simulator

  /// What a program on this machine uses.
  ///
  /// The real driver is whatever the dynamic loader finds as libcuda.so.1, then the usual places of
  /// distributions and containers that forget to tell the loader. If LD_LIBRARY_PATH leads the
  /// loader to the simulator, that is what runs; Device::is_simulated() tells.
  ///
  /// The simulator is the file that the environment variable TILEWRIGHT_SIM_LIBRARY names; without
  /// it, ../lib/sim/libcuda.so.1 seen from the folder of the running program (bin/tilewright of a
  /// build folder) or ../lib/tilewright/sim/libcuda.so.1 (of an installed one); or, seen from the
  /// folder of the library this code is in, sim/libcuda.so.1 or tilewright/sim/libcuda.so.1.
  static DriverLibraries standard();
};

inline constexpr const char* kSimLibraryVariable = "TILEWRIGHT_SIM_LIBRARY";

/// The name under which the dynamic loader knows the CUDA driver.
inline constexpr const char* kDriverName = "libcuda.so.1";

}  // namespace tilewright::device
