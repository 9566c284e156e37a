// Clusters: multicast copies, arrivals at other CTAs' barriers, and a look into their shared
// memory.
#include "kernels/probe/multicast_copy.h"

#include "tests/kernels/kernel_test.h"

namespace tilewright::kernels {
namespace {

using device::TensorMapType;
using Words = std::vector<std::uint32_t>;

struct Matrix {
  int cols, rows;
  int pitch() const { return (cols + 7) / 8 * 8; }
};

class MulticastCopy : public KernelTest {
 protected:
  static std::uint16_t element(int row, int col) {
    return static_cast<std::uint16_t>(1 + row * 331 + col * 7);
  }

  // The words of one tile, zeros outside of the matrix.
  static Words tile_words(const Matrix& matrix, int tile_x, int tile_y) {
    Words words(kMulticastCopyTileWords);
    for (int i = 0; i < kMulticastCopyCols * kMulticastCopyRows; ++i) {
      const int row = tile_y * kMulticastCopyRows + i / kMulticastCopyCols;
      const int col = tile_x * kMulticastCopyCols + i % kMulticastCopyCols;
      const bool is_inside = row < matrix.rows && col < matrix.cols;
      const std::uint32_t value = is_inside ? element(row, col) : 0;
      words[static_cast<std::size_t>(i / 2)] |= value << (i % 2 * 16);
    }
    return words;
  }

  static Words part(const Words& words, int index) {
    const auto first = words.begin() + std::ptrdiff_t{index} * kMulticastCopyTileWords;
    return {first, first + kMulticastCopyTileWords};
  }

  void check(const Matrix& matrix, int cluster_size, int clusters) {
    SCOPED_TRACE(fmt::format("{} x {}, {} clusters of {}", matrix.rows, matrix.cols, clusters,
                             cluster_size));
    const auto tiles_x = static_cast<int>(ceil_div(matrix.cols, kMulticastCopyCols));
    const auto tiles_y = static_cast<int>(ceil_div(matrix.rows, kMulticastCopyRows));
    const int tiles = tiles_x * tiles_y, ctas = clusters * cluster_size;
    const Output<std::uint32_t> tiles_out(
        device(), static_cast<std::size_t>(tiles) * cluster_size * kMulticastCopyTileWords);
    const Output<std::uint32_t> next(device(),
                                     static_cast<std::size_t>(ctas) * kMulticastCopyTileWords);
    const Output<std::uint32_t> arrivals(device(), static_cast<std::size_t>(clusters));
    launch(matrix, cluster_size, clusters, tiles_out, next, arrivals);

    const Words all_tiles = tiles_out.read();
    for (int i = 0; i < tiles * cluster_size; ++i) {
      const int tile = i / cluster_size;
      ASSERT_EQ(part(all_tiles, i), tile_words(matrix, tile % tiles_x, tile / tiles_x))
          << "tile " << tile << " in CTA " << i % cluster_size;
    }
    const Words all_next = next.read();
    for (int cta = 0; cta < ctas; ++cta) {
      const int cluster = cta / cluster_size;
      const int last = cluster + (tiles - 1 - cluster) / clusters * clusters;
      const Words expected = cluster < tiles ? tile_words(matrix, last % tiles_x, last / tiles_x)
                                             : Words(kMulticastCopyTileWords, ~0u);
      ASSERT_EQ(part(all_next, cta), expected) << "CTA " << cta << " saw of its neighbour";
    }
    const auto sum =
        static_cast<std::uint32_t>(kMulticastCopyConsumers * cluster_size * (cluster_size + 1) / 2);
    EXPECT_EQ(arrivals.read(), Words(static_cast<std::size_t>(clusters), sum));
  }

 private:
  void launch(const Matrix& matrix, int cluster_size, int clusters,
              const Output<std::uint32_t>& tiles_out, const Output<std::uint32_t>& next,
              const Output<std::uint32_t>& arrivals) const {
    const int pitch = matrix.pitch();
    std::vector<std::uint16_t> elements(static_cast<std::size_t>(pitch) * matrix.rows, 0xffff);
    for (int row = 0; row < matrix.rows; ++row) {
      for (int col = 0; col < matrix.cols; ++col)
        elements[static_cast<std::size_t>(row * pitch + col)] = element(row, col);
    }
    const Buffer source = Buffer::from(device(), elements);
    MulticastCopyParams params = {};
    store_map(params.source_map,
              device::encode_tensor_map(
                  device(), {.name = "source",
                             .type = TensorMapType::kUint16,
                             .address = source.address(),
                             .dims = {static_cast<std::uint64_t>(matrix.cols),
                                      static_cast<std::uint64_t>(matrix.rows)},
                             .strides_bytes = {static_cast<std::uint64_t>(pitch) * 2},
                             .box = {kMulticastCopyCols, static_cast<std::uint32_t>(
                                                             kMulticastCopyRows / cluster_size)}}));
    params.tiles_out = tiles_out.pointer();
    params.from_next_cta = next.pointer();
    params.arrivals = arrivals.pointer();
    params.tiles_x = static_cast<std::int32_t>(ceil_div(matrix.cols, kMulticastCopyCols));
    params.tiles_y = static_cast<std::int32_t>(ceil_div(matrix.rows, kMulticastCopyRows));
    const auto size = static_cast<std::uint32_t>(cluster_size);
    run_kernel(device(), "multicast_copy",
               {.grid = {static_cast<std::uint32_t>(clusters) * size},
                .block = {kMulticastCopyThreads},
                .cluster = device::Dim3{size}},
               params);
  }
};
TILEWRIGHT_ON_EVERY_DEVICE(MulticastCopy);

TEST_P(MulticastCopy, ClustersOfTwo) {
  check({.cols = 256, .rows = 128}, 2, 3);
  check({.cols = 150, .rows = 70}, 2, 1);
}
TEST_P(MulticastCopy, ClustersOfFour) {
  check({.cols = 256, .rows = 128}, 4, 2);
  check({.cols = 130, .rows = 33}, 4, 2);
}
TEST_P(MulticastCopy, ClustersOfOneAndEight) {
  check({.cols = 100, .rows = 40}, 1, 2);
  check({.cols = 100, .rows = 140}, 8, 1);
}
TEST_P(MulticastCopy, MoreClustersThanTiles) {
  check({.cols = 60, .rows = 30}, 2, 3);
}
TEST_P(MulticastCopy, OneElement) {
  check({.cols = 1, .rows = 1}, 4, 1);
}

}  // namespace
}  // namespace tilewright::kernels
