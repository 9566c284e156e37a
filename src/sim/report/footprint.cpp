#include "sim/report/footprint.h"

#include "sim/report/access_cost.h"

#include <bit>

namespace tilewright::sim {

Footprint::Page& Footprint::page(std::uint64_t number) {
  if (number != last_number_) {
    last_page_ = &pages_[number];  // stays where it is when the map grows
    last_number_ = number;
  }
  return *last_page_;
}

void Footprint::add(std::uint64_t address, std::uint64_t bytes) {
  const std::uint64_t end = (address + bytes + kSectorBytes - 1) / kSectorBytes;
  for (std::uint64_t sector = address / kSectorBytes; sector < end; ++sector) {
    std::uint64_t& word = page(sector / kPageSectors)[sector % kPageSectors / 64];
    const std::uint64_t bit = std::uint64_t{1} << sector % 64;
    num_sectors_ += (word & bit) == 0;
    word |= bit;
  }
}

void Footprint::add(const Footprint& other) {
  for (const auto& [number, theirs] : other.pages_) {
    Page& mine = page(number);
    for (std::size_t i = 0; i < mine.size(); ++i) {
      num_sectors_ += static_cast<std::uint64_t>(std::popcount(theirs[i] & ~mine[i]));
      mine[i] |= theirs[i];
    }
  }
}

}  // namespace tilewright::sim
