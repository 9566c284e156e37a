// Reference of lists of the keys that a mask shows.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace tilewright::reference {

/// The keys j < keys, ascending, for which is_set(j / key_block): all of a list.
inline std::vector<std::int64_t> list_keys(std::int64_t keys, std::int64_t key_block,
                                           const std::function<bool(std::int64_t)>& is_set) {
  std::vector<std::int64_t> list;
  for (std::int64_t key = 0; key < keys; ++key)
    if (is_set(key / key_block)) list.push_back(key);
  return list;
}

}  // namespace tilewright::reference
