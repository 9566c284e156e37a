// A loaded CUDA driver: the real one or the simulator, which are both just a library with the same
// exported functions. Nothing links against CUDA; the library is opened by path when it is needed.
#pragma once

#include "base/error.h"
#include "device/driver_functions.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace tilewright::device {

/// Failures of calls that give something back (free, destroy, unload, ...). They happen in
/// destructors, which must not throw, so they are kept here.
struct ReleaseFailures {
  std::uint64_t count = 0;
  std::vector<std::string> messages;  ///< of the first kMaxMessages
  static constexpr std::size_t kMaxMessages = 16;
};

/// One driver library. Immortal: never unloaded, since real drivers own threads that outlive any
/// sensible order of destruction. References to it stay valid until the process ends.
/// Thread   safe
class Driver {
 public:
  /// The driver in this library file; the same object for every path that leads to the same file. A
  /// name without '/' is searched for by the dynamic loader (LD_LIBRARY_PATH, ld.so.cache, ...).
  /// Errors   Unsupported if the file cannot be loaded, its CUDA version is below kMinVersion, or
  ///          it lacks required functions (the message names all of them)
  static const Driver& open(const std::string& path);

  /// Calls cuInit, without which only driver_get_version and the error names work. May be repeated.
  /// Errors   DeviceError, e.g. CUDA_ERROR_NO_DEVICE on a machine without a GPU
  void initialize() const;

  /// The functions: driver.cu.mem_alloc(&address, bytes). Results are to be passed to check().
  const abi::DriverFunctions cu;

  /// Where the library was found.
  const std::string& path() const noexcept { return path_; }
  /// CUDA version that the driver implements: 1000 * major + 10 * minor, e.g. 13000.
  int version() const noexcept { return version_; }
  /// Whether this is Tilewright's simulator. It says so itself by exporting kSimulatorMark.
  bool is_simulator() const noexcept { return is_simulator_; }

  /// Address of a function by its exported name, for callers outside; null if the library lacks it.
  void* function(const std::string& exported_name) const noexcept;

  /// "CUDA_ERROR_NOT_FOUND (named symbol not found)". Asks the driver, which may be newer than our
  /// table; falls back on the table.
  std::string describe(abi::CUresult result) const;

  /// Throws unless the result is success: "FUNCTION: ERROR (text); DETAILS. What to do."
  /// The details, usually the arguments that matter, are formatted only then.
  void check(abi::CUresult result, const char* function) const {
    if (result != abi::CUresult::kSuccess) raise(result, function, "");
  }
  template <class... Args>
  void check(abi::CUresult result, const char* function, fmt::format_string<Args...> details,
             Args&&... args) const {
    if (result != abi::CUresult::kSuccess) {
      raise(result, function, fmt::format(details, std::forward<Args>(args)...));
    }
  }
  [[noreturn]] void raise(abi::CUresult result, const char* function,
                          const std::string& details) const;

  /// Keeps the failure of a call made by a destructor; success is ignored. So is
  /// CUDA_ERROR_DEINITIALIZED: at process exit the driver may be gone before us, with everything.
  void note_release(abi::CUresult result, const char* function) const noexcept;
  /// What was noted since the last call of this function.
  ReleaseFailures take_release_failures() const;

  /// cuTensorMapEncodeTiled and the launch attributes that we use came with CUDA 12.0.
  static constexpr int kMinVersion = 12000;
  /// Exported by the simulator besides the driver's functions; its value does not matter.
  static constexpr const char* kSimulatorMark = "tilewright_simulator";

  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;
  ~Driver();

 private:
  struct ReleaseLog;
  Driver(void* library, std::string path, int version, const abi::DriverFunctions& functions);
  static std::unique_ptr<const Driver> load(void* library);

  void* library_;
  std::string path_;
  int version_;
  bool is_simulator_;
  std::unique_ptr<ReleaseLog> release_log_;
};

/// Name from our own table: "CUDA_ERROR_OUT_OF_MEMORY"; "CUDA error 12345" if it is not there.
std::string name_of(abi::CUresult result);

/// What kind of Error a result is reported as.
ErrorKind kind_of(abi::CUresult result) noexcept;

/// What to do about a result, as one or two sentences; empty where nothing general can be said.
const char* advice_on(abi::CUresult result, bool is_simulated = false) noexcept;

}  // namespace tilewright::device
