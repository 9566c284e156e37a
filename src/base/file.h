// Files: mapped for reading; files and folders written so that nothing is lost when writing fails.
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

/// A folder that appears under its name only when it is complete: it is written under a temporary
/// name beside that one, and renamed by commit(). Without commit() nothing is left: the destructor
/// removes the temporary folder, remove_temporary_paths() does where a signal ends the program, and
/// what a killed process left of a folder is removed by the next one that writes it.
/// Errors   all functions: OutOfMemory if the disk is full, else InvalidArgument; the message names
///          the folder and the reason
class AtomicFolder {
 public:
  /// `path`: its parent exists; it is free, or an empty folder, whose place commit() takes and
  /// whose permissions are kept. A link to a folder is followed.
  explicit AtomicFolder(const std::filesystem::path& path);
  ~AtomicFolder();
  AtomicFolder(const AtomicFolder&) = delete;
  AtomicFolder& operator=(const AtomicFolder&) = delete;

  /// Where its files are written until commit().
  const std::filesystem::path& path() const noexcept { return temporary_.path(); }

  /// Gives the folder its name. Its files are finished.
  void commit();

 private:
  std::filesystem::path path_;
  TemporaryPath temporary_;
  int lock_ = -1;  ///< held on the folder while this process lives
};

/// Replaces or creates a file as a whole. Errors as AtomicFile.
void write_file(const std::filesystem::path& path, std::span<const std::byte> bytes);
void write_file(const std::filesystem::path& path, std::string_view text);

}  // namespace tilewright
