// Layouts of scale factors: the examples of the scale-tensor document, the closed form, check
// values.

#include "arch/fragments/block_scales.h"

#include "formats/scale_layout.h"
#include "layout/parse.h"
#include "layout/print.h"

#include <set>

#include <gtest/gtest.h>

namespace tilewright::arch {
namespace {

TEST(BlockScales, TheAtomOfTheDocument) {
  EXPECT_EQ(to_string(BlockScaledBasicChunk{16}.layout()), "((32,4),(16,4)):((16,4),(0,1))");
  EXPECT_EQ(to_string(BlockScaledBasicChunk{32}.layout()), "((32,4),(32,4)):((16,4),(0,1))");
  EXPECT_EQ(to_string(BlockScaledBasicChunk{16, Major::kMN}.layout()),
            "((16,4),(32,4)):((0,1),(16,4))");
}

TEST(BlockScales, TheFourExamplesOfTheDocument) {
  struct Example {
    IntTuple tensor;
    const char* layout;
  };
  const Example examples[] = {
      {make_shape(128, 64, 1), "(((32,4),1),((16,4),1),(1,1)):(((16,4),512),((0,1),512),(0,512))"},
      {make_shape(128, 128, 1),
       "(((32,4),1),((16,4),2),(1,1)):(((16,4),1024),((0,1),512),(0,1024))"},
      {make_shape(256, 64, 1), "(((32,4),2),((16,4),1),(1,1)):(((16,4),512),((0,1),512),(0,1024))"},
      {make_shape(256, 128, 1),
       "(((32,4),2),((16,4),2),(1,1)):(((16,4),1024),((0,1),512),(0,2048))"},
  };
  for (const Example& example : examples) {
    const Layout sf = tile_atom_to_shape_sf(example.tensor, 16);
    EXPECT_EQ(to_string(sf), example.layout);
    EXPECT_EQ(size(sf), product(example.tensor)) << "one scale per element, by stride 0";
    EXPECT_EQ(cosize(sf), product(example.tensor) / 16) << "one byte per block";
  }
}

// offset = ((m/128)*nKa + kb/4)*512 + (m%32)*16 + (m%128/32)*4 + kb%4, plus the batch.
TEST(BlockScales, TheClosedForm) {
  struct Case {
    int m, k, l, block;
  };
  for (const Case of : {Case{384, 448, 3, 16}, Case{256, 512, 2, 32}, Case{200, 96, 1, 16}}) {
    const Layout sf = tile_atom_to_shape_sf(make_shape(of.m, of.k, of.l), of.block);
    const int k_atoms = (of.k + 4 * of.block - 1) / (4 * of.block), m_atoms = (of.m + 127) / 128;
    for (int l = 0; l < of.l; ++l) {
      for (int m = 0; m < of.m; ++m) {
        for (int k = 0; k < of.k; ++k) {
          const int kb = k / of.block;
          const int closed = (m / 128 * k_atoms + kb / 4) * 512 + m % 32 * 16 + m % 128 / 32 * 4 +
                             kb % 4 + l * m_atoms * k_atoms * 512;
          ASSERT_EQ(sf(m, k, l), closed) << m << "," << k << "," << l;
        }
      }
    }
  }
}

TEST(BlockScales, CheckValuesAtEightKAtoms) {
  const Layout sf = tile_atom_to_shape_sf(make_shape(256, 8 * 64), 16);
  const auto at = [&](int row, int scale_column) { return sf(row, 16 * scale_column); };
  EXPECT_EQ(at(1, 0), 16);
  EXPECT_EQ(at(32, 0), 4);
  EXPECT_EQ(at(31, 3), 499);
  EXPECT_EQ(at(127, 3), 511);
  EXPECT_EQ(at(0, 4), 512);
  EXPECT_EQ(at(128, 0), 4096);
  EXPECT_EQ(at(130, 5), 4641);
}

TEST(BlockScales, TheFormatsModuleStoresScalesThere) {
  const Layout sf = tile_atom_to_shape_sf(make_shape(384, 448), 16);
  for (int row = 0; row < 384; ++row) {
    for (int column = 0; column < 28; ++column) {
      ASSERT_EQ(swizzled_scale_offset(row, column, 28), sf(row, 16 * column));
    }
  }
}

TEST(BlockScales, MnMajorBlocksRunAlongMn) {
  const Layout sf = tile_atom_to_shape_sf(make_shape(128, 256), 32, Major::kMN);
  for (int m = 0; m < 128; ++m) {
    for (int k = 0; k < 256; ++k) {
      const int mb = m / 32;
      EXPECT_EQ(sf(m, k), k / 128 * 512 + k % 32 * 16 + k % 128 / 32 * 4 + mb % 4);
    }
  }
}

TEST(BlockScales, TensorMemoryHoldsFourCopies) {
  const Layout sf = tmem_scales(128);
  for (int row = 0; row < 128; ++row) {
    for (int scale = 0; scale < 4; ++scale) {
      for (int copy = 0; copy < 4; ++copy) {
        const std::int64_t byte = sf(row, scale, copy), cell = byte / 4;
        EXPECT_EQ(cell >> 16, row % 32 + 32 * copy) << "lane";
        EXPECT_EQ(cell & 0xFFFF, row / 32) << "column";
        EXPECT_EQ(byte % 4, scale);
      }
    }
  }
}

// The atom in shared memory is what one 32x128b copy turns into Tensor Memory: line i of 16 bytes
// is lane i. Bytes from one lane to the next in tmem_scales: a lane of 32-bit columns, in bytes.
constexpr std::int64_t kLaneBytes = (std::int64_t{1} << 16) * 4;

TEST(BlockScales, TheAtomIsTheImageOfTheTensorMemoryCopy) {
  const Layout shared = BlockScaledBasicChunk{16}.layout(), tmem = tmem_scales(128);
  for (int row = 0; row < 128; ++row) {
    for (int scale = 0; scale < 4; ++scale) {
      const std::int64_t byte = shared(row, 16 * scale);
      EXPECT_EQ(byte / 16 * kLaneBytes + byte % 16, tmem(row, scale, 0));
    }
  }
}

}  // namespace
}  // namespace tilewright::arch
