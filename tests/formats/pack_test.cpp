#include "formats/pack.h"

#include "tests/formats/expect_invalid.h"

#include <array>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright {
namespace {

using testing::ElementsAre;

std::vector<uint8_t> random_codes(int bits, int64_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<uint8_t> codes(count);
  for (uint8_t& code : codes) code = static_cast<uint8_t>(random() & ((1u << bits) - 1));
  return codes;
}

TEST(Pack, EvenElementInTheLowNibble) {
  EXPECT_THAT(pack_codes(std::array<uint8_t, 5>{0x1, 0x2, 0xa, 0xb, 0xf}, 4),
              ElementsAre(0x21, 0xba, 0x0f));
}

// Four 6-bit codes a b c d as one little-endian 24-bit number a + b * 2^6 + c * 2^12 + d * 2^18.
TEST(Pack, SixBitsAreALittleEndianBitStream) {
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    const auto codes = random_codes(6, 4, seed);
    const uint32_t word = codes[0] | codes[1] << 6 | codes[2] << 12 | codes[3] << 18;
    EXPECT_THAT(pack_codes(codes, 6), ElementsAre(word & 0xff, word >> 8 & 0xff, word >> 16));
  }
  EXPECT_THAT(pack_codes(std::array<uint8_t, 4>{0x3f, 0x00, 0x3f, 0x00}, 6),
              ElementsAre(0x3f, 0xf0, 0x03));
}

TEST(Pack, PaddedGroupsAreDenseGroupsAndZeros) {
  for (const int bits : {4, 6, 8}) {
    const auto codes = random_codes(bits, 40, bits);  // two and a half groups
    const auto padded = pack_codes(codes, bits, Packing::kPadded16);
    ASSERT_EQ(padded.size(), 48u);
    for (int group = 0; group < 3; ++group) {
      const auto first = codes.begin() + group * 16;
      auto dense = pack_codes({first, std::min(first + 16, codes.end())}, bits);
      dense.resize(16);
      EXPECT_TRUE(std::equal(dense.begin(), dense.end(), padded.begin() + group * 16)) << bits;
    }
  }
}

TEST(Pack, Sizes) {
  EXPECT_EQ(packed_bytes(Packing::kDense, 4, 16), 8);
  EXPECT_EQ(packed_bytes(Packing::kDense, 6, 16), 12);
  EXPECT_EQ(packed_bytes(Packing::kDense, 6, 5), 4);
  EXPECT_EQ(packed_bytes(Packing::kDense, 4, 0), 0);
  EXPECT_EQ(packed_bytes(Packing::kPadded16, 4, 16), 16);
  EXPECT_EQ(packed_bytes(Packing::kPadded16, 6, 17), 32);
}

TEST(Pack, RoundTripsAtEveryLength) {
  for (const Packing packing : {Packing::kDense, Packing::kPadded16}) {
    for (const int bits : {4, 6, 8}) {
      for (int64_t count = 0; count <= 50; ++count) {
        const auto codes = random_codes(bits, count, count);
        const auto bytes = pack_codes(codes, bits, packing);
        ASSERT_EQ(std::ssize(bytes), packed_bytes(packing, bits, count));
        EXPECT_EQ(unpack_codes(bytes, bits, count, packing), codes);
      }
    }
  }
}

TEST(Pack, StoreLeavesTheNeighboursAlone) {
  for (const int bits : {4, 6, 8}) {
    for (int64_t i = 0; i < 8; ++i) {
      for (const uint8_t background : {0x00, 0xff}) {
        std::vector<uint8_t> bytes(8, background);
        const auto code = static_cast<uint8_t>(0xa5 & ((1 << bits) - 1));
        store_code(bytes.data(), Packing::kDense, bits, i, 0xa5);  // bits above the width ignored
        for (int64_t j = 0; j < 8; ++j) {
          const uint8_t expected = j == i ? code : background & ((1 << bits) - 1);
          EXPECT_EQ(load_code(bytes.data(), Packing::kDense, bits, j), expected);
        }
      }
    }
  }
}

TEST(Pack, PaddingIsNotLookedAt) {
  const auto codes = random_codes(6, 16, 3);
  auto bytes = pack_codes(codes, 6, Packing::kPadded16);
  std::fill(bytes.begin() + 12, bytes.end(), 0xff);
  EXPECT_EQ(unpack_codes(bytes, 6, 16, Packing::kPadded16), codes);
}

TEST(Pack, RefusesWhatDoesNotFit) {
  const std::vector<uint8_t> codes = {0x1, 0x10};
  expect_invalid([&] { pack_codes(codes, 4); }, "codes[1] = 0x10 has more than 4 bits");
  expect_invalid([&] { pack_codes(codes, 5); }, "bits = 5; expected 4, 6 or 8");
  expect_invalid([&] { unpack_codes(codes, 0, 2); }, "bits = 0");
  expect_invalid([&] { unpack_codes(codes, 4, 5); }, "2 bytes given for 5 codes of 4 bits");
  expect_invalid([&] { unpack_codes(codes, 4, 2); }, "2 bytes given for 2 codes");
  expect_invalid([&] { unpack_codes(codes, 4, -1); }, "-1 codes");
  expect_invalid([&] { unpack_codes(codes, 4, INT64_MAX); }, "9223372036854775807 codes");
  expect_invalid([&] { unpack_codes(codes, 6, 16, Packing::kPadded16); }, "in padded groups");
}

static_assert([] {
  uint8_t bytes[3] = {};
  for (uint8_t i = 0; i < 4; ++i) store_code(bytes, Packing::kDense, 6, i, i);
  return load_code(bytes, Packing::kDense, 6, 3) == 3 && bytes[2] == 0x0c;
}());

}  // namespace
}  // namespace tilewright
