#include "sim/state/global_memory.h"

#include "base/error.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <deque>
#include <iterator>
#include <limits>
#include <shared_mutex>
#include <utility>

#include <sys/mman.h>
#include <unistd.h>

namespace tilewright::sim {

namespace {

constexpr unsigned char kPattern = 0xcd;
constexpr std::uint64_t kMinAlignment = 512;
constexpr std::uint64_t kPageBytes = 4096;
/// From this size on, fresh memory shows pages of one shared file instead of being written.
constexpr std::uint64_t kLazyBytes = 32 << 20;
/// So many freed allocations are remembered, for messages about accesses to them.
constexpr std::size_t kMostFreed = 16384;

std::uint64_t round_up(std::uint64_t value, std::uint64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

void* at(std::uint64_t address) {
  return reinterpret_cast<void*>(address);
}

/// A file of kLazyBytes full of the pattern; -1 where the system has no such files.
int pattern_file() {
  static const int file = [] {
    const int descriptor = memfd_create("tilewright_pattern", MFD_CLOEXEC);
    if (descriptor < 0 || ftruncate(descriptor, kLazyBytes) != 0) return -1;
    void* const pages =
        mmap(nullptr, kLazyBytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (pages == MAP_FAILED) return -1;
    std::memset(pages, kPattern, kLazyBytes);
    munmap(pages, kLazyBytes);
    return descriptor;
  }();
  return file;
}

/// Pages of the file, copied by the system when they are written: an allocation costs memory only
/// where it is used. False if the system refuses.
bool map_pattern(std::uint64_t begin, std::uint64_t end) {
  for (std::uint64_t address = begin; address < end; address += kLazyBytes) {
    const std::uint64_t bytes = std::min(kLazyBytes, end - address);
    if (mmap(at(address), bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE,
             pattern_file(), 0) == MAP_FAILED) {
      return false;
    }
  }
  return true;
}

void fill(std::uint64_t begin, std::uint64_t size_bytes) {
  const std::uint64_t end = begin + size_bytes;
  const std::uint64_t first_page = round_up(begin, kPageBytes);
  const std::uint64_t last_page = end / kPageBytes * kPageBytes;
  if (size_bytes < kLazyBytes || pattern_file() < 0 || !map_pattern(first_page, last_page)) {
    std::memset(at(begin), kPattern, size_bytes);
    return;
  }
  std::memset(at(begin), kPattern, first_page - begin);
  std::memset(at(last_page), kPattern, end - last_page);
}

/// Gives the whole pages in the range back to the system; they read as zero afterwards.
void discard(std::uint64_t begin, std::uint64_t size_bytes) {
  const std::uint64_t first_page = round_up(begin, kPageBytes);
  const std::uint64_t last_page = (begin + size_bytes) / kPageBytes * kPageBytes;
  if (first_page >= last_page) return;
  if (size_bytes < kLazyBytes) {
    madvise(at(first_page), last_page - first_page, MADV_DONTNEED);
    return;
  }
  // Drops mappings of the pattern, too: the range becomes one with its surroundings again.
  mmap(at(first_page), last_page - first_page, PROT_READ | PROT_WRITE,
       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

}  // namespace

struct GlobalMemory::State {
  mutable std::shared_mutex mutex;
  std::map<std::uint64_t, Allocation> allocations;  // by address; live and freed, never overlapping
  std::map<std::uint64_t, Allocation> host_ranges;
  std::uint64_t next = 0;  // nothing from here on was ever given out
  std::uint64_t next_id = 1;
  std::uint64_t used_bytes = 0;
  std::atomic<std::uint64_t> version = 0;
  std::deque<std::pair<std::uint64_t, std::uint64_t>> freed;  // address and id, the oldest first
  std::function<void(std::uint64_t, std::uint64_t)> free_listener;

  std::pair<std::uint64_t, std::uint64_t> unused_around(const Allocation& allocation) const;
  void remember_freed(const Allocation& allocation);
  std::optional<std::uint64_t> place_fresh(std::uint64_t size, std::uint64_t align,
                                           std::uint64_t end);
  std::optional<std::uint64_t> place_freed(std::uint64_t size, std::uint64_t align,
                                           std::uint64_t begin, std::uint64_t end);
};

std::optional<std::uint64_t> GlobalMemory::State::place_fresh(std::uint64_t size,
                                                              std::uint64_t align,
                                                              std::uint64_t end) {
  const std::uint64_t address = round_up(next, align);
  if (address > end || size > end - address) return std::nullopt;
  next = address + size;
  return address;
}

/// From where to where nothing is live, within the pages of an allocation that was freed. Small
/// allocations share pages: the last of them to go takes the page along.
std::pair<std::uint64_t, std::uint64_t> GlobalMemory::State::unused_around(
    const Allocation& allocation) const {
  const std::uint64_t end = allocation.address + allocation.size_bytes;
  std::uint64_t from = allocation.address / kPageBytes * kPageBytes;
  std::uint64_t to = round_up(end, kPageBytes);
  const auto self = allocations.find(allocation.address);
  for (auto it = self; it != allocations.begin();) {
    const Allocation& before = (--it)->second;
    const std::uint64_t before_end = before.address + before.size_bytes;
    if (before_end <= from) break;
    if (!before.is_freed) from = before_end;
  }
  for (auto it = std::next(self); it != allocations.end() && it->first < to; ++it) {
    if (!it->second.is_freed) to = it->first;
  }
  return {from, to};
}

void GlobalMemory::State::remember_freed(const Allocation& allocation) {
  freed.emplace_back(allocation.address, allocation.id);
  if (freed.size() <= kMostFreed) return;
  const auto [address, id] = freed.front();
  freed.pop_front();
  // Its addresses may have another owner by now.
  const auto oldest = allocations.find(address);
  if (oldest != allocations.end() && oldest->second.id == id) allocations.erase(oldest);
}

/// The first gap between live allocations that is large enough. What was freed there is forgotten.
std::optional<std::uint64_t> GlobalMemory::State::place_freed(std::uint64_t size,
                                                              std::uint64_t align,
                                                              std::uint64_t begin,
                                                              std::uint64_t end) {
  std::uint64_t gap = begin;
  auto it = allocations.begin();
  while (true) {
    while (it != allocations.end() && it->second.is_freed) ++it;
    const std::uint64_t gap_end = it == allocations.end() ? end : it->first;
    const std::uint64_t address = round_up(gap, align);
    if (address <= gap_end && size <= gap_end - address) {
      const auto overlaps = [&](const Allocation& a) {
        return a.address < address + size && address < a.address + a.size_bytes;
      };
      std::erase_if(allocations, [&](const auto& entry) { return overlaps(entry.second); });
      next = std::max(next, address + size);
      return address;
    }
    if (it == allocations.end()) return std::nullopt;
    gap = it->first + it->second.size_bytes;
    ++it;
  }
}

GlobalMemory::GlobalMemory(std::uint64_t capacity_bytes)
    : capacity_bytes_(round_up(capacity_bytes, kPageBytes)),
      reserved_bytes_(round_up(capacity_bytes_ + capacity_bytes_ / 16, kPageBytes)) {
  void* const range = mmap(nullptr, reserved_bytes_, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  require(range != MAP_FAILED, ErrorKind::kOutOfMemory,
          "sim: the system refuses {} bytes of address space for global memory: {}. Raise the "
          "limit (ulimit -v) or allow overcommitment (vm.overcommit_memory)",
          reserved_bytes_, std::strerror(errno));
  begin_ = reinterpret_cast<std::uint64_t>(range);
  state_ = new State;
  state_->next = begin_;
}

GlobalMemory::~GlobalMemory() {
  munmap(at(begin_), reserved_bytes_);
  delete state_;
}

std::uint64_t GlobalMemory::allocate(std::uint64_t size_bytes, std::string origin,
                                     std::uint64_t align_bytes) {
  const std::lock_guard lock(state_->mutex);
  const std::uint64_t align = std::max(align_bytes, kMinAlignment);
  require((align & (align - 1)) == 0, ErrorKind::kInvalidArgument,
          "sim: {}: alignment {} is no power of two", origin, align_bytes);
  const auto refuse = [&] {
    fail(ErrorKind::kOutOfMemory, "sim: {}: {} bytes requested, {} of {} in use", origin,
         size_bytes, state_->used_bytes, capacity_bytes_);
  };
  if (size_bytes > capacity_bytes_ - state_->used_bytes) refuse();
  const std::uint64_t size = round_up(std::max<std::uint64_t>(size_bytes, 1), kMinAlignment);
  std::optional<std::uint64_t> address;
  // With some room behind, so that an access just past the end is in no other allocation.
  for (const std::uint64_t room : {kMinAlignment, std::uint64_t{0}}) {
    if (!address) address = state_->place_fresh(size + room, align, end());
    if (!address) address = state_->place_freed(size + room, align, begin_, end());
  }
  if (!address) refuse();
  fill(*address, size);
  state_->allocations[*address] = {.address = *address,
                                   .size_bytes = size_bytes,
                                   .id = state_->next_id++,
                                   .is_freed = false,
                                   .origin = std::move(origin)};
  state_->used_bytes += size_bytes;
  ++state_->version;
  return *address;
}

void GlobalMemory::free(std::uint64_t address) {
  const std::lock_guard lock(state_->mutex);
  const auto found = state_->allocations.find(address);
  require(found != state_->allocations.end(), ErrorKind::kInvalidArgument,
          "sim: free of {:#x}, which is not the start of an allocation", address);
  Allocation& allocation = found->second;
  require(!allocation.is_freed, ErrorKind::kInvalidArgument,
          "sim: {:#x} ({}, {} bytes) is freed a second time", address, allocation.origin,
          allocation.size_bytes);
  allocation.is_freed = true;
  state_->used_bytes -= allocation.size_bytes;
  const auto [from, to] = state_->unused_around(allocation);
  discard(from, to - from);
  if (state_->free_listener) state_->free_listener(from, to - from);
  state_->remember_freed(allocation);
  ++state_->version;
}

void GlobalMemory::set_free_listener(std::function<void(std::uint64_t, std::uint64_t)> listener) {
  const std::lock_guard lock(state_->mutex);
  state_->free_listener = std::move(listener);
}

std::optional<GlobalMemory::Allocation> GlobalMemory::find(std::uint64_t address) const {
  const std::shared_lock lock(state_->mutex);
  const bool is_ours = address >= begin_ && address < end();
  const auto& ranges = is_ours ? state_->allocations : state_->host_ranges;
  auto next = ranges.upper_bound(address);
  if (next == ranges.begin()) return std::nullopt;
  const Allocation& candidate = std::prev(next)->second;
  if (address - candidate.address >= candidate.size_bytes) return std::nullopt;
  return candidate;
}

std::vector<GlobalMemory::Allocation> GlobalMemory::live() const {
  const std::shared_lock lock(state_->mutex);
  std::vector<Allocation> out;
  for (const auto& [address, allocation] : state_->allocations) {
    if (!allocation.is_freed) out.push_back(allocation);
  }
  return out;
}

void GlobalMemory::add_host_range(std::uint64_t address, std::uint64_t size_bytes,
                                  std::string origin) {
  const std::lock_guard lock(state_->mutex);
  state_->host_ranges[address] = {.address = address,
                                  .size_bytes = size_bytes,
                                  .id = state_->next_id++,
                                  .is_freed = false,
                                  .origin = std::move(origin)};
  ++state_->version;
}

void GlobalMemory::remove_host_range(std::uint64_t address) {
  const std::lock_guard lock(state_->mutex);
  state_->host_ranges.erase(address);
  ++state_->version;
}

std::uint64_t GlobalMemory::used_bytes() const {
  const std::shared_lock lock(state_->mutex);
  return state_->used_bytes;
}

std::uint64_t GlobalMemory::version() const noexcept {
  return state_->version.load(std::memory_order_acquire);
}

}  // namespace tilewright::sim
