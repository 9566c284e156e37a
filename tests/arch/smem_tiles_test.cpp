// Operand tiles in shared memory: the layouts against the address formulas under their descriptors.

#include "arch/fragments/smem_tiles.h"

#include "arch/tcgen05_descriptors.h"
#include "base/error.h"
#include "layout/banks.h"
#include "layout/constant.h"
#include "layout/print.h"
#include "tests/arch/smem_operand.h"

#include <random>
#include <set>

#include <gtest/gtest.h>

namespace tilewright::arch {
namespace {

constexpr SmemSwizzle kSwizzles[] = {SmemSwizzle::kNone, SmemSwizzle::k32B, SmemSwizzle::k64B,
                                     SmemSwizzle::k128B};

// The tile's layout and operand_byte_address under its descriptor must name the same byte for every
// element that one instruction reads: all of mn, 32 bytes of k.
void expect_descriptor_reads_tile(const ComposedLayout& tile, Major major, SmemSwizzle swizzle,
                                  int bits, std::uint32_t base) {
  const SmemDescriptor descriptor = describe_smem_tile(tile, major, swizzle, bits, base);
  const auto mn_extent = static_cast<int>(size(tile, 0));
  const int k_extent = 256 / bits;
  for (int mn = 0; mn < mn_extent; ++mn) {
    for (int k = 0; k < k_extent; ++k) {
      const auto element = static_cast<std::uint32_t>(tile(mn, k));
      const std::uint32_t from_layout = base + element * static_cast<std::uint32_t>(bits) / 8;
      const bool is_k = major == Major::kK;
      const auto contiguous = static_cast<std::uint32_t>((is_k ? k : mn) * bits) / 8;
      const auto other = static_cast<std::uint32_t>(is_k ? mn : k);
      ASSERT_EQ(operand_byte_address(descriptor, major, contiguous, other), from_layout)
          << to_string(tile) << " at mn " << mn << ", k " << k;
    }
  }
}

TEST(SmemTiles, DescriptorsReadWhatLayoutsStore) {
  for (const SmemSwizzle swizzle : kSwizzles) {
    for (const int bits : {8, 16, 32}) {
      for (const bool k_first : {false, true}) {
        const std::int64_t span = swizzle_span_bytes(swizzle) * 8 / bits;
        const std::int64_t k = std::max<std::int64_t>(2 * span, 512 / bits);
        expect_descriptor_reads_tile(make_smem_tile(Major::kK, swizzle, bits, 64, k, k_first),
                                     Major::kK, swizzle, bits, 4096);
        expect_descriptor_reads_tile(
            make_smem_tile(Major::kMN, swizzle, bits, std::max<std::int64_t>(64, 2 * span), 64,
                           k_first),
            Major::kMN, swizzle, bits, 2048);
      }
    }
  }
}

TEST(SmemTiles, TheAtomWith32ByteAtoms) {
  const ComposedLayout tile = make_smem_tile(Major::kMN, SmemSwizzle::k128B32BAtom, 32, 64, 64);
  expect_descriptor_reads_tile(tile, Major::kMN, SmemSwizzle::k128B32BAtom, 32, 1024);
}

// A kernel walks along k inside a swizzled row by adding 32 bytes to the start address: the swizzle
// acts on the sum.
TEST(SmemTiles, AdvancingTheStartAddressWalksAlongK) {
  constexpr int kBits = 16;
  const ComposedLayout tile = make_smem_tile(Major::kK, SmemSwizzle::k128B, kBits, 64, 64);
  for (std::uint32_t step = 0; step < 4; ++step) {
    SmemDescriptor d = describe_smem_tile(tile, Major::kK, SmemSwizzle::k128B, kBits, 8192);
    d.start_address += 32 * step;
    for (std::uint32_t mn = 0; mn < 64; ++mn) {
      for (std::uint32_t k = 0; k < 16; ++k) {
        EXPECT_EQ(operand_byte_address(d, Major::kK, 2 * k, mn),
                  8192 + 2 * tile(mn, 16 * step + k));
      }
    }
  }
}

TEST(SmemTiles, AreBijectionsOfTheirBytes) {
  for (const Major major : {Major::kK, Major::kMN}) {
    for (const SmemSwizzle swizzle : kSwizzles) {
      const ComposedLayout tile = make_smem_tile(major, swizzle, 16, 128, 64);
      std::set<std::int64_t> seen;
      for (int i = 0; i < size(tile); ++i) seen.insert(tile(i));
      EXPECT_EQ(seen.size(), 128u * 64);
      EXPECT_EQ(*seen.rbegin(), 128 * 64 - 1);
    }
  }
}

TEST(SmemTiles, ByteSwizzlesEqualTheAddressFormulas) {
  for (const SmemSwizzle swizzle : {SmemSwizzle::kNone, SmemSwizzle::k32B, SmemSwizzle::k64B,
                                    SmemSwizzle::k128B, SmemSwizzle::k128B32BAtom}) {
    const Swizzle function = byte_swizzle(swizzle);
    for (std::uint32_t address = 0; address < 8192; ++address) {
      ASSERT_EQ(function(address), swizzle_address(swizzle, address)) << to_string(function);
    }
  }
}

TEST(SmemTiles, AtomsAreCutes) {
  // Offsets in elements, as CuTe prints its GMMA and UMMA layout atoms.
  EXPECT_EQ(to_string(make_smem_tile(Major::kK, SmemSwizzle::k128B, 16, 8, 64)),
            "Sw<3,3,3> o 0 o ((8,1),(64,1)):((64,0),(1,0))");
  EXPECT_EQ(to_string(make_smem_tile(Major::kK, SmemSwizzle::k64B, 8, 8, 64)),
            "Sw<2,4,3> o 0 o ((8,1),(64,1)):((64,0),(1,0))");
  EXPECT_EQ(to_string(make_smem_tile(Major::kMN, SmemSwizzle::k32B, 32, 8, 8)),
            "Sw<1,2,3> o 0 o ((8,1),(8,1)):((1,0),(8,0))");
  EXPECT_EQ(to_string(make_smem_tile(Major::kK, SmemSwizzle::kNone, 16, 8, 8)),
            "((8,1),(8,1)):((8,0),(1,0))");
}

TEST(SmemTiles, PartOfAnAtomIsRefused) {
  EXPECT_THROW(make_smem_tile(Major::kK, SmemSwizzle::k128B, 16, 12, 64), Error);
  EXPECT_THROW(make_smem_tile(Major::kK, SmemSwizzle::k128B, 16, 64, 32), Error);
}

// Why the swizzle is there: ldmatrix and stmatrix touch 8 rows at the same column.
TEST(SmemTiles, SwizzledRowsAreFreeOfBankConflicts) {
  for (const SmemSwizzle swizzle : {SmemSwizzle::k32B, SmemSwizzle::k64B, SmemSwizzle::k128B}) {
    const std::int64_t span = swizzle_span_bytes(swizzle) / 2;
    const ComposedLayout tile = make_smem_tile(Major::kK, swizzle, 16, 64, span);
    for (std::int64_t chunk = 0; chunk < span; chunk += 8) {
      // Lanes 0-31 address rows 0-31 at one 16-byte chunk.
      std::int64_t address[32];
      for (int lane = 0; lane < 32; ++lane) address[lane] = 2 * tile(lane, chunk);
      EXPECT_EQ(count_bank_conflicts(address, 16).conflicts(), 0)
          << to_string(tile) << " chunk " << chunk;
    }
  }
}

TEST(Descriptors, WgmmaFieldsStandWhereTheManualPutsThem) {
  SmemDescriptor d;
  d.start_address = 0x12340;
  d.leading_bytes = 0x120;
  d.stride_bytes = 0x400;
  d.base_offset = 5;
  d.swizzle = SmemSwizzle::k64B;
  const std::uint64_t bits = encode_wgmma_descriptor(d);
  EXPECT_EQ(bits & 0x3FFF, 0x1234u);
  EXPECT_EQ(bits >> 16 & 0x3FFF, 0x12u);
  EXPECT_EQ(bits >> 32 & 0x3FFF, 0x40u);
  EXPECT_EQ(bits >> 49 & 7, 5u);
  EXPECT_EQ(bits >> 62, 2u);
  EXPECT_EQ(bits & ~(0x3FFFull | 0x3FFFull << 16 | 0x3FFFull << 32 | 7ull << 49 | 3ull << 62), 0u);
}

TEST(Descriptors, Tcgen05FieldsStandWhereTheManualPutsThem) {
  SmemDescriptor d;
  d.start_address = 0x3FFF0;
  d.leading_bytes = 16;
  d.stride_bytes = 1024;
  d.swizzle = SmemSwizzle::k128B;
  const std::uint64_t bits = encode_tcgen05_descriptor(d);
  EXPECT_EQ(bits & 0x3FFF, 0x3FFFu);
  EXPECT_EQ(bits >> 46 & 7, 1u) << "the constant 0b001";
  EXPECT_EQ(bits >> 61, 2u);
  EXPECT_TRUE(is_tcgen05_descriptor(bits));
  EXPECT_FALSE(is_tcgen05_descriptor(bits & ~(1ull << 46)));
  EXPECT_FALSE(is_tcgen05_descriptor(bits | 1ull << 61)) << "swizzle code 3 does not exist";
  EXPECT_FALSE(is_tcgen05_descriptor(bits | 1ull << 55));
}

TEST(Descriptors, EncodingIsInvertible) {
  std::mt19937 rng(5);
  for (int n = 0; n < 10000; ++n) {
    SmemDescriptor d;
    d.start_address = rng() % (1 << 14) * 16;
    d.leading_bytes = rng() % (1 << 14) * 16;
    d.stride_bytes = rng() % (1 << 14) * 16;
    d.base_offset = rng() % 8;
    d.swizzle = kSwizzles[rng() % 4];
    EXPECT_EQ(decode_wgmma_descriptor(encode_wgmma_descriptor(d)), d);
    EXPECT_EQ(decode_tcgen05_descriptor(encode_tcgen05_descriptor(d)), d);
    d.swizzle = SmemSwizzle::k128B32BAtom;
    EXPECT_EQ(decode_tcgen05_descriptor(encode_tcgen05_descriptor(d)), d);
  }
}

// Two answers that a B200 gave to probes which read a tile under another swizzle than it was
// written with.
TEST(Descriptors, MixedSwizzlesReadWhatHardwareReads) {
  // 32 rows of 128 bytes under the 128 B swizzle, read as 32 B-swizzled rows 256 bytes apart per 8:
  // MMA row p sees logical row p/4 and the 32-byte stripe (p%4) ^ (p/8%4).
  SmemDescriptor d;
  d.swizzle = SmemSwizzle::k32B;
  d.stride_bytes = 256;
  for (std::uint32_t p = 0; p < 128; ++p) {
    const std::uint32_t address = operand_byte_address(d, Major::kK, 0, p);
    const std::uint32_t logical = swizzle_address(SmemSwizzle::k128B, address);
    EXPECT_EQ(logical / 128, p / 4) << p;
    EXPECT_EQ(logical % 128 / 32, (p % 4) ^ (p / 8 % 4)) << p;
  }
  // 8 rows of 128 bytes read as 32 columns with a stride of 32 bytes: column n sees row n%8, stripe
  // n/8.
  d.swizzle = SmemSwizzle::k128B;
  d.stride_bytes = 32;
  for (std::uint32_t n = 0; n < 32; ++n) {
    const std::uint32_t logical =
        swizzle_address(SmemSwizzle::k128B, operand_byte_address(d, Major::kK, 0, n));
    EXPECT_EQ(logical / 128, n % 8);
    EXPECT_EQ(logical % 128 / 32, n / 8);
  }
}

}  // namespace
}  // namespace tilewright::arch
