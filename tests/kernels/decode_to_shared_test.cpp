// The published bug of FP4 kernels: decoded weights that wgmma reads without a proxy fence. With
// the fence the probe is right; without it the simulator's proxy check must name it.
#include "kernels/probe/decode_to_shared.h"

#include "tests/kernels/gemm_check.h"

namespace tilewright::kernels {
namespace {

constexpr int kTile = kDecodeToSharedTile;

class DecodeToShared : public KernelTest {
 protected:
  static std::vector<double> run(const Device& device, const char* entry,
                                 const std::vector<double>& w, const std::vector<double>& x) {
    const std::vector<std::uint8_t> codes = encode_all<std::uint8_t>(kE2m1, w);
    std::vector<std::uint32_t> words(codes.size() / 8);
    for (std::size_t i = 0; i < codes.size(); ++i)
      words[i / 8] |= std::uint32_t{codes[i]} << 4 * (i % 8);
    const Buffer w_buffer = Buffer::from(device, words);
    const Buffer x_buffer = Buffer::from(device, encode_all<std::uint8_t>(kE4m3, x));
    const Output<float> y(device, kTile * kTile);
    const DecodeToSharedParams params = {pointer_to<const std::uint32_t>(w_buffer),
                                         pointer_to<const std::uint32_t>(x_buffer), y.pointer()};
    run_kernel(device, entry, {.grid = {1}, .block = {kDecodeToSharedThreads}}, params);
    const std::vector<float> values = y.read();
    return {values.begin(), values.end()};
  }
  static std::vector<double> weights() {
    return draw_many(1, kTile * kTile, Numbers::kIntegers, kE2m1);
  }
  static std::vector<double> tokens() {
    return draw_many(2, kTile * kTile, Numbers::kIntegers, kE4m3);
  }
};
TILEWRIGHT_ON_EVERY_DEVICE(DecodeToShared);

TEST_P(DecodeToShared, IsRightWithTheFence) {
  const std::vector<double> w = weights(), x = tokens();
  const std::vector<double> y = run(device(), "decode_to_shared_fenced", w, x);
  check_gemm({kTile, kTile, kTile}, w, x, Numbers::kIntegers, kHopperE4m3TensorCore, kFp32, y);
}

TEST_P(DecodeToShared, TheCheckNamesTheMissingFence) {
  if (!is_simulator()) GTEST_SKIP() << "a GPU is right most of the time";
  ::testing::internal::CaptureStderr();
  EXPECT_THROW(run(device(), "decode_to_shared_unfenced", weights(), tokens()), Error);
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, ::testing::HasSubstr("decode_to_shared_unfenced: missing proxy fence"));
  EXPECT_THAT(said, ::testing::HasSubstr("decode_to_shared.cu"));  // the store's line
  abandon_device();
}

}  // namespace
}  // namespace tilewright::kernels
