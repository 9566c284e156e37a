#include "base/temporary_path.h"

#include <mutex>
#include <set>
#include <system_error>
#include <utility>

namespace tilewright {
namespace {

struct TemporaryPaths {
  std::mutex mutex;
  std::multiset<std::filesystem::path> paths;
};

// Never destroyed: threads may still write when the process ends.
TemporaryPaths& temporary_paths() {
  static TemporaryPaths& all = *new TemporaryPaths;
  return all;
}

}  // namespace

TemporaryPath::TemporaryPath(std::filesystem::path path) : path_(std::move(path)) {
  TemporaryPaths& all = temporary_paths();
  const std::lock_guard lock(all.mutex);
  all.paths.insert(path_);
}

TemporaryPath::TemporaryPath(TemporaryPath&& other) noexcept
    : path_(std::exchange(other.path_, {})) {}

TemporaryPath& TemporaryPath::operator=(TemporaryPath&& other) noexcept {
  std::swap(path_, other.path_);
  return *this;
}

void TemporaryPath::forget() noexcept {
  if (path_.empty()) return;
  TemporaryPaths& all = temporary_paths();
  const std::lock_guard lock(all.mutex);
  if (const auto at = all.paths.find(path_); at != all.paths.end()) all.paths.erase(at);
  path_.clear();
}

void remove_temporary_paths() noexcept {
  TemporaryPaths& all = temporary_paths();
  const std::lock_guard lock(all.mutex);
  // Another thread may put a file into a folder while it is emptied.
  constexpr int kTries = 20;
  for (const std::filesystem::path& path : all.paths) {
    std::error_code error;
    for (int i = 0; i < kTries; ++i) {
      std::filesystem::remove_all(path, error);
      if (!error && !std::filesystem::exists(path, error)) break;
    }
  }
}

}  // namespace tilewright
