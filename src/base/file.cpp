#include "base/file.h"

#include "base/error.h"

#include <atomic>
#include <cerrno>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tilewright {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail_system(const fs::path& path, const char* action, int error_number) {
  const bool is_full = error_number == ENOSPC || error_number == EDQUOT || error_number == ENOMEM;
  fail(is_full ? ErrorKind::kOutOfMemory : ErrorKind::kInvalidArgument, "{}: cannot {}: {}",
       path.string(), action, std::generic_category().message(error_number));
}

/// Owns a file descriptor while a function may still fail.
struct Descriptor {
  int fd;
  ~Descriptor() { ::close(fd); }
};

struct TemporaryFile {
  TemporaryPath path;
  int fd;
};

/// Calls make(name) with names in the folder of `path` until one is free. A name is unique among
/// live processes of this machine; one left by a process that was killed is passed over. The name
/// is known to TemporaryPath before the file is there, so that no signal finds it unknown.
template <class Make>
TemporaryFile make_temporary(const fs::path& path, const char* action, const Make& make) {
  static std::atomic<unsigned> count{0};
  while (true) {
    const auto name = fmt::format(".tilewright-{}-{}.tmp", ::getpid(), count++);
    TemporaryPath temporary(path.parent_path() / name);
    const int made = make(temporary.path().c_str());
    if (made >= 0) return {std::move(temporary), made};
    if (errno != EEXIST) fail_system(path, action, errno);
  }
}

std::string descriptor_path(int fd) {
  return fmt::format("/proc/self/fd/{}", fd);
}

fs::path folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

/// A file without a name in the folder of `path`; -1 where there can be none, or where it could not
/// be named later.
int open_unnamed(const fs::path& path) {
  const int fd = ::open(folder_of(path).c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
  if (fd < 0 || ::access(descriptor_path(fd).c_str(), F_OK) == 0) return fd;
  ::close(fd);
  return -1;
}

/// The file that a chain of links ends at; `path` itself if it is no link.
fs::path follow_links(const fs::path& path) {
  std::error_code error;
  if (!fs::is_symlink(path, error)) return path;
  const fs::path target = fs::weakly_canonical(path, error);
  if (error) fail_system(path, "follow the link", error.value());
  return target;
}

constexpr const char* kPartialSuffix = ".partial";

std::string partial_prefix(const fs::path& path) {
  return fmt::format(".{}.", path.filename().string());
}

/// A lock that ends with the process, however that ends; -1 if another one holds it, or where
/// folders cannot be locked.
int lock_folder(const fs::path& folder) {
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0 || ::flock(fd, LOCK_EX | LOCK_NB) == 0) return fd;
  ::close(fd);
  return -1;
}

/// Partial folders of `path` whose process has ended.
void remove_abandoned(const fs::path& path) {
  std::error_code error;
  std::vector<fs::path> found;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_of(path), error)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(partial_prefix(path)) && name.ends_with(kPartialSuffix))
      found.push_back(entry.path());
  }
  for (const fs::path& folder : found) {
    const int lock = lock_folder(folder);
    if (lock < 0) continue;
    fs::remove_all(folder, error);
    ::close(lock);
  }
}

/// The end of a long work is too late to find that a folder cannot be replaced.
void require_replaceable(const fs::path& path) {
  struct stat old {};
  if (::stat(path.c_str(), &old) != 0) return;  // its name is free
  std::error_code error;
  struct stat parent {};
  const bool is_mounted =
      ::stat(folder_of(path).c_str(), &parent) == 0 && parent.st_dev != old.st_dev;
  require(S_ISDIR(old.st_mode) && fs::is_empty(path, error) && !error, ErrorKind::kInvalidArgument,
          "{}: is no empty folder and cannot be replaced by one; give another name", path.string());
  require(!is_mounted && !fs::equivalent(path, ".", error), ErrorKind::kInvalidArgument,
          "{}: is {} and cannot be replaced by the finished folder; name a new folder in it",
          path.string(), is_mounted ? "where a file system is mounted" : "the working folder");
}

}  // namespace

MappedFile::MappedFile(const fs::path& path) {
  // O_NONBLOCK: opening a pipe without a writer would otherwise wait forever.
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.fd < 0) fail_system(path, "open the file", errno);
  struct stat status {};
  if (::fstat(file.fd, &status) != 0) fail_system(path, "read the size", errno);
  if (!S_ISREG(status.st_mode)) {
    fail(ErrorKind::kInvalidArgument, "{}: is not a regular file; give the path of one",
         path.string());
  }
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size == 0) return;  // mmap refuses to map nothing
  void* const data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.fd, 0);
  if (data == MAP_FAILED) fail_system(path, "map the file", errno);
  bytes_ = {static_cast<const std::byte*>(data), size};
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

AtomicFile::AtomicFile(const fs::path& path) : path_(follow_links(path)) {
  struct stat old {};
  const bool is_replacing = ::stat(path_.c_str(), &old) == 0;
  if (is_replacing && !S_ISREG(old.st_mode)) {
    fail(ErrorKind::kInvalidArgument,
         "{}: is not a regular file and cannot be replaced by one; give another name",
         path.string());
  }
  fd_ = open_unnamed(path_);
  if (fd_ < 0) {
    TemporaryFile temporary =
        make_temporary(path_, "create a file in its folder", [](const char* name) {
          return ::open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        });
    temporary_ = std::move(temporary.path);
    fd_ = temporary.fd;
  }
  // Best effort: permissions that cannot be kept are no reason to refuse to write.
  if (is_replacing) static_cast<void>(::fchmod(fd_, old.st_mode & 07777));
}

AtomicFile::~AtomicFile() {
  if (fd_ < 0) return;
  ::close(fd_);
  if (!temporary_.empty()) ::unlink(temporary_.path().c_str());
}

void AtomicFile::write_at(std::uint64_t offset_bytes, std::span<const std::byte> bytes) {
  require(fd_ >= 0, ErrorKind::kInvalidArgument, "{}: write_at() after commit()", path_.string());
  while (!bytes.empty()) {
    const ssize_t written =
        ::pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset_bytes));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail_system(path_, "write", errno);
    offset_bytes += static_cast<std::uint64_t>(written);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void AtomicFile::commit() {
  require(fd_ >= 0, ErrorKind::kInvalidArgument, "{}: commit() twice", path_.string());
  // Without this the name could reach the disk before the content does.
  if (::fsync(fd_) != 0) fail_system(path_, "write to the disk", errno);
  if (temporary_.empty()) name_file();
  if (!temporary_.empty() && ::rename(temporary_.path().c_str(), path_.c_str()) != 0) {
    fail_system(path_, "rename the finished file", errno);
  }
  temporary_.forget();
  ::close(std::exchange(fd_, -1));
}

// Its final name if nothing has it yet, else a temporary one, since only renaming replaces.
void AtomicFile::name_file() {
  const auto link = [this](const char* name) {
    return ::linkat(AT_FDCWD, descriptor_path(fd_).c_str(), AT_FDCWD, name, AT_SYMLINK_FOLLOW);
  };
  if (link(path_.c_str()) == 0) return;
  temporary_ = make_temporary(path_, "name the finished file", link).path;
}

AtomicFolder::AtomicFolder(const fs::path& path) : path_(follow_links(path)) {
  if (!path_.has_filename()) path_ = path_.parent_path();  // "folder/"
  require_replaceable(path_);
  remove_abandoned(path_);
  temporary_ = TemporaryPath(path_.parent_path() / fmt::format("{}{}{}", partial_prefix(path_),
                                                               static_cast<long>(::getpid()),
                                                               kPartialSuffix));
  if (::mkdir(temporary_.path().c_str(), 0777) != 0) fail_system(path_, "create the folder", errno);
  lock_ = lock_folder(temporary_.path());
  struct stat old {};
  if (::stat(path_.c_str(), &old) == 0)  // best effort, as for files
    static_cast<void>(::chmod(temporary_.path().c_str(), old.st_mode & 07777));
}

AtomicFolder::~AtomicFolder() {
  std::error_code ignored;
  if (!temporary_.empty()) fs::remove_all(temporary_.path(), ignored);
  if (lock_ >= 0) ::close(lock_);
}

void AtomicFolder::commit() {
  require(!temporary_.empty(), ErrorKind::kInvalidArgument, "{}: commit() twice", path_.string());
  if (::rename(temporary_.path().c_str(), path_.c_str()) != 0)
    fail_system(path_, "rename the finished folder", errno);
  temporary_.forget();
}

void write_file(const fs::path& path, std::span<const std::byte> bytes) {
  AtomicFile file(path);
  file.write_at(0, bytes);
  file.commit();
}

void write_file(const fs::path& path, std::string_view text) {
  write_file(path, std::as_bytes(std::span(text)));
}

}  // namespace tilewright
