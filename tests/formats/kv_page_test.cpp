// Bytes of cache pages: sizes and places of the specification, and rows through them.
#include "formats/kv_page.h"

#include "formats/kv_row.h"
#include "ops/operator/make_fast_divisor.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

namespace tilewright {
namespace {

constexpr KvFormat kFormats[] = {KvFormat::kBf16, KvFormat::kFp8, KvFormat::kNvfp4};

TEST(KvPage, HasTheSizesOfTheSpecification) {
  EXPECT_EQ(kv_row_bytes(KvFormat::kBf16), 1024);
  EXPECT_EQ(kv_row_bytes(KvFormat::kFp8), 584);
  EXPECT_EQ(kv_row_bytes(KvFormat::kNvfp4), 384);
  EXPECT_EQ(kv_default_page_stride(KvFormat::kFp8, 64), 37440);  // 65 * 576
  EXPECT_EQ(kv_default_page_stride(KvFormat::kFp8, 2), 3 * 576);
  EXPECT_EQ(kv_default_page_stride(KvFormat::kNvfp4, 2), 768);
  EXPECT_EQ(kv_row_bytes(KvFormat::kBf16Mla), 1152);
  EXPECT_EQ(kv_row_bytes(KvFormat::kFp8Mla), 656);
  EXPECT_EQ(kv_default_page_stride(KvFormat::kFp8Mla, 64), 64 * 656);
}

TEST(KvPage, PutsScalesBehindAllRowsOfAPage) {
  const KvPageLayout fp8 = {KvFormat::kFp8, 64, 37440};
  EXPECT_EQ(fp8.data_offset(2, 3), 2 * 37440 + 3 * 576);
  EXPECT_EQ(fp8.rope_offset(2, 3), 2 * 37440 + 3 * 576 + 448);
  EXPECT_EQ(fp8.scale_offset(2, 3), 2 * 37440 + 64 * 576 + 3 * 8);
  const KvPageLayout fp4 = {KvFormat::kNvfp4, 2, 768};
  EXPECT_EQ(fp4.rope_offset(0, 1), 352 + 224);
  EXPECT_EQ(fp4.scale_offset(1, 1), 768 + 2 * 352 + 32);
  // Those of DeepSeek-V3.2 stand in the row.
  const KvPageLayout v3 = {KvFormat::kFp8Mla, 64, 64 * 656};
  EXPECT_EQ(v3.data_offset(2, 3), (2 * 64 + 3) * 656);
  EXPECT_EQ(v3.scale_offset(2, 3), (2 * 64 + 3) * 656 + 512);
  EXPECT_EQ(v3.rope_offset(2, 3), (2 * 64 + 3) * 656 + 528);
  // A pool of 2^31 rows has more bytes than 32 bits count.
  EXPECT_EQ(fp8.data_offset(33554431, 63), std::int64_t{33554431} * 37440 + 63 * 576);
}

TEST(KvPage, DividesByMultiplying) {
  for (std::uint32_t divisor : {1u, 2u, 3u, 53u, 61u, 64u, 69u, 256u, 576u, 1000u, 1u << 20}) {
    const FastDivisor fast = make_fast_divisor(divisor);
    const std::uint32_t last = std::numeric_limits<std::int32_t>::max();
    for (std::uint32_t x : {0u, 1u, divisor - 1, divisor, divisor + 1, 999999u, last - 1, last})
      EXPECT_EQ(fast.divide(x), x / divisor) << x << " / " << divisor;
    const std::uint32_t multiple = last / divisor * divisor;
    EXPECT_EQ(fast.divide(multiple - 1), (multiple - 1) / divisor);
    EXPECT_EQ(fast.divide(multiple), multiple / divisor);
  }
}

// Within half a step of the format (e2m1's last one is a third of the largest magnitude, its scale
// may be 1 / 16 too large).
TEST(KvPage, GivesRowsBack) {
  std::vector<float> numbers(kKvDims);
  for (int i = 0; i < kKvDims; ++i) numbers[i] = 0.5f * std::sin(static_cast<float>(3 * i));
  for (const KvFormat format : kFormats) {
    const KvPageLayout layout = {format, 3, kv_default_page_stride(format, 3)};
    std::vector<std::uint8_t> pages(static_cast<std::size_t>(2 * layout.page_stride_bytes), 0xee);
    encode_kv_row(layout, numbers, 4, pages.data());
    std::vector<double> back(kKvDims);
    decode_kv_row(layout, pages.data(), 4, back);
    const double bound = format == KvFormat::kNvfp4 ? 1.07 / 6
                         : format == KvFormat::kFp8 ? 1.0 / 14
                                                    : 1.0 / 256;
    for (int i = 0; i < kKvDims; ++i)
      EXPECT_NEAR(back[i], numbers[i], 0.5 * (i < kKvPlainDims ? bound : 1.0 / 256)) << i;
    const auto written = std::accumulate(pages.begin(), pages.end(), 0,
                                         [](int n, std::uint8_t b) { return n + (b != 0xee); });
    EXPECT_LE(written, kv_row_bytes(format));
    EXPECT_GE(written, kv_row_bytes(format) - 16);  // some bytes are 0xee by chance
  }
}

// Half a step: 2^-8 of a number in bf16; in e4m3 2^-4, or 2^-10 of the scale below its normal
// range, and then it is rounded to bf16.
TEST(KvPage, GivesRowsOf576Back) {
  std::vector<float> numbers(kKvMlaDims);
  for (int i = 0; i < kKvMlaDims; ++i)
    numbers[i] = std::sin(static_cast<float>(3 * i)) * (i < 128 ? 1000.0f : 0.5f);
  for (const KvFormat format : {KvFormat::kBf16Mla, KvFormat::kFp8Mla}) {
    const KvPageLayout layout = {format, 3, kv_default_page_stride(format, 3)};
    std::vector<std::uint8_t> pages(static_cast<std::size_t>(2 * layout.page_stride_bytes), 0xee);
    encode_kv_row(layout, numbers, 4, pages.data());
    std::vector<double> back(kKvMlaDims);
    decode_kv_row(layout, pages.data(), 4, back);
    for (int i = 0; i < kKvMlaDims; ++i) {
      const bool is_code = i < kKvDims && format == KvFormat::kFp8Mla;
      const double scale = (i < 128 ? 1000 : 0.5) / 448,
                   step = 1.0 / 256 + (is_code ? 1.0 / 16 : 0);
      EXPECT_NEAR(back[i], numbers[i], std::abs(numbers[i]) * step + (is_code ? scale / 1024 : 0))
          << i;
    }
    const auto first = pages.begin() + layout.data_offset(1, 1);
    EXPECT_TRUE(std::all_of(pages.begin(), first, [](std::uint8_t b) { return b == 0xee; }));
    EXPECT_TRUE(std::all_of(first + kv_row_bytes(format), pages.end(),
                            [](std::uint8_t b) { return b == 0xee; }));
  }
}

// FlashInfer's example of its NVFP4 cache.
TEST(KvPage, EncodesNvfp4LikeFlashInfer) {
  std::vector<float> numbers(kKvDims);
  const float block[] = {0, -0.0f, .5, -.5, 1, -1, 1.5, -1.5, 2, -2, 3, -3, 4, -4, 6, -6};
  std::copy(std::begin(block), std::end(block), numbers.begin());
  const KvPageLayout layout = {KvFormat::kNvfp4, 1, 384};
  std::vector<std::uint8_t> page(384, 0xee);
  encode_kv_row(layout, numbers, 0, page.data());
  const std::vector<std::uint8_t> expected = {0x80, 0x91, 0xa2, 0xb3, 0xc4, 0xd5, 0xe6, 0xf7};
  EXPECT_EQ(std::vector(page.begin(), page.begin() + 8), expected);
  EXPECT_EQ(page[352], 0x38);
  EXPECT_EQ(std::vector(page.begin() + 380, page.end()), std::vector<std::uint8_t>(4, 0));
}

}  // namespace
}  // namespace tilewright
