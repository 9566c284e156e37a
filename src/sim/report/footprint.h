// Which sectors of global memory a launch has touched.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>

namespace tilewright::sim {

/// A set of 32-byte sectors.
class Footprint {
 public:
  void add(std::uint64_t address, std::uint64_t bytes);
  void add(const Footprint& other);
  std::uint64_t num_sectors() const noexcept { return num_sectors_; }

 private:
  static constexpr std::uint64_t kPageSectors = 128;
  using Page = std::array<std::uint64_t, kPageSectors / 64>;

  Page& page(std::uint64_t number);

  std::unordered_map<std::uint64_t, Page> pages_;
  std::uint64_t last_number_ = ~std::uint64_t{0};
  Page* last_page_ = nullptr;
  std::uint64_t num_sectors_ = 0;
};

}  // namespace tilewright::sim
