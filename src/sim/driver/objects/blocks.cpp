#include "sim/driver/objects/blocks.h"

#include <iterator>

namespace tilewright::sim {

void Blocks::add(Block block) {
  const std::lock_guard lock(mutex_);
  block.id = next_id_++;
  blocks_[block.address] = block;
}

std::optional<Block> Blocks::find(std::uint64_t address) const {
  const std::lock_guard lock(mutex_);
  const auto next = blocks_.upper_bound(address);
  if (next == blocks_.begin()) return std::nullopt;
  const Block& block = std::prev(next)->second;
  return address < block.end() ? std::optional(block) : std::nullopt;
}

std::optional<Block> Blocks::take(std::uint64_t address) {
  const std::lock_guard lock(mutex_);
  const auto found = blocks_.find(address);
  if (found == blocks_.end()) return std::nullopt;
  const Block block = found->second;
  blocks_.erase(found);
  return block;
}

std::vector<Block> Blocks::take_of(const Context& context) {
  const std::lock_guard lock(mutex_);
  std::vector<Block> taken;
  for (const auto& [address, block] : blocks_) {
    if (block.context == &context) taken.push_back(block);
  }
  for (const Block& block : taken) blocks_.erase(block.address);
  return taken;
}

std::vector<Block> Blocks::of_host() const {
  const std::lock_guard lock(mutex_);
  std::vector<Block> found;
  for (const auto& [address, block] : blocks_) {
    if (block.is_host()) found.push_back(block);
  }
  return found;
}

bool Blocks::overlaps(std::uint64_t address, std::uint64_t size_bytes) const {
  const std::lock_guard lock(mutex_);
  const auto next = blocks_.lower_bound(address + size_bytes);
  return next != blocks_.begin() && std::prev(next)->second.end() > address;
}

void Blocks::set_sync_memops(std::uint64_t address, bool is_on) {
  const std::lock_guard lock(mutex_);
  const auto next = blocks_.upper_bound(address);
  if (next != blocks_.begin()) std::prev(next)->second.is_sync_memops = is_on;
}

std::uint64_t Blocks::bytes_of(const MemoryPool& pool) const {
  const std::lock_guard lock(mutex_);
  std::uint64_t sum = 0;
  for (const auto& [address, block] : blocks_) {
    if (block.pool == &pool) sum += block.size_bytes;
  }
  return sum;
}

}  // namespace tilewright::sim
