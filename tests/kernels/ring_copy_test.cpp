// The ring copy: every byte of the target, also the ones that must not change.
#include "kernels/probe/ring_copy.h"

#include "tests/kernels/kernel_test.h"

#include <numeric>

namespace tilewright::kernels {
namespace {

using device::TensorMapSwizzle;
using device::TensorMapType;

struct Copy {
  std::vector<int> dims;       // innermost first, 2 or 3
  std::vector<int> origin;     // of the first box
  std::vector<int> num_boxes;  // along each dimension
  std::uint32_t ctas = 3;
};

/// What a copy leaves behind.
struct Result {
  std::vector<std::uint16_t> target;
  std::uint32_t checksum = 0;
};

class RingCopy : public KernelTest {
 protected:
  static RingCopyBox box_of(const Copy& copy) {
    return copy.dims.size() == 2 ? kRingCopyBox2d : kRingCopyBox3d;
  }
  static int pitch_of(const Copy& copy) { return (copy.dims[0] + 7) / 8 * 8; }
  static int at(const std::vector<int>& values, std::size_t i, int otherwise) {
    return i < values.size() ? values[i] : otherwise;
  }
  static std::size_t size_of(const Copy& copy) {
    return static_cast<std::size_t>(pitch_of(copy)) * copy.dims[1] * at(copy.dims, 2, 1);
  }

  static device::abi::CUtensorMap encode_map(const Device& device, const Copy& copy,
                                             device::abi::CUdeviceptr address) {
    const RingCopyBox box = box_of(copy);
    device::TensorMapSpec spec;
    spec.name = "tensor";
    spec.type = TensorMapType::kUint16;
    spec.address = address;
    spec.dims = {copy.dims.begin(), copy.dims.end()};
    spec.box = {static_cast<std::uint32_t>(box.x), static_cast<std::uint32_t>(box.y)};
    const auto row_bytes = static_cast<std::uint64_t>(pitch_of(copy)) * 2;
    spec.strides_bytes = {row_bytes};
    if (copy.dims.size() == 3) {
      spec.strides_bytes.push_back(row_bytes * static_cast<std::uint64_t>(copy.dims[1]));
      spec.box.push_back(static_cast<std::uint32_t>(box.z));
    }
    spec.swizzle = TensorMapSwizzle::k128B;
    return device::encode_tensor_map(device, spec);
  }

  Result run(const Copy& copy, int stages, const std::vector<std::uint16_t>& source) const {
    const Buffer source_buffer = Buffer::from(device(), source);
    const Buffer checksum = Buffer::from(device(), std::vector<std::uint32_t>(1));
    const Output<std::uint16_t> target(device(), source.size());
    RingCopyParams params = {};
    store_map(params.source_map, encode_map(device(), copy, source_buffer.address()));
    store_map(params.target_map, encode_map(device(), copy, target.address()));
    params.checksum = pointer_to<std::uint32_t>(checksum);
    for (std::size_t i = 0; i < 3; ++i) {
      params.origin[i] = at(copy.origin, i, 0);
      params.num_boxes[i] = at(copy.num_boxes, i, 1);
    }
    run_kernel(device(), fmt::format("ring_copy_{}d_s{}", copy.dims.size(), stages),
               {.grid = {copy.ctas},
                .block = {kRingCopyThreads},
                .dynamic_shared_bytes = static_cast<std::uint32_t>(ring_copy_shared_bytes(stages))},
               params);
    return {target.read(), checksum.to_vector<std::uint32_t>()[0]};
  }

  // Adds what one box does to the result.
  static void expect_box(const Copy& copy, const std::vector<std::uint16_t>& source, int x0, int y0,
                         int z0, Result& result) {
    const RingCopyBox box = box_of(copy);
    for (int i = 0; i < box.x * box.y * box.z; ++i) {
      const int x = x0 + i % box.x, y = y0 + i / box.x % box.y, z = z0 + i / box.x / box.y;
      const bool is_inside = x >= 0 && y >= 0 && z >= 0 && x < copy.dims[0] && y < copy.dims[1] &&
                             z < at(copy.dims, 2, 1);
      if (!is_inside) continue;
      const auto offset = static_cast<std::size_t>((z * copy.dims[1] + y) * pitch_of(copy) + x);
      result.target[offset] = static_cast<std::uint16_t>(source[offset] + i);
      result.checksum += source[offset] * static_cast<std::uint32_t>(i + 1);
    }
  }

  static Result expected_of(const Copy& copy, const std::vector<std::uint16_t>& source) {
    const RingCopyBox box = box_of(copy);
    Result result = {std::vector<std::uint16_t>(source.size(), 0xffff)};
    for (int z = 0; z < at(copy.num_boxes, 2, 1); ++z) {
      for (int y = 0; y < copy.num_boxes[1]; ++y) {
        for (int x = 0; x < copy.num_boxes[0]; ++x) {
          expect_box(copy, source, at(copy.origin, 0, 0) + x * box.x,
                     at(copy.origin, 1, 0) + y * box.y, at(copy.origin, 2, 0) + z * box.z, result);
        }
      }
    }
    return result;
  }

  void check(const Copy& copy) {
    Random random(size_of(copy));
    std::vector<std::uint16_t> source;
    for (std::size_t i = 0; i < size_of(copy); ++i)
      source.push_back(static_cast<std::uint16_t>(random.bits()));
    const Result expected = expected_of(copy, source);
    for (const int stages : {1, 2, 4}) {
      SCOPED_TRACE(fmt::format("{} stages", stages));
      const Result found = run(copy, stages, source);
      EXPECT_EQ(found.checksum, expected.checksum) << "the kernel read something else";
      ASSERT_EQ(found.target.size(), expected.target.size());
      for (std::size_t i = 0; i < found.target.size(); ++i) {
        ASSERT_EQ(found.target[i], expected.target[i])
            << "column " << i % static_cast<std::size_t>(pitch_of(copy)) << ", row "
            << i / static_cast<std::size_t>(pitch_of(copy));
      }
    }
  }
};
TILEWRIGHT_ON_EVERY_DEVICE(RingCopy);

TEST_P(RingCopy, WholeBoxes2d) {
  check({.dims = {256, 192}, .origin = {0, 0}, .num_boxes = {4, 6}, .ctas = 2});
}
TEST_P(RingCopy, TailsOverTheEdges2d) {
  check({.dims = {150, 77}, .origin = {0, 0}, .num_boxes = {3, 3}});
  check({.dims = {100, 50}, .origin = {-24, -7}, .num_boxes = {3, 3}});
}
TEST_P(RingCopy, SomeRowsOnly2d) {
  check({.dims = {200, 100}, .origin = {64, 16}, .num_boxes = {1, 2}, .ctas = 1});
}
TEST_P(RingCopy, OneElement2d) {
  check({.dims = {1, 1}, .origin = {0, 0}, .num_boxes = {1, 1}, .ctas = 1});
}
TEST_P(RingCopy, BoxesOutside2d) {
  check({.dims = {64, 32}, .origin = {64, 0}, .num_boxes = {1, 1}, .ctas = 1});
}
TEST_P(RingCopy, NoBoxes2d) {
  check({.dims = {64, 32}, .origin = {0, 0}, .num_boxes = {0, 1}, .ctas = 2});
}
TEST_P(RingCopy, WholeBoxes3d) {
  check({.dims = {128, 16, 8}, .origin = {0, 0, 0}, .num_boxes = {2, 2, 2}, .ctas = 1});
}
TEST_P(RingCopy, TailsOverTheEdges3d) {
  check({.dims = {72, 13, 7}, .origin = {0, 0, 0}, .num_boxes = {2, 2, 2}});
  check({.dims = {90, 20, 6}, .origin = {-8, -3, -1}, .num_boxes = {2, 3, 2}, .ctas = 5});
}
TEST_P(RingCopy, MoreCtasThanBoxes3d) {
  check({.dims = {64, 8, 4}, .origin = {0, 0, 0}, .num_boxes = {1, 1, 1}, .ctas = 4});
}

}  // namespace
}  // namespace tilewright::kernels
