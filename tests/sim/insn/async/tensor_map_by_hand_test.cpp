// Tensor maps that no driver made: their 128 bytes are written by the host or by the kernel itself,
// bit for bit as the hardware has them.
#include "tests/sim/insn/kernel_run.h"

#include <array>
#include <cstdint>

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace tilewright::sim {
namespace {

using Words = std::array<std::uint32_t, 32>;

/// 16 x 4 words of a matrix of 64 x 8, and boxes of 16 x 4: fp32, no swizzle, zeros outside.
Words words_of(std::uint64_t address) {
  Words words{};
  words[0] = static_cast<std::uint32_t>(address);
  words[1] = static_cast<std::uint32_t>(address >> 32);
  words[2] = 1 << 4 | 7 << 7;
  words[3] = 64 * 4 / 16;
  words[8] = 63;
  words[9] = 7;
  words[13] = 15u << 24;
  words[14] = 3;
  return words;
}

/// Copies the box at (16, 6) to %rd1; the map is at %rd2.
constexpr const char* kCopy = R"(
    .shared .align 128 .b8 tile[256]; .shared .align 8 .b64 bar;
    setp.ne.u32 %p0, %r0, 0; @%p0 bra DONE;
    mov.u32 %r1, tile; mov.u32 %r2, bar; mov.u32 %r3, 16; mov.u32 %r4, 6;
    mbarrier.init.shared::cta.b64 [%r2], 1; fence.mbarrier_init.release.cluster;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 256;
    cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1],
      [%rd2, {%r3, %r4}], [%r2];
    WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r2], 0; @!%p1 bra WAIT;
    cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], 256;
    cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
    DONE:)";

void expect_box(const std::uint32_t* out) {
  for (std::uint32_t row = 0; row < 4; ++row) {
    for (std::uint32_t column = 0; column < 16; ++column) {
      const std::uint32_t expected = row < 2 ? (6 + row) * 64 + 16 + column : 0;
      ASSERT_EQ(out[16 * row + column], expected) << row << " " << column;
    }
  }
}

std::uint32_t* fill_matrix(KernelRun& kernel) {
  auto* const matrix = kernel.allocate<std::uint32_t>(64 * 8);
  for (std::uint32_t i = 0; i < 64 * 8; ++i) matrix[i] = i;
  return matrix;
}

TEST(TensorMapByHand, OfTheHost) {
  KernelRun kernel(kCopy);
  const std::uint32_t* const matrix = fill_matrix(kernel);
  auto* const out = kernel.allocate<std::uint32_t>(64);
  auto* const map = kernel.allocate<std::uint32_t>(32);
  const Words words = words_of(reinterpret_cast<std::uint64_t>(matrix));
  std::copy(words.begin(), words.end(), map);
  kernel.run_well(matrix, out, map);
  expect_box(out);
}

TEST(TensorMapByHand, OfPlainStoresInTheKernel) {
  const Words words = words_of(0);
  std::string stores = "st.global.u64 [%rd2], %rd0;";
  for (std::size_t i = 2; i < words.size(); ++i) {
    stores += fmt::format(" st.global.u32 [%rd2+{}], {};", 4 * i, words[i]);
  }
  KernelRun kernel(stores +
                       " bar.warp.sync -1; fence.proxy.tensormap::generic.release.gpu; "
                       "fence.proxy.tensormap::generic.acquire.gpu [%rd2], 128;" +
                       kCopy,
                   Options{});
  const std::uint32_t* const matrix = fill_matrix(kernel);
  auto* const out = kernel.allocate<std::uint32_t>(64);
  auto* const map = kernel.allocate<std::uint32_t>(32);
  kernel.run_well(matrix, out, map);
  expect_box(out);
}

TEST(TensorMapByHand, NonsenseIsAFaultThatNamesTheField) {
  KernelRun kernel(kCopy);
  const std::uint32_t* const matrix = fill_matrix(kernel);
  auto* const out = kernel.allocate<std::uint32_t>(64);
  auto* const map = kernel.allocate<std::uint32_t>(32);
  Words words = words_of(reinterpret_cast<std::uint64_t>(matrix));
  words[2] |= 3 << 11;
  std::copy(words.begin(), words.end(), map);
  const auto fault = kernel.run(matrix, out, map);
  ASSERT_TRUE(fault.has_value());
  EXPECT_EQ(fault->kind, FaultKind::kIllegalInstruction);
  EXPECT_THAT(fault->message, testing::HasSubstr("interleave = 3; expected 0 to 2"));
}

}  // namespace
}  // namespace tilewright::sim
