// Layouts as constants of device code: what the compiler made of them, and what they compute on a
// device, the simulated one and the real one if there is one.

#include "kernel_test.h"
#include "kernels/probe/layout_probe.h"

#include <regex>

namespace tilewright::kernels {
namespace {

TEST(LayoutConstants, LeaveNoDivisionAndNoMemoryInThePtx) {
  if (device::kernel_images().empty()) GTEST_SKIP() << "built without kernels";
  for (const char* target : {"sm_90a", "sm_100f"}) {
    const std::string ptx = device::find_kernel("layout_probe", target).ptx.unpack();
    const std::regex costly(
        R"((^|\s)(div|rem|call|ld\.local|st\.local|ld\.const|ld\.global)\.?[^\n]*)");
    std::smatch found;
    EXPECT_FALSE(std::regex_search(ptx, found, costly)) << target << ": " << found.str();
    EXPECT_EQ(ptx.find(".local"), std::string::npos) << target;
    EXPECT_NE(ptx.find("st.global"), std::string::npos) << "the kernel does store its offsets";
  }
}

class LayoutConstantsOnDevices : public KernelTest {};

// The same questions, asked of the algebra. The kernel has all threads' parts as one constant; here
// each thread's part is cut out by itself.
struct ThreadParts {
  ComposedLayout scatter, places, operand;

  explicit ThreadParts(int thread)
      : scatter(
            partition_C(get_slice(kLayoutProbeMma, thread), make_row_major(kLayoutProbeScores))),
        places(partition_C(get_slice(kLayoutProbeMma, thread),
                           make_identity_layout(kLayoutProbeScores))),
        operand(partition_A(get_slice(kLayoutProbeWarps, thread),
                            make_identity_layout(make_shape(64, 128)))) {}
};

// What each case gives for linear index i.
std::vector<std::int64_t> offsets_by_the_algebra(const ThreadParts& thread, std::uint32_t i) {
  const std::uint32_t value = i / kLayoutProbeThreads;
  const IntTuple place = coordinate(thread.places, value),
                 operand = coordinate(thread.operand, value);
  return {kLayoutProbeTile(i % 128, i / 128),
          kLayoutProbeFragment(i % 128, i / 128),
          kLayoutProbeOdd(i),
          thread.scatter(value),
          place.value[0],
          place.value[1],
          operand.value[0],
          operand.value[1],
          kLayoutProbeRowsColumns(i % 2, i / 2 % 64),
          kLayoutProbeHandOff(i % 8, 0, i / 8 % 16)};
}

TEST_P(LayoutConstantsOnDevices, ComputeTheOffsetsOfTheAlgebra) {
  constexpr std::uint32_t kCount = 128 * 128;
  static_assert(size(kLayoutProbeScatter) == kCount && size(kLayoutProbePlaces) == kCount &&
                size(kLayoutProbeOperand) == kCount);
  Buffer offsets(device(), kLayoutProbeCases * kCount * sizeof(std::uint32_t));
  offsets.poison();
  const LayoutProbeParams params = {reinterpret_cast<std::uint32_t*>(offsets.address()), kCount};
  const tilewright::device::Stream stream(device());
  tilewright::device::load_kernel(device(), "layout_probe")
      .launch({.grid = {kCount / kLayoutProbeThreads}, .block = {kLayoutProbeThreads}}, params,
              stream);
  stream.synchronize();
  const auto found = offsets.to_vector<std::uint32_t>();
  std::vector<ThreadParts> threads;
  for (int t = 0; t < kLayoutProbeThreads; ++t) threads.emplace_back(t);
  for (std::uint32_t i = 0; i < kCount; ++i) {
    const std::vector<std::int64_t> wanted =
        offsets_by_the_algebra(threads[i % kLayoutProbeThreads], i);
    ASSERT_EQ(wanted.size(), static_cast<std::size_t>(kLayoutProbeCases));
    for (int c = 0; c < kLayoutProbeCases; ++c)
      ASSERT_EQ(found[c * kCount + i], wanted[c]) << "case " << c << ", index " << i;
  }
}
TILEWRIGHT_ON_EVERY_DEVICE(LayoutConstantsOnDevices);

}  // namespace
}  // namespace tilewright::kernels
