// Files: mapped for reading; written so that nothing is lost when writing fails.
#pragma once

#include "base/temporary_path.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

namespace tilewright {

/// A whole file in memory, read-only; pages are loaded when they are touched.
/// Note: if another program shortens the file meanwhile, touching the lost part ends this program
/// with SIGBUS. Replace files by renaming, as AtomicFile does; a map then keeps the old content.
class MappedFile {
 public:
  /// Errors   InvalidArgument if the file cannot be opened or is not a regular file
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;

  /// Starts at a page boundary. Empty for an empty file.
  std::span<const std::byte> bytes() const noexcept { return bytes_; }
  std::string_view text() const noexcept {
    return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()};
  }

 private:
  std::span<const std::byte> bytes_;
};

/// A file that appears under its name only when it is complete: it is written without a name, where
/// the file system can do that, else under a temporary one in the same folder, and named by
/// commit(). Before that, or if anything fails, a file that bears the name already keeps its
/// content; a temporary file is removed by the destructor. Without a name nothing is left behind
/// even if the process is killed.
/// Errors   all functions: OutOfMemory if the disk is full, else InvalidArgument (no such folder,
///          no permission, ...); the message names the file and the reason
class AtomicFile {
 public:
  /// A link to a file is followed: that file is the one replaced. Its permissions are kept.
  explicit AtomicFile(const std::filesystem::path& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  /// Writes at that position, which may lie past the end; what is skipped reads as zero.
  void write_at(std::uint64_t offset_bytes, std::span<const std::byte> bytes);

  /// Forces the content to the disk and gives it its name. Nothing can be written afterwards.
  void commit();

 private:
  void name_file();

  std::filesystem::path path_;
  TemporaryPath temporary_;  ///< empty while the file has no name
  int fd_ = -1;
};

/// Replaces or creates a file as a whole. Errors as AtomicFile.
void write_file(const std::filesystem::path& path, std::span<const std::byte> bytes);
void write_file(const std::filesystem::path& path, std::string_view text);

}  // namespace tilewright
