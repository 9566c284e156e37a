// Files and folders that must not outlive the process that makes them.
#pragma once

#include <filesystem>

namespace tilewright {

/// Names a file or folder that is not finished; the owner removes or renames it. What is named when
/// a program is interrupted is removed by remove_temporary_paths(), which the program calls.
/// Thread   safe
class TemporaryPath {
 public:
  TemporaryPath() = default;
  explicit TemporaryPath(std::filesystem::path path);
  ~TemporaryPath() { forget(); }
  TemporaryPath(TemporaryPath&& other) noexcept;
  TemporaryPath& operator=(TemporaryPath&& other) noexcept;

  const std::filesystem::path& path() const noexcept { return path_; }
  bool empty() const noexcept { return path_.empty(); }
  /// It has been removed, or has its final name.
  void forget() noexcept;

 private:
  std::filesystem::path path_;
};

/// Removes what is named at this moment. For a program that is about to end by a signal; not to be
/// called in a signal handler.
void remove_temporary_paths() noexcept;

}  // namespace tilewright
