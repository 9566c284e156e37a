// Parts of a caller's workspace: where each begins, and how to get there.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tilewright::ops {

/// Of a workspace, and of each of its parts.
inline constexpr std::size_t kWorkspaceAlignment = 256;

constexpr std::size_t align_workspace(std::size_t bytes) {
  return (bytes + kWorkspaceAlignment - 1) / kWorkspaceAlignment * kWorkspaceAlignment;
}

/// Cuts a workspace into parts, one behind the other.
class Carver {
 public:
  /// Where a part of so many elements begins.
  constexpr std::size_t carve(std::int64_t count, std::size_t elem_bytes = 1) {
    const std::size_t at = total_;
    total_ += align_workspace(static_cast<std::size_t>(count) * elem_bytes);
    return at;
  }
  constexpr std::size_t total() const { return total_; }

 private:
  std::size_t total_ = 0;
};

/// The part that begins there.
template <class T>
T* part_of(void* workspace, std::size_t offset) noexcept {
  return reinterpret_cast<T*>(static_cast<std::byte*>(workspace) + offset);
}

}  // namespace tilewright::ops
