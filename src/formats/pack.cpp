#include "formats/pack.h"

#include "base/error.h"

#include <limits>

namespace tilewright {

namespace {

void require_code_width(const char* function, int bits) {
  require(bits == 4 || bits == 6 || bits == 8, ErrorKind::kInvalidArgument,
          "{}: bits = {}; expected 4, 6 or 8, the widths of the narrow formats.", function, bits);
}

}  // namespace

std::vector<uint8_t> pack_codes(std::span<const uint8_t> codes, int bits, Packing packing) {
  require_code_width("pack_codes", bits);
  const int64_t num_codes = std::ssize(codes);
  std::vector<uint8_t> bytes(packed_bytes(packing, bits, num_codes));
  for (int64_t i = 0; i < num_codes; ++i) {
    require(codes[i] >> bits == 0, ErrorKind::kInvalidArgument,
            "pack_codes: codes[{}] = {:#04x} has more than {} bits. Mask the codes, or pass the "
            "width they were encoded with.",
            i, codes[i], bits);
    store_code(bytes.data(), packing, bits, i, codes[i]);
  }
  return bytes;
}

std::vector<uint8_t> unpack_codes(std::span<const uint8_t> bytes, int bits, int64_t num_codes,
                                  Packing packing) {
  require_code_width("unpack_codes", bits);
  // A code takes at least half a byte: the first test keeps packed_bytes() from overflowing.
  const bool is_size_right = num_codes >= 0 && num_codes / 2 <= std::ssize(bytes) &&
                             packed_bytes(packing, bits, num_codes) == std::ssize(bytes);
  require(is_size_right, ErrorKind::kInvalidArgument,
          "unpack_codes: {} bytes given for {} codes of {} bits{}; the two do not fit. Pass the "
          "whole packed array and the number of codes that were packed.",
          bytes.size(), num_codes, bits, packing == Packing::kDense ? "" : " in padded groups");
  std::vector<uint8_t> codes(num_codes);
  for (int64_t i = 0; i < num_codes; ++i) codes[i] = load_code(bytes.data(), packing, bits, i);
  return codes;
}

}  // namespace tilewright
