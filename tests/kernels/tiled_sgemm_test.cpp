// The tiled SGEMM: scalar f32 arithmetic against float64 and, element by element, against the same
// chain of fused multiply-adds on the host.
#include "kernels/probe/tiled_sgemm.h"

#include "reference/error_bound.h"
#include "tests/kernels/kernel_test.h"

#include <cmath>

namespace tilewright::kernels {
namespace {

struct Problem {
  int m, n, k;
};

class TiledSgemm : public KernelTest {
 protected:
  static std::vector<float> multiply(const Device& device, const Problem& p,
                                     const std::vector<float>& a, const std::vector<float>& b) {
    const Buffer a_buffer = Buffer::from(device, a), b_buffer = Buffer::from(device, b);
    const Output<float> c(device, static_cast<std::size_t>(p.m) * p.n);
    const TiledSgemmParams params = {pointer_to<const float>(a_buffer),
                                     pointer_to<const float>(b_buffer),
                                     c.pointer(),
                                     p.m,
                                     p.n,
                                     p.k};
    if (p.m > 0 && p.n > 0) {
      run_kernel(device, "tiled_sgemm",
                 {.grid = {ceil_div(p.n, kTiledSgemmTile), ceil_div(p.m, kTiledSgemmTile)},
                  .block = {kTiledSgemmThreads}},
                 params);
    }
    return c.read();
  }

  void check(const Problem& p, Numbers numbers) {
    SCOPED_TRACE(fmt::format("m = {}, n = {}, k = {}", p.m, p.n, p.k));
    const std::vector<float> a = to_floats(draw_many(1, std::int64_t{p.m} * p.k, numbers, kFp32));
    const std::vector<float> b = to_floats(draw_many(2, std::int64_t{p.k} * p.n, numbers, kFp32));
    const auto run = [&](const Device& where) { return multiply(where, p, a, b); };
    const std::vector<float> c = run(device());
    for (int i = 0; i < p.m; ++i) {
      for (int j = 0; j < p.n; ++j) {
        double exact = 0, magnitude = 0;
        float chain = 0;
        for (int l = 0; l < p.k; ++l) {
          const float x = a[i * p.k + l], y = b[l * p.n + j];
          exact += static_cast<double>(x) * y;
          magnitude += std::abs(static_cast<double>(x) * y);
          chain = std::fma(x, y, chain);
        }
        const float found = c[i * p.n + j];
        // The kernel adds the products in order of l, each with one rounding.
        ASSERT_EQ(found, chain) << "row " << i << ", column " << j;
        const double bound = reference::dot_error_bound(
            {.length = p.k, .accumulate_roundoff = reference::kRoundoffFp32}, exact, magnitude);
        ASSERT_LE(std::abs(found - exact), bound) << "row " << i << ", column " << j;
        if (numbers == Numbers::kIntegers) {
          ASSERT_EQ(found, exact);
        }
      }
    }
    expect_same_on_simulator(run, c);
  }
};
TILEWRIGHT_ON_EVERY_DEVICE(TiledSgemm);

TEST_P(TiledSgemm, WholeTiles) {
  check({128, 64, 48}, Numbers::kUniform);
}
TEST_P(TiledSgemm, RaggedTiles) {
  check({65, 67, 17}, Numbers::kUniform);
  check({63, 130, 100}, Numbers::kUniform);
}
TEST_P(TiledSgemm, SingleElements) {
  check({1, 1, 1}, Numbers::kUniform);
  check({1, 70, 33}, Numbers::kUniform);
  check({70, 1, 15}, Numbers::kUniform);
}
TEST_P(TiledSgemm, IntegersAreExact) {
  check({70, 66, 200}, Numbers::kIntegers);
}
TEST_P(TiledSgemm, EmptyDimensions) {
  check({5, 7, 0}, Numbers::kUniform);
  check({0, 7, 3}, Numbers::kUniform);
  check({5, 0, 3}, Numbers::kUniform);
}

}  // namespace
}  // namespace tilewright::kernels
