// Which sources a program was built from, as logs say it.
#pragma once

#include <string>
#include <string_view>

namespace tilewright {

struct SourceCommit {
  std::string hash;       ///< "unknown" outside of a repository
  bool is_dirty = false;  ///< the sources differed from the commit

  bool operator==(const SourceCommit&) const = default;
};

/// "cad4f89822a4" or "cad4f89822a4-dirty".
SourceCommit parse_commit(std::string_view text);

/// What the environment variable TILEWRIGHT_COMMIT says, else what the build found.
SourceCommit source_commit(std::string_view built);

/// In the library tilewright_commit, which is made at every build (cmake/commit.cmake).
extern const char kBuiltCommit[];

}  // namespace tilewright
