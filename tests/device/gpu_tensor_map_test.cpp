// Tensor maps on a real GPU: boxes that TMA copies, element by element.
#include "device/memory.h"
#include "device/module.h"
#include "device/tensor_map.h"
#include "gpu_device_test.h"
#include "gpu_ptx.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace tilewright::device {
namespace {

using ::testing::Each;

/// A padded matrix of 16-bit numbers that all differ, and the boxes that TMA copies out of it.
class GpuTensorMapTest : public GpuTest {
 protected:
  static constexpr int kRows = 40;
  static constexpr int kCols = 72;
  static constexpr int kRowElems = 80;  // with padding
  static constexpr std::uint32_t kBoxCols = 32;
  static constexpr std::uint32_t kBoxRows = 8;
  static constexpr std::uint32_t kBoxBytes = 2 * kBoxCols * kBoxRows;

  static std::uint16_t element(int row, int col) {
    return static_cast<std::uint16_t>(1 + row * kRowElems + col);
  }

  /// The box at these coordinates as it lies in shared memory.
  std::vector<std::byte> copy_box(TensorMapSwizzle swizzle, int row, int col) const {
    std::vector<std::uint16_t> matrix(kRows * kRowElems, 0xffff);  // the padding must not show up
    for (int r = 0; r < kRows; ++r) {
      for (int c = 0; c < kCols; ++c) matrix[r * kRowElems + c] = element(r, c);
    }
    const Buffer tensor = Buffer::from(device(), matrix);
    Buffer out(device(), kBoxBytes + 64);
    out.poison();
    BoxParams params;
    params.map = encode_tensor_map(device(), {.name = "matrix",
                                              .type = TensorMapType::kUint16,
                                              .address = tensor.address(),
                                              .dims = {kCols, kRows},
                                              .strides_bytes = {2 * kRowElems},
                                              .box = {kBoxCols, kBoxRows},
                                              .swizzle = swizzle});
    params.out = out.address();
    params.c0 = col;
    params.c1 = row;
    params.box_bytes = kBoxBytes;
    const Stream stream(device());
    Module::from_ptx(device(), "box.ptx", kBoxPtx)
        .kernel("copy_box")
        .launch({.block = {128}}, params, stream);
    stream.synchronize();
    std::vector<std::byte> bytes = out.to_vector<std::byte>();
    EXPECT_THAT(std::vector<std::byte>(bytes.begin() + kBoxBytes, bytes.end()),
                Each(Buffer::kPoison));
    bytes.resize(kBoxBytes);
    return bytes;
  }

  /// Checks every element of the box; `place` maps its plain byte offset to where it should lie.
  template <class Place>
  void check_box(TensorMapSwizzle swizzle, int row, int col, Place&& place) const {
    const std::vector<std::byte> bytes = copy_box(swizzle, row, col);
    for (int r = 0; r < static_cast<int>(kBoxRows); ++r) {
      for (int c = 0; c < static_cast<int>(kBoxCols); ++c) {
        const bool is_inside = row + r >= 0 && row + r < kRows && col + c >= 0 && col + c < kCols;
        const std::uint16_t expected = is_inside ? element(row + r, col + c) : 0;
        const std::uint32_t offset =
            2 * (kBoxCols * static_cast<std::uint32_t>(r) + static_cast<std::uint32_t>(c));
        std::uint16_t found = 0;
        std::memcpy(&found, bytes.data() + place(offset), 2);
        ASSERT_EQ(found, expected)
            << "row " << row << " + " << r << ", column " << col << " + " << c;
      }
    }
  }
};

TEST_F(GpuTensorMapTest, BoxesInsideAndAcrossEveryEdge) {
  const auto plain = [](std::uint32_t offset) { return offset; };
  const std::pair<int, int> corners[] = {{0, 0},   {5, 8},   {36, 0}, {0, 56},
                                         {35, 64}, {-3, -8}, {-8, 0}, {40, 72}};
  for (const auto& [row, col] : corners) {
    check_box(TensorMapSwizzle::kNone, row, col, plain);
  }
}

// 64-byte rows; the tile is aligned to the pattern, so offsets are as good as addresses.
TEST_F(GpuTensorMapTest, SwizzleOf64Bytes) {
  check_box(TensorMapSwizzle::k64B, 3, 8,
            [](std::uint32_t offset) { return offset ^ (offset >> 7 & 3) << 4; });
}

// A box that starts within 16 bytes of memory is an illegal instruction, inside of the tensor and
// outside; nothing of it is in the driver's documentation. It breaks the context, so each case gets
// a process of its own.
TEST_F(GpuTensorMapTest, BoxesMustStartAtMultiplesOf16Bytes) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto copy_and_exit = [this](int col) {
    try {
      copy_box(TensorMapSwizzle::kNone, 0, col);
      std::fputs("copied", stderr);
    } catch (const Error& error) {
      std::fputs(error.what(), stderr);
    }
    std::_Exit(0);
  };
  for (const int col : {1, 4, 7, -5, 100}) {
    EXPECT_EXIT(copy_and_exit(col), ::testing::ExitedWithCode(0), "CUDA_ERROR_ILLEGAL_INSTRUCTION")
        << "column " << col;
  }
  EXPECT_EXIT(copy_and_exit(-8), ::testing::ExitedWithCode(0), "copied");
}

TEST_F(GpuTensorMapTest, NanOutsideOfFloatingTensors) {
  const Buffer tensor = Buffer::from(device(), std::vector<float>(64 * 16, 1.5f));
  Buffer out(device(), 4096);
  out.fill(std::byte{0});
  BoxParams params;
  params.map = encode_tensor_map(device(), {.name = "floats",
                                            .type = TensorMapType::kFloat32,
                                            .address = tensor.address(),
                                            .dims = {64, 16},
                                            .strides_bytes = {256},
                                            .box = {32, 32},
                                            .oob_fill = TensorMapOobFill::kNan});
  params.out = out.address();
  params.c1 = 8;  // rows 8 to 39 of 16
  params.box_bytes = 4096;
  const Stream stream(device());
  Module::from_ptx(device(), "box.ptx", kBoxPtx)
      .kernel("copy_box")
      .launch({.block = {128}}, params, stream);
  stream.synchronize();
  const std::vector<float> values = out.to_vector<float>();
  EXPECT_THAT(std::vector<float>(values.begin(), values.begin() + 8 * 32), Each(1.5f));
  EXPECT_THAT(std::vector<float>(values.begin() + 8 * 32, values.end()), Each(::testing::IsNan()));
}

}  // namespace
}  // namespace tilewright::device
