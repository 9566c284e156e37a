// What holds for whatever fatbin the driver is given.
#pragma once

#include "sim/driver/objects/module.h"
#include "tests/fuzz/properties.h"

#include <vector>

namespace tilewright::fuzz {

/// The driver is given an address without a size, so that it must believe the first header: that
/// one is made true here, and a zero is put behind everything. All else may say what it likes.
/// Returns whether there is PTX in it.
inline bool check_fatbin(std::span<const std::byte> bytes) {
  constexpr std::uint32_t kMagic = 0xba55ed50;
  constexpr std::uint16_t kHeaderBytes = 16;
  if (bytes.size() < kHeaderBytes) return false;
  std::vector<std::byte> image(bytes.begin(), bytes.end());
  const std::uint64_t payload_bytes = image.size() - kHeaderBytes;
  std::memcpy(image.data(), &kMagic, sizeof kMagic);
  std::memcpy(image.data() + 6, &kHeaderBytes, sizeof kHeaderBytes);
  std::memcpy(image.data() + 8, &payload_bytes, sizeof payload_bytes);
  sim::DeviceModel model;
  model.compute_capability = 90;
  try {
    sim::cubin_of(image.data(), model);
    const std::string text = sim::ptx_of(image.data(), model);
    check(text.find('\0') == text.npos, "a text with a zero in it");
    return true;
  } catch (const sim::Failure&) {
    return false;
  }
}

}  // namespace tilewright::fuzz
