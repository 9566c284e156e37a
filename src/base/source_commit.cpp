#include "base/source_commit.h"

#include "base/env.h"

namespace tilewright {

SourceCommit parse_commit(std::string_view text) {
  constexpr std::string_view kMark = "-dirty";
  const bool is_dirty = text.ends_with(kMark);
  if (is_dirty) text.remove_suffix(kMark.size());
  return {std::string(text.empty() ? "unknown" : text), is_dirty};
}

SourceCommit source_commit(std::string_view built) {
  const std::string given = env_text("TILEWRIGHT_COMMIT");
  return parse_commit(given.empty() ? built : given);
}

}  // namespace tilewright
