// Numbers of DeepSeek-V4 caches on the device: every code under every scale, against the formats.
#include "kernels/probe/decode_kv_probe.h"
#include "tests/kernels/kernel_test.h"

#include <cmath>

namespace tilewright::kernels {
namespace {

class DecodeKv : public KernelTest {
 protected:
  struct Case {
    std::vector<std::uint8_t> codes;    // 16 of each thread
    std::vector<std::uint32_t> scales;  // of each thread
  };
  /// 16 numbers of each thread.
  std::vector<std::uint32_t> decode_all(const char* name, const Case& c) const {
    std::vector<std::uint32_t> words(c.codes.size() / 4);
    std::memcpy(words.data(), c.codes.data(), c.codes.size());
    const auto count = static_cast<std::int32_t>(c.scales.size());
    const Buffer codes = Buffer::from(device(), words), scales = Buffer::from(device(), c.scales);
    const Output<std::uint32_t> bf16(device(), c.scales.size() * 8);
    run_kernel(device(), name,
               {.grid = {ceil_div(count, kDecodeKvProbeThreads)}, .block = {kDecodeKvProbeThreads}},
               DecodeKvProbeParams{pointer_to<const std::uint32_t>(codes),
                                   pointer_to<const std::uint32_t>(scales), bf16.pointer(), count});
    std::vector<std::uint32_t> out;
    for (const std::uint32_t pair : bf16.read()) {
      out.push_back(pair & 0xffff);
      out.push_back(pair >> 16);
    }
    return out;
  }
};

constexpr double kLargestBf16 = 0x1.fep127, kSmallestNormal = 0x1p-126;

// Exact where the product is a normal bf16, rounded once where it is less, infinite where more.
TEST_P(DecodeKv, Fp8TimesPowersOfTwoIsExact) {
  Case c;
  for (std::uint32_t scale = 0; scale < 255; ++scale) {
    for (std::uint32_t code = 0; code < 256; ++code) {
      c.codes.push_back(static_cast<std::uint8_t>(code));
      if (code % 16 == 0) c.scales.push_back(scale);
    }
  }
  const std::vector<std::uint32_t> out = decode_all("decode_kv_fp8", c);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::uint32_t code = c.codes[i];
    if ((code & 0x7f) == 0x7f) continue;  // NaN is not kept
    const int exponent = static_cast<int>(c.scales[i / 16]) - 127;
    const double expected = std::ldexp(decode(kE4m3, code), exponent);
    const double found = decode(kBf16, out[i]);
    if (std::fabs(expected) > kLargestBf16) {
      ASSERT_TRUE(std::isinf(found)) << code << " * 2^" << exponent;
    } else {
      const bool is_exact = std::fabs(expected) >= kSmallestNormal || expected == 0;
      ASSERT_NEAR(found, expected, is_exact ? 0 : 0x1p-134) << code << " * 2^" << exponent;
      ASSERT_EQ(std::signbit(found), std::signbit(expected)) << code << " * 2^" << exponent;
    }
  }
}

TEST_P(DecodeKv, Nvfp4TimesE4m3IsExact) {
  Case c;
  for (std::uint32_t scale = 0; scale < 0x7f; ++scale) {
    // Each code at each place: byte i holds elements 2i and 2i + 1.
    for (std::uint32_t turn = 0; turn < 16; ++turn) {
      c.scales.push_back(scale);
      for (std::uint32_t i = 0; i < 16; i += 2)
        c.codes.push_back(static_cast<std::uint8_t>((i + turn) % 16 | (i + 1 + turn) % 16 << 4));
    }
  }
  const std::vector<std::uint32_t> out = decode_all("decode_kv_nvfp4", c);
  ASSERT_EQ(out.size(), c.scales.size() * 16);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::uint32_t code = c.codes[i / 2] >> 4 * (i % 2) & 15;
    const double expected = decode(kE2m1, code) * decode(kE4m3, c.scales[i / 16]);
    ASSERT_EQ(decode(kBf16, out[i]), expected) << code << ", scale " << c.scales[i / 16];
  }
}

TILEWRIGHT_ON_EVERY_DEVICE(DecodeKv);

}  // namespace
}  // namespace tilewright::kernels
