#include "sim/state/byte_shadow.h"

#include "base/error.h"

#include <algorithm>

#include <sys/mman.h>

namespace tilewright::sim {

namespace {
constexpr std::uint64_t kPage = 4096;
}

ByteShadow::ByteShadow(std::uint64_t begin, std::uint64_t end) : begin_(begin), end_(end) {
  void* const found = mmap(nullptr, end - begin, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  require(found != MAP_FAILED, ErrorKind::kOutOfMemory,
          "simulator: no address space of {} bytes for the init check; take it away with "
          "TILEWRIGHT_SIM_CHECK=default,-init",
          end - begin);
  shadow_ = static_cast<std::uint8_t*>(found);
}

ByteShadow::~ByteShadow() {
  munmap(shadow_, end_ - begin_);
}

void ByteShadow::copy(std::uint64_t to, std::uint64_t from, std::uint64_t bytes) noexcept {
  if (!contains(to, bytes)) return;
  if (contains(from, bytes)) {
    std::memmove(at(to), at(from), bytes);
  } else {
    set(to, bytes, true);
  }
}

void ByteShadow::set(std::uint64_t address, std::uint64_t bytes, bool is_defined) noexcept {
  constexpr std::uint64_t kWorthACall = 64 * kPage;  // of the system
  if (!is_defined && bytes >= kWorthACall) return forget(address, bytes);
  const std::uint64_t from = std::max(address, begin_);
  const std::uint64_t to = std::min(address + bytes, end_);
  if (from < to) std::memset(at(from), is_defined ? kDefinedByte : 0, to - from);
}

void ByteShadow::forget(std::uint64_t address, std::uint64_t bytes) noexcept {
  const std::uint64_t from = std::max(address, begin_);
  const std::uint64_t to = std::min(address + bytes, end_);
  if (from >= to) return;
  const std::uint64_t first = (from - begin_ + kPage - 1) / kPage * kPage + begin_;
  const std::uint64_t last = (to - begin_) / kPage * kPage + begin_;
  if (first < last && madvise(at(first), last - first, MADV_DONTNEED) == 0) {
    std::memset(at(from), 0, first - from);
    std::memset(at(last), 0, to - last);
  } else {
    std::memset(at(from), 0, to - from);
  }
}

}  // namespace tilewright::sim
