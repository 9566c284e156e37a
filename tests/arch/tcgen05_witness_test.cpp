// Two witnesses for tcgen05.mma: the layouts that kernels are built from, and the simulator's index
// formulas, which were written without them. Every (row, column) of every form.
#include "arch/fragments/block_scales.h"
#include "arch/fragments/smem_tiles.h"
#include "arch/fragments/tmem.h"
#include "arch/tcgen05_descriptors.h"
#include "sim/tensor/mma_layout.h"
#include "sim/tensor/shared_descriptor.h"
#include "tests/arch/smem_operand.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace tilewright::arch {
namespace {

struct Form {
  TmemRows rows;
  sim::MmaShape shape;
};

std::vector<Form> forms(int n) {
  return {{TmemRows::kM128, {128, n, 1, false}},    {TmemRows::kM64, {64, n, 1, false}},
          {TmemRows::kM64Ws, {64, n, 1, true}},     {TmemRows::kM32Ws, {32, n, 1, true}},
          {TmemRows::kM128, {128, n, 1, true}},     {TmemRows::kPairM256, {256, n, 2, false}},
          {TmemRows::kPairM128, {128, n, 2, false}}};
}

std::int64_t address_of(const sim::TensorPlace& place) {
  return place.cta * kTmemCta + place.lane * kTmemLane + place.column;
}

TEST(Tcgen05Witness, PlacesOfD) {
  for (const int n : {64, 128, 256}) {
    for (const Form& form : forms(n)) {
      const Layout layout = tmem_c(form.rows, n);
      for (int row = 0; row < form.shape.m; ++row) {
        for (int col = 0; col < n; ++col) {
          ASSERT_EQ(address_of(sim::place_of_d(form.shape, row, col)), layout(row, col))
              << "m " << form.shape.m << " n " << n << " row " << row << " column " << col;
        }
      }
    }
  }
}

TEST(Tcgen05Witness, PlacesOfA) {
  for (const int bits : {8, 16, 32}) {
    const int k = 256 / bits;
    for (const Form& form : forms(64)) {
      if (form.shape.is_ws && form.shape.m < 128) continue;  // the layouts have none
      const Layout layout = tmem_a(form.rows, k, bits);
      const int per_cell = 32 / bits;
      const int copies = sim::column_parts(form.shape);
      for (int row = 0; row < form.shape.m; ++row) {
        for (int i = 0; i < k; ++i) {
          for (int copy = 0; copy < copies; ++copy) {
            const auto place = sim::place_of_a(form.shape, row, copy);
            const std::int64_t element = address_of(place) * per_cell + i;
            ASSERT_EQ(element, copies == 1 ? layout(row, i) : layout(row, i, copy))
                << "m " << form.shape.m << " row " << row << " k " << i << " copy " << copy;
          }
        }
      }
    }
  }
}

TEST(Tcgen05Witness, PlacesOfScales) {
  for (const int rows : {32, 64, 128, 256}) {
    const Layout layout = tmem_scales(rows);
    for (int row = 0; row < rows; ++row) {
      for (int index = 0; index < 4; ++index) {
        for (int quarter = 0; quarter < 4; ++quarter) {
          const auto place = sim::place_of_scale(row, index, sim::scale_columns(rows));
          const std::int64_t byte =
              ((place.lane + 32 * quarter) * kTmemLane + place.column) * 4 + place.byte;
          ASSERT_EQ(byte, layout(row, index, quarter)) << row << ", " << index;
        }
      }
    }
  }
}

constexpr SmemSwizzle kSwizzles[] = {SmemSwizzle::kNone, SmemSwizzle::k32B, SmemSwizzle::k64B,
                                     SmemSwizzle::k128B, SmemSwizzle::k128B32BAtom};

sim::OperandMajor major_of(Major major) {
  return major == Major::kK ? sim::OperandMajor::kK : sim::OperandMajor::kMn;
}

/// Tiles of 8-, 16- and 32-bit elements: the descriptor as kernels encode it, read by the
/// simulator, leads to the byte where the tile has the element.
TEST(Tcgen05Witness, OperandTilesInSharedMemory) {
  constexpr std::uint32_t kBase = 0x8400 & ~1023U;
  for (const SmemSwizzle swizzle : kSwizzles) {
    for (const Major major : {Major::kK, Major::kMN}) {
      for (const int bits : {8, 16, 32}) {
        const std::int64_t mn = 256, k = 1024 / bits;
        const ComposedLayout tile = make_smem_tile(major, swizzle, bits, mn, k);
        const auto d = sim::decode_shared_descriptor(
            encode_tcgen05_descriptor(describe_smem_tile(tile, major, swizzle, bits, kBase)));
        const int step = 256 / bits;  // of k: one instruction
        for (std::int64_t row = 0; row < mn; ++row) {
          for (int i = 0; i < step; ++i) {
            const auto byte = static_cast<std::uint32_t>(major == Major::kK ? i : row) * bits / 8;
            const auto other = static_cast<std::uint32_t>(major == Major::kK ? row : i);
            ASSERT_EQ(sim::shared_operand_address(d, major_of(major), byte, other),
                      kBase + tile(row, i) * bits / 8)
                << "swizzle " << static_cast<int>(swizzle) << " bits " << bits << " row " << row
                << " k " << i;
          }
        }
      }
    }
  }
}

TEST(Tcgen05Witness, FormulasOfAddresses) {
  for (const SmemSwizzle swizzle : kSwizzles) {
    const SmemDescriptor fields{0x2460, 0x180, 0x500, 0, swizzle};
    const std::uint64_t bits = encode_tcgen05_descriptor(fields);
    const auto d = sim::decode_shared_descriptor(bits);
    for (const Major major : {Major::kK, Major::kMN}) {
      for (std::uint32_t other = 0; other < 64; ++other) {
        for (std::uint32_t byte = 0; byte < 512; ++byte) {
          ASSERT_EQ(sim::shared_operand_address(d, major_of(major), byte, other),
                    operand_byte_address(fields, major, byte, other));
        }
      }
    }
  }
}

}  // namespace
}  // namespace tilewright::arch
