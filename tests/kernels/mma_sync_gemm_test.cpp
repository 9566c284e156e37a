// The mma.sync GEMM: ragged tiles, exact sums of small integers, random numbers within the bound.
#include "kernels/probe/mma_sync_gemm.h"

#include "tests/kernels/gemm_check.h"

namespace tilewright::kernels {
namespace {

class MmaSyncGemm : public KernelTest {
 protected:
  static std::vector<float> multiply(const Device& device, const GemmProblem& p,
                                     const std::vector<std::uint16_t>& a,
                                     const std::vector<std::uint16_t>& b) {
    const int pitch = std::max(8, round_up(p.k, 8));
    const Buffer a_buffer = Buffer::from(device, pad_rows(a, p.m, p.k, pitch));
    const Buffer b_buffer = Buffer::from(device, pad_rows(b, p.n, p.k, pitch));
    const Output<float> c(device, static_cast<std::size_t>(p.m) * p.n);
    if (p.m > 0 && p.n > 0) {
      run_kernel(device, "mma_sync_gemm",
                 {.grid = {ceil_div(p.n, kMmaSyncGemmTile), ceil_div(p.m, kMmaSyncGemmTile)},
                  .block = {kMmaSyncGemmThreads}},
                 MmaSyncGemmParams{pointer_to<const std::uint16_t>(a_buffer),
                                   pointer_to<const std::uint16_t>(b_buffer), c.pointer(), p.m, p.n,
                                   p.k, pitch, pitch});
    }
    return c.read();
  }

  void check(const GemmProblem& p, Numbers numbers) {
    SCOPED_TRACE(fmt::format("m = {}, n = {}, k = {}", p.m, p.n, p.k));
    const std::vector<double> a = draw_many(1, std::int64_t{p.m} * p.k, numbers, kBf16);
    const std::vector<double> b = draw_many(2, std::int64_t{p.n} * p.k, numbers, kBf16);
    const auto run = [&](const Device& where) {
      return multiply(where, p, encode_all<std::uint16_t>(kBf16, a),
                      encode_all<std::uint16_t>(kBf16, b));
    };
    const std::vector<float> c = run(device());
    check_gemm(p, a, b, numbers, kBf16TensorCore, kFp32, {c.begin(), c.end()});
    expect_same_on_simulator(run, c);
  }
};
TILEWRIGHT_ON_EVERY_DEVICE(MmaSyncGemm);

TEST_P(MmaSyncGemm, WholeTiles) {
  check({128, 64, 96}, Numbers::kIntegers);
  check({128, 64, 96}, Numbers::kUniform);
}
TEST_P(MmaSyncGemm, RaggedTiles) {
  check({65, 70, 33}, Numbers::kIntegers);
  check({100, 31, 131}, Numbers::kUniform);
  check({17, 129, 250}, Numbers::kUniform);
}
TEST_P(MmaSyncGemm, OneToken) {
  check({1, 70, 64}, Numbers::kUniform);
  check({1, 1, 1}, Numbers::kUniform);
}
TEST_P(MmaSyncGemm, EmptyDimensions) {
  check({3, 5, 0}, Numbers::kIntegers);
  check({0, 5, 8}, Numbers::kIntegers);
  check({3, 0, 8}, Numbers::kIntegers);
}

}  // namespace
}  // namespace tilewright::kernels
