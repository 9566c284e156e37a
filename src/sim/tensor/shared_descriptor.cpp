#include "sim/tensor/shared_descriptor.h"

#include <fmt/format.h>

namespace tilewright::sim {

namespace {

std::string_view name_of(SharedSwizzle swizzle) {
  switch (swizzle) {
    case SharedSwizzle::kNone:
      return "no swizzle";
    case SharedSwizzle::k32B:
      return "swizzle of 32 bytes";
    case SharedSwizzle::k64B:
      return "swizzle of 64 bytes";
    case SharedSwizzle::k128B:
      return "swizzle of 128 bytes";
    case SharedSwizzle::k128B32BAtom:
      return "swizzle of 128 bytes with atoms of 32";
  }
  return "";
}

constexpr std::uint64_t field_of(std::uint64_t bits, int high, int low) {
  return bits >> low & ((std::uint64_t{1} << (high - low + 1)) - 1);
}

}  // namespace

std::string check_shared_descriptor(std::uint64_t bits, int target) {
  const SharedDescriptor d = decode_shared_descriptor(bits);
  if (const auto version = field_of(bits, 48, 46); version != 1) {
    return fmt::format(
        "bits 48..46 are {}; they must be 1 in descriptors for tcgen05: set bit 46 (wgmma's "
        "descriptors have 0 there)",
        version);
  }
  if (const auto mode = field_of(bits, 63, 61); mode == 3 || mode == 5 || mode == 7) {
    return fmt::format(
        "the swizzle (bits 63..61) is {}; there are 0 none, 1 128 bytes with atoms of 32, 2 128 "
        "bytes, 4 64 bytes, 6 32 bytes (wgmma counts otherwise, in bits 63..62)",
        mode);
  }
  if (const auto zero = field_of(bits, 60, 53); zero != 0) {
    return fmt::format("bits 60..53 are {:#x}; they must be 0", zero);
  }
  if (d.is_leading_absolute && target != 103) {
    return fmt::format("bit 52 (the leading offset is an address) is 1; it must be 0 on sm_{}a",
                       target);
  }
  if (d.is_leading_absolute && d.swizzle != SharedSwizzle::k128B) {
    return fmt::format(
        "bit 52 (the leading offset is an address) is 1 with {}; it needs the swizzle of 128 bytes",
        name_of(d.swizzle));
  }
  if (d.base_offset != 0) {
    return fmt::format(
        "the base offset (bits 51..49) is {}; other than 0 is not simulated: align the tile to its "
        "swizzle pattern",
        d.base_offset);
  }
  return {};
}

std::string check_unused_bits(std::uint64_t bits) {
  for (const int low : {14, 30}) {
    if (const auto unused = field_of(bits, low + 1, low); unused != 0) {
      return fmt::format(
          "bits {}..{} are {}; they mean nothing and should be 0: mask addresses and "
          "offsets with 0x3ffff before the shift",
          low + 1, low, unused);
    }
  }
  return {};
}

std::string describe_shared_descriptor(std::uint64_t bits) {
  const SharedDescriptor d = decode_shared_descriptor(bits);
  return fmt::format("{:#018x}: start address {:#x}, {} {:#x}, stride offset {:#x} bytes, {}", bits,
                     d.start_address, d.is_leading_absolute ? "second part at" : "leading offset",
                     d.leading_bytes, d.stride_bytes, name_of(d.swizzle));
}

}  // namespace tilewright::sim
