#include "device/driver.h"

#include "device/driver_libraries.h"

#include <map>
#include <mutex>
#include <string_view>
#include <utility>

#include <dlfcn.h>
#include <link.h>

namespace tilewright::device {

using abi::CUresult;

struct Driver::ReleaseLog {
  std::mutex mutex;
  ReleaseFailures failures;
};

namespace {

std::string version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

std::string path_of(void* library) {
  link_map* map = nullptr;
  if (dlinfo(library, RTLD_DI_LINKMAP, &map) != 0 || map == nullptr) return "unknown path";
  return map->l_name;
}

struct LoadedLibrary {
  void* handle = nullptr;
  std::string reason;  // why there is none
};

LoadedLibrary load_library(const char* path) {
  // RTLD_LOCAL: the real driver and the simulator export the same names and must stay apart.
  void* const handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (handle != nullptr) return {handle, ""};
  const char* const error = dlerror();
  std::string reason = error != nullptr ? error : "no reason given";
  const std::string prefix = fmt::format("{}: ", path);  // ours names the path, too
  if (reason.rfind(prefix, 0) == 0) reason.erase(0, prefix.size());
  return {nullptr, reason};
}

/// The dynamic loader also matches a name against the SONAMEs of what is loaded already: once the
/// simulator is, which bears that of the real driver, "libcuda.so.1" could mean the simulator. So
/// the name is looked up once before any driver is opened by its path, and the answer holds.
LoadedLibrary load_driver(const std::string& path) {
  static const LoadedLibrary by_name = load_library(kDriverName);
  return path == kDriverName && by_name.handle == nullptr ? by_name : load_library(path.c_str());
}

template <class Function>
bool fill(void* library, const char* name, Function*& pointer) {
  pointer = reinterpret_cast<Function*>(dlsym(library, name));
  return pointer != nullptr;
}

int read_version(void* library, const std::string& path) {
  abi::DriverFunctions functions;
  require(fill(library, "cuDriverGetVersion", functions.driver_get_version),
          ErrorKind::kUnsupported,
          "CUDA driver {}: it does not export cuDriverGetVersion, so it is no CUDA driver. Name "
          "another library",
          path);
  int version = 0;
  const CUresult result = functions.driver_get_version(&version);
  require(result == CUresult::kSuccess, kind_of(result),
          "CUDA driver {}: cuDriverGetVersion: {}. {}", path, name_of(result), advice_on(result));
  return version;
}

/// Fills the table; returns the names of required functions that the library lacks.
std::string fill_all(void* library, abi::DriverFunctions& functions) {
  std::string missing;
  const auto need = [&](const char* name, auto*& pointer) {
    if (fill(library, name, pointer)) return;
    missing += missing.empty() ? name : fmt::format(", {}", name);
  };
#define TILEWRIGHT_REQUIRED(member, exported, parameters) need(#exported, functions.member);
#define TILEWRIGHT_OPTIONAL(member, exported, parameters) \
  fill(library, #exported, functions.member);
  TILEWRIGHT_DRIVER_FUNCTIONS(TILEWRIGHT_REQUIRED, TILEWRIGHT_OPTIONAL)
#undef TILEWRIGHT_REQUIRED
#undef TILEWRIGHT_OPTIONAL
  return missing;
}

}  // namespace

Driver::Driver(void* library, std::string path, int version, const abi::DriverFunctions& functions)
    : cu(functions),
      library_(library),
      path_(std::move(path)),
      version_(version),
      is_simulator_(dlsym(library, kSimulatorMark) != nullptr),
      release_log_(std::make_unique<ReleaseLog>()) {}

Driver::~Driver() = default;

std::unique_ptr<const Driver> Driver::load(void* library) {
  const std::string path = path_of(library);
  const int version = read_version(library, path);
  require(version >= kMinVersion, ErrorKind::kUnsupported,
          "CUDA driver {}: it implements CUDA {}; Tilewright needs {} or newer. Update the driver",
          path, version_text(version), version_text(kMinVersion));
  abi::DriverFunctions functions;
  const std::string missing = fill_all(library, functions);
  require(missing.empty(), ErrorKind::kUnsupported,
          "CUDA driver {}: it implements CUDA {} but does not export {}. Reinstall the driver, or "
          "name another library",
          path, version_text(version), missing);
  return std::unique_ptr<const Driver>(new Driver(library, path, version, functions));
}

const Driver& Driver::open(const std::string& path) {
  static std::mutex mutex;
  // Leaked on purpose (see the class), and so reachable until the very end.
  static auto& drivers = *new std::map<void*, std::unique_ptr<const Driver>>;
  const auto [library, reason] = load_driver(path);
  require(library != nullptr, ErrorKind::kUnsupported, "CUDA driver {}: it cannot be loaded: {}",
          path, reason);
  const std::lock_guard lock(mutex);
  const auto known = drivers.find(library);
  if (known != drivers.end()) {
    dlclose(library);  // one count per library is enough
    return *known->second;
  }
  try {
    return *drivers.emplace(library, load(library)).first->second;
  } catch (...) {
    dlclose(library);
    throw;
  }
}

void* Driver::function(const std::string& exported_name) const noexcept {
  return dlsym(library_, exported_name.c_str());
}

void Driver::initialize() const {
  check(cu.init(0), "cuInit", "driver {}", path_);
}

std::string Driver::describe(CUresult result) const {
  const char* name = nullptr;
  const char* text = nullptr;
  std::string out = name_of(result);
  if (cu.get_error_name(result, &name) == CUresult::kSuccess && name != nullptr) out = name;
  if (cu.get_error_string(result, &text) == CUresult::kSuccess && text != nullptr) {
    out += fmt::format(" ({})", text);
  }
  return out;
}

void Driver::raise(CUresult result, const char* function, const std::string& details) const {
  std::string message = fmt::format("{}: {}", function, describe(result));
  if (!details.empty()) message += "; " + details;
  const std::string_view advice = advice_on(result, is_simulator_);
  if (!advice.empty()) message += fmt::format(". {}", advice);
  throw Error(kind_of(result), message);
}

void Driver::note_release(CUresult result, const char* function) const noexcept {
  if (result == CUresult::kSuccess || result == CUresult::kDeinitialized) return;
  const std::lock_guard lock(release_log_->mutex);
  ReleaseFailures& failures = release_log_->failures;
  ++failures.count;
  if (failures.messages.size() >= ReleaseFailures::kMaxMessages) return;
  try {
    failures.messages.push_back(fmt::format("{}: {}", function, describe(result)));
  } catch (...) {  // no memory for the text; the count says that something failed
  }
}

ReleaseFailures Driver::take_release_failures() const {
  const std::lock_guard lock(release_log_->mutex);
  return std::exchange(release_log_->failures, {});
}

}  // namespace tilewright::device
