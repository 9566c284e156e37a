#include "base/file.h"

#include "tests/base/expect_error.h"
#include "tests/base/scoped_folder.h"

#include <csignal>
#include <cstring>
#include <fstream>
#include <string>

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tilewright {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;

void write_plainly(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

std::string read_plainly(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

TEST(MappedFile, ShowsTheContent) {
  const ScopedFolder folder;
  write_plainly(folder / "a", std::string("one\0two", 7));
  const MappedFile file(folder / "a");
  EXPECT_EQ(file.text(), std::string_view("one\0two", 7));
  EXPECT_EQ(file.bytes().size(), 7u);
}

TEST(MappedFile, MayBeEmpty) {
  const ScopedFolder folder;
  write_plainly(folder / "a", "");
  EXPECT_TRUE(MappedFile(folder / "a").bytes().empty());
}

TEST(MappedFile, MovesItsMap) {
  const ScopedFolder folder;
  write_plainly(folder / "a", "first");
  write_plainly(folder / "b", "second");
  MappedFile a(folder / "a");
  MappedFile moved(std::move(a));
  EXPECT_EQ(moved.text(), "first");
  moved = MappedFile(folder / "b");
  EXPECT_EQ(moved.text(), "second");
}

TEST(MappedFile, RefusalsNamePathAndReason) {
  const ScopedFolder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  const auto open_error = [&](const std::string& name) {
    return error_of(ErrorKind::kInvalidArgument, [&] { MappedFile(folder / name); });
  };
  EXPECT_EQ(open_error("none"),
            (folder / "none").string() + ": cannot open the file: No such file or directory");
  EXPECT_EQ(open_error(""),
            (folder / "").string() + ": is not a regular file; give the path of one");
  EXPECT_THAT(open_error("pipe"), HasSubstr("pipe: is not a regular file"));
}

TEST(AtomicFile, AppearsOnlyWhenCommitted) {
  const ScopedFolder folder;
  AtomicFile file(folder / "a");
  file.write_at(0, bytes_of("content"));
  EXPECT_FALSE(fs::exists(folder / "a"));
  file.commit();
  EXPECT_EQ(read_plainly(folder / "a"), "content");
  EXPECT_THAT(folder.names(), ElementsAre("a"));
}

TEST(AtomicFile, WithoutCommitLeavesEverythingAsItWas) {
  const ScopedFolder folder;
  write_plainly(folder / "a", "old");
  {
    AtomicFile file(folder / "a");
    file.write_at(0, bytes_of("new content"));
  }
  EXPECT_EQ(read_plainly(folder / "a"), "old");
  EXPECT_THAT(folder.names(), ElementsAre("a"));
}

TEST(AtomicFile, WritesPiecesInAnyOrder) {
  const ScopedFolder folder;
  AtomicFile file(folder / "a");
  file.write_at(6, bytes_of("67"));
  file.write_at(0, bytes_of("0123"));
  file.write_at(1, bytes_of("x"));
  file.commit();
  EXPECT_EQ(read_plainly(folder / "a"), std::string("0x23\0\00067", 8));
}

TEST(AtomicFile, ReplacedFileStaysReadableInAnOldMap) {
  const ScopedFolder folder;
  write_plainly(folder / "a", "old content");
  const MappedFile old(folder / "a");
  write_file(folder / "a", std::string_view("new"));
  EXPECT_EQ(old.text(), "old content");
  EXPECT_EQ(read_plainly(folder / "a"), "new");
}

TEST(AtomicFile, KeepsPermissions) {
  const ScopedFolder folder;
  write_plainly(folder / "a", "old");
  fs::permissions(folder / "a", fs::perms::owner_all | fs::perms::group_read);
  write_file(folder / "a", std::string_view("new"));
  EXPECT_EQ(fs::status(folder / "a").permissions(), fs::perms::owner_all | fs::perms::group_read);
}

TEST(AtomicFile, NewFilesObeyTheUmask) {
  const ScopedFolder folder;
  const mode_t old_mask = ::umask(027);
  write_file(folder / "a", std::string_view("new"));
  ::umask(old_mask);
  EXPECT_EQ(static_cast<int>(fs::status(folder / "a").permissions()), 0640);
}

TEST(AtomicFile, FollowsLinks) {
  const ScopedFolder folder;
  fs::create_directory(folder / "sub");
  write_plainly(folder / "sub/target", "old");
  fs::create_symlink("sub/target", folder / "link");
  write_file(folder / "link", std::string_view("new"));
  EXPECT_TRUE(fs::is_symlink(folder / "link"));
  EXPECT_EQ(read_plainly(folder / "sub/target"), "new");
}

TEST(AtomicFile, TakesTheLongestName) {
  const ScopedFolder folder;
  const std::string name(255, 'n');
  write_file(folder / name, std::string_view("content"));
  EXPECT_EQ(read_plainly(folder / name), "content");
}

TEST(AtomicFile, PassesOverWhatAKilledProcessLeft) {
  const ScopedFolder folder;
  write_plainly(folder / "a", "old");
  // .tilewright-<process>-<count>.tmp: one of these would be the next name.
  constexpr int kMany = 1000;
  for (int i = 0; i < kMany; ++i)
    write_plainly(
        folder / (".tilewright-" + std::to_string(::getpid()) + "-" + std::to_string(i) + ".tmp"),
        "left");
  write_file(folder / "a", std::string_view("content"));
  EXPECT_EQ(read_plainly(folder / "a"), "content");
  EXPECT_EQ(folder.names().size(), kMany + 1u);
  for (const std::string& name : folder.names())
    EXPECT_EQ(read_plainly(folder / name), name == "a" ? "content" : "left");
}

TEST(AtomicFile, HasNoNameBeforeItIsComplete) {
  const ScopedFolder folder;
  {
    AtomicFile file(folder / "a");
    file.write_at(0, bytes_of("half"));
    const auto names = folder.names();
    if (!names.empty()) GTEST_SKIP() << "this file system has no files without names";
  }
  EXPECT_TRUE(folder.names().empty());
  write_plainly(folder / "a", "old");
  AtomicFile file(folder / "a");
  file.write_at(0, bytes_of("new"));
  EXPECT_EQ(folder.names().size(), 1u);
  file.commit();
  EXPECT_EQ(read_plainly(folder / "a"), "new");
  EXPECT_EQ(folder.names().size(), 1u);
}

TEST(TemporaryPath, WhatIsNamedIsRemovedUnlessForgotten) {
  const ScopedFolder folder;
  for (const char* name : {"kept", "file"}) write_plainly(folder / name, "x");
  fs::create_directory(folder / "sub");
  write_plainly(folder / "sub/inner", "x");
  TemporaryPath kept(folder / "kept"), file(folder / "file");
  const TemporaryPath sub(folder / "sub");
  TemporaryPath moved = std::move(kept);
  moved.forget();
  remove_temporary_paths();
  EXPECT_EQ(folder.names(), std::vector<std::string>{"kept"});
}

TEST(AtomicFile, RefusalsNamePathAndReason) {
  const ScopedFolder folder;
  const auto error = [](const fs::path& path) {
    return error_of(ErrorKind::kInvalidArgument, [&] { AtomicFile{path}; });
  };
  EXPECT_EQ(error(folder / "none/a"),
            (folder / "none/a").string() +
                ": cannot create a file in its folder: No such file or directory");
  EXPECT_EQ(error(folder.path()),
            folder.path().string() +
                ": is not a regular file and cannot be replaced by one; give another name");
  fs::create_symlink("loop", folder / "loop");
  EXPECT_THAT(error(folder / "loop"),
              HasSubstr("loop: cannot follow the link: Too many levels of symbolic links"));
}

TEST(AtomicFile, CannotBeWrittenAfterCommit) {
  const ScopedFolder folder;
  AtomicFile file(folder / "a");
  file.commit();
  EXPECT_THAT(error_of(ErrorKind::kInvalidArgument, [&] { file.write_at(0, bytes_of("x")); }),
              EndsWith("a: write_at() after commit()"));
  EXPECT_THAT(error_of(ErrorKind::kInvalidArgument, [&] { file.commit(); }),
              EndsWith("a: commit() twice"));
}

/// No file may grow beyond that many bytes while this lives.
struct ScopedFileSizeLimit {
  explicit ScopedFileSizeLimit(rlim_t max_bytes) {
    ::getrlimit(RLIMIT_FSIZE, &old_limit);
    const rlimit limit{max_bytes, old_limit.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    old_handler = std::signal(SIGXFSZ, SIG_IGN);
  }
  ~ScopedFileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &old_limit);
    std::signal(SIGXFSZ, old_handler);
  }
  rlimit old_limit{};
  void (*old_handler)(int) = nullptr;
};

TEST(AtomicFile, FailureToWriteLosesNothing) {
  const ScopedFolder folder;
  write_plainly(folder / "a", "old");
  {
    const ScopedFileSizeLimit limit(1000);
    // The first write comes back short, the next fails.
    EXPECT_EQ(error_of(ErrorKind::kInvalidArgument,
                       [&] { write_file(folder / "a", std::string_view(std::string(2000, 'x'))); }),
              (folder / "a").string() + ": cannot write: File too large");
  }
  EXPECT_EQ(read_plainly(folder / "a"), "old");
  EXPECT_THAT(folder.names(), ElementsAre("a"));
}

TEST(AtomicFolder, AppearsWhenItIsComplete) {
  const ScopedFolder folder;
  {
    AtomicFolder made(folder / "out/");
    write_plainly(made.path() / "a", "text");
    EXPECT_FALSE(fs::exists(folder / "out"));
    made.commit();
    EXPECT_THAT(error_of(ErrorKind::kInvalidArgument, [&] { made.commit(); }),
                EndsWith("out: commit() twice"));
  }
  EXPECT_EQ(read_plainly(folder / "out" / "a"), "text");
  EXPECT_THAT(folder.names(), ElementsAre("out"));
}

TEST(AtomicFolder, WithoutCommitLeavesNothing) {
  const ScopedFolder folder;
  {
    const AtomicFolder made(folder / "out");
    write_plainly(made.path() / "a", "text");
  }
  EXPECT_TRUE(fs::is_empty(folder.path()));
  const AtomicFolder interrupted(folder / "out");
  write_plainly(interrupted.path() / "a", "text");
  remove_temporary_paths();
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

TEST(AtomicFolder, TakesThePlaceOfAnEmptyOneAndItsPermissions) {
  const ScopedFolder folder;
  fs::create_directory(folder / "out");
  fs::permissions(folder / "out", fs::perms::owner_all);
  fs::create_directory_symlink(folder / "out", folder / "link");
  AtomicFolder made(folder / "link");
  write_plainly(made.path() / "a", "text");
  made.commit();
  EXPECT_EQ(read_plainly(folder / "out" / "a"), "text");
  EXPECT_EQ(fs::status(folder / "out").permissions(), fs::perms::owner_all);
  EXPECT_TRUE(fs::is_symlink(folder / "link"));
}

TEST(AtomicFolder, RefusesWhatItCannotReplaceBeforeAnythingIsWritten) {
  const ScopedFolder folder;
  fs::create_directory(folder / "full");
  write_plainly(folder / "full" / "a", "mine");
  for (const fs::path& path : {folder / "full", folder / "full" / "a"})
    EXPECT_THAT(error_of(ErrorKind::kInvalidArgument, [&] { AtomicFolder{path}; }),
                EndsWith(path.filename().string() +
                         ": is no empty folder and cannot be replaced by one; give another name"));
  EXPECT_THAT(error_of(ErrorKind::kInvalidArgument, [&] { AtomicFolder{folder / "no" / "out"}; }),
              EndsWith("no/out: cannot create the folder: No such file or directory"));
  const fs::path before = fs::current_path();
  fs::create_directory(folder / "here");
  fs::current_path(folder / "here");
  EXPECT_THAT(error_of(ErrorKind::kInvalidArgument, [&] { AtomicFolder{folder / "here"}; }),
              HasSubstr("here: is the working folder and cannot be replaced"));
  fs::current_path(before);
  EXPECT_THAT(folder.names(), ::testing::UnorderedElementsAre("full", "here"));
}

}  // namespace
}  // namespace tilewright
