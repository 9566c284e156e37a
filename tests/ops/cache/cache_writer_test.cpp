// Norm, rotation and cache rows: values against the float64 references, bytes against formats/.
#include "base/safetensors.h"
#include "formats/kv_row.h"
#include "tests/ops/cache_case.h"

#include <filesystem>
#include <numeric>

namespace tilewright::ops {
namespace {

using reference::expect_invalid;

constexpr std::int64_t kPositions = 300;

struct WriteCase {
  NumberFormat format = NumberFormat::kFp8;
  std::int64_t page_size = 64, num_pages = 3, page_stride_bytes = 0;
  bool is_f32 = false;
  std::int64_t heads = 3;
  bool has_kv = true;
  double eps = 1e-6;
};

class CacheWriterTest : public CacheTest {
 protected:
  // Two of the tokens are none, one has no row, rows are not in order.
  static inline const std::vector<std::int32_t> kTokens = {0, 1, 299, 17, -1, 128, 300, 5};
  static inline const std::vector<std::int32_t> kSlots = {5, 0, -1, 7, 4, 3, 6, 1 << 30};

  // Rows of all operands are further apart than they are long.
  static constexpr std::int64_t kGap = 8, kRowStride = kKvDims + kGap;
  static std::int64_t q_token_stride(const WriteCase& c) { return c.heads * kRowStride + 2 * kGap; }

  // kv of different magnitudes: blocks with scales far apart, and one of zeros.
  static Bf16s draw_kv() {
    Bf16s kv = random_bf16(1, static_cast<std::int64_t>(kTokens.size()) * kKvDims);
    for (std::size_t i = 0; i < kv.size(); ++i) {
      const std::size_t block = i / 64 % 8;
      const double factor = block == 2 ? 0 : std::exp2(static_cast<double>(block) * 3 - 12);
      kv[i] = static_cast<std::uint16_t>(encode(kBf16, decode(kBf16, kv[i]) * factor));
    }
    return kv;
  }

  static std::vector<double> rows_in_fp64(const Bf16s& kv, const Bf16s& weight, double eps = 1e-6) {
    const auto rows = static_cast<std::int64_t>(kTokens.size());
    const auto normed = reference::rms_norm({.rows = rows, .dim = kKvDims, .eps = eps},
                                            bf16_values(kv), bf16_values(weight));
    return reference::rope(
        {.tokens = rows, .heads = 1, .head_dim = kKvDims, .rotary_dim = kKvRopeDims}, normed,
        kTokens, plain_frequencies());
  }

  struct Written {
    KvCacheLayout layout;
    std::vector<std::uint8_t> pages;
    Bf16s kv_out, q_out;
  };

  static Written write(const WriteCase& c, const Bf16s& kv, const Bf16s& weight, const Bf16s& q,
                       bool in_place = false) {
    const KvCache cache(device(), {c.format, c.page_size, c.num_pages, c.page_stride_bytes});
    const KvCacheLayout& layout = cache.layout();
    std::vector<float> kv_f32;
    for (const std::uint16_t code : kv) kv_f32.push_back(bf16_value(code));
    const std::int64_t q_row = std::max<std::int64_t>(c.heads, 1) * kRowStride;
    const Bf16s q_apart = spread_rows(spread_rows(q, kKvDims, kRowStride, kNanCode), q_row,
                                      q_row + 2 * kGap, kNanCode);
    const Buffer kv_in = c.is_f32 ? upload(spread_rows(kv_f32, kKvDims, kRowStride, NAN))
                                  : upload(spread_rows(kv, kKvDims, kRowStride, kNanCode)),
                 w = upload(weight), q_in = upload(q_apart), positions = upload(kTokens),
                 slots = upload(kSlots), rope = upload(rope_table({}, kPositions)),
                 pages = poisoned(kv_cache_bytes(layout)), kv_out = poisoned(kv.size() * 2),
                 q_out = poisoned(q_apart.size() * 2);
    cache.write({.tokens = static_cast<std::int64_t>(kTokens.size()),
                 .heads = c.heads,
                 .eps = c.eps,
                 .q = pointer_to<void>(q_in),
                 .q_out = in_place ? nullptr : pointer_to<void>(q_out),
                 .q_token_stride = q_token_stride(c),
                 .q_head_stride = kRowStride,
                 .kv = c.has_kv ? pointer_to<void>(kv_in) : nullptr,
                 .kv_dtype = c.is_f32 ? DType::kF32 : DType::kBF16,
                 .kv_stride = kRowStride,
                 .kv_weight = pointer_to<void>(w),
                 .positions = pointer_to<std::int32_t>(positions),
                 .rope = {.angles = pointer_to<float>(rope), .positions = kPositions},
                 .slots = c.has_kv ? pointer_to<std::int32_t>(slots) : nullptr,
                 .pages = c.has_kv ? pointer_to<void>(pages) : nullptr,
                 .kv_out = c.has_kv ? pointer_to<void>(kv_out) : nullptr});
    const Bf16s turned = download<std::uint16_t>(in_place ? q_in : q_out);
    return {layout, download<std::uint8_t>(pages), download<std::uint16_t>(kv_out),
            gather_rows(gather_rows(turned, q_row, q_row + 2 * kGap, kNanCode), kKvDims, kRowStride,
                        kNanCode)};
  }

  static bool is_written(std::size_t token, const KvCacheLayout& layout) {
    return kTokens[token] >= 0 && kTokens[token] < kPositions && kSlots[token] >= 0 &&
           kSlots[token] < layout.page_size * layout.num_pages;
  }

  // Rows as the kernel rounded them: what a cache of bf16 gives back.
  static const Bf16s& rounded_rows(const Bf16s& kv, const Bf16s& weight) {
    static const Bf16s rows =
        write({.format = NumberFormat::kBf16, .heads = 0}, kv, weight, {}).kv_out;
    return rows;
  }

  static void check_bytes(const WriteCase& c) {
    SCOPED_TRACE(fmt::format("{}, pages of {}, stride {}", to_string(c.format), c.page_size,
                             c.page_stride_bytes));
    const Bf16s kv = draw_kv(), weight = random_bf16(2, kKvDims, 0.5, 1.5);
    const Bf16s& rows = rounded_rows(kv, weight);
    const Written found = write(c, kv, weight, random_bf16(3, 8 * c.heads * kKvDims));
    const auto format = kv_format(c.format);
    std::vector<std::uint8_t> expected(found.pages.size(), 0xff);
    for (std::size_t t = 0; t < kTokens.size(); ++t) {
      const std::uint16_t* const row = rows.data() + t * kKvDims;
      if (is_written(t, found.layout))
        place_row(expected, found.layout, format, kSlots[t], encode_row(format, row));
      const bool is_token = kTokens[t] >= 0 && kTokens[t] < kPositions;
      const Bf16s back = is_token ? decode_row(format, row) : Bf16s(kKvDims, 0xffff);
      ASSERT_TRUE(std::equal(back.begin(), back.end(), found.kv_out.begin() + t * kKvDims))
          << "kv_out of token " << t;
    }
    expect_same_bytes(found.pages, expected, found.layout.page_stride_bytes);
  }
};
TILEWRIGHT_ON_EVERY_CHIP(CacheWriterTest);

TEST_P(CacheWriterTest, RowsAreNormedRotatedAndRoundedOnce) {
  const Bf16s kv = draw_kv(), weight = random_bf16(2, kKvDims, 0.5, 1.5);
  const Bf16s found = rounded_rows(kv, weight);
  const std::vector<double> expected = rows_in_fp64(kv, weight);
  for (std::size_t t = 0; t < kTokens.size(); ++t) {
    if (kTokens[t] < 0 || kTokens[t] >= kPositions) continue;
    SCOPED_TRACE(t);
    const auto at = static_cast<std::ptrdiff_t>(t * kKvDims);
    expect_near_bf16(Bf16s(found.begin() + at, found.begin() + at + kKvDims),
                     {expected.begin() + at, expected.begin() + at + kKvDims});
  }
}

TEST_P(CacheWriterTest, AnyEps) {
  const Bf16s kv = draw_kv(), weight = random_bf16(2, kKvDims, 0.5, 1.5);
  const WriteCase c = {.format = NumberFormat::kBf16, .heads = 0, .eps = 0.75};
  const Bf16s found = write(c, kv, weight, {}).kv_out;
  const std::vector<double> expected = rows_in_fp64(kv, weight, c.eps);
  expect_near_bf16(Bf16s(found.begin(), found.begin() + kKvDims),
                   {expected.begin(), expected.begin() + kKvDims});
}

TEST_P(CacheWriterTest, PagesToTheByte) {
  check_bytes({.format = NumberFormat::kBf16, .page_size = 53, .num_pages = 2});
  check_bytes({.format = NumberFormat::kFp8, .heads = 1});
  check_bytes({.format = NumberFormat::kFp8, .page_size = 1, .num_pages = 9, .is_f32 = true});
  check_bytes({.format = NumberFormat::kFp8,
               .page_size = 2,
               .num_pages = 4,
               .page_stride_bytes = 1184,
               .heads = 0});
  check_bytes({.format = NumberFormat::kNvfp4, .page_size = 64});
  check_bytes({.format = NumberFormat::kNvfp4, .page_size = 3, .is_f32 = true, .heads = 0});
}

TEST_P(CacheWriterTest, QueriesByHeadWithoutWeight) {
  const WriteCase c = {.heads = 5};
  const auto tokens = static_cast<std::int64_t>(kTokens.size());
  const Bf16s q = random_bf16(4, tokens * c.heads * kKvDims), kv = draw_kv(),
              weight = random_bf16(2, kKvDims);
  const Bf16s found = write(c, kv, weight, q).q_out;
  EXPECT_EQ(write(c, kv, weight, q, true).q_out, found) << "in place";
  const Written alone = write({.heads = 5, .has_kv = false}, kv, weight, q);
  EXPECT_EQ(alone.q_out, found) << "without rows";
  EXPECT_EQ(alone.pages, std::vector<std::uint8_t>(alone.pages.size(), 0xff));
  const auto normed =
      reference::rms_norm({.rows = tokens * c.heads, .dim = kKvDims}, bf16_values(q));
  const auto expected = reference::rope(
      {.tokens = tokens, .heads = c.heads, .head_dim = kKvDims, .rotary_dim = kKvRopeDims}, normed,
      kTokens, plain_frequencies());
  const std::int64_t row = c.heads * kKvDims;
  for (std::int64_t t = 0; t < tokens; ++t) {
    SCOPED_TRACE(t);
    const Bf16s part(found.begin() + t * row, found.begin() + (t + 1) * row);
    const std::int32_t position = kTokens[static_cast<std::size_t>(t)];
    if (position < 0) {
      EXPECT_EQ(part, Bf16s(static_cast<std::size_t>(row), 0));
    } else if (position >= kPositions) {
      for (const std::uint16_t code : part) ASSERT_TRUE(std::isnan(bf16_value(code)));
    } else {
      expect_near_bf16(part, {expected.begin() + t * row, expected.begin() + (t + 1) * row});
    }
  }
}

TEST_P(CacheWriterTest, ReadsWhatWasWritten) {
  for (const auto format : {NumberFormat::kBf16, NumberFormat::kFp8, NumberFormat::kNvfp4}) {
    SCOPED_TRACE(to_string(format));
    const Bf16s kv = draw_kv(), weight = random_bf16(2, kKvDims, 0.5, 1.5);
    const WriteCase c = {.format = format, .page_size = 3, .heads = 0};
    const Written written = write(c, kv, weight, {});
    const KvCache cache(device(), written.layout);
    std::vector<std::int32_t> rows;
    Bf16s expected;
    for (std::size_t t = 0; t < kTokens.size(); ++t) {
      rows.push_back(is_written(t, written.layout) ? kSlots[t] : t % 2 == 0 ? -1 : 9);
      const auto at = written.kv_out.begin() + static_cast<std::ptrdiff_t>(t * kKvDims);
      const Bf16s row = is_written(t, written.layout) ? Bf16s(at, at + kKvDims) : Bf16s(kKvDims, 0);
      expected.insert(expected.end(), row.begin(), row.end());
    }
    const Buffer pages = upload(written.pages), list = upload(rows),
                 out = poisoned(rows.size() * kRowStride * 2);
    cache.read({.count = static_cast<std::int64_t>(rows.size()),
                .rows = pointer_to<std::int32_t>(list),
                .pages = pointer_to<void>(pages),
                .out = pointer_to<void>(out),
                .out_stride = kRowStride});
    EXPECT_EQ(gather_rows(download<std::uint16_t>(out), kKvDims, kRowStride, kNanCode), expected);
  }
}

TEST_P(CacheWriterTest, BlocksThatAreNotFiniteHaveNoScale) {
  Bf16s kv = draw_kv();
  kv[3 * kKvDims + 100] = 0x7f80;  // infinity: the row's norm is infinite, the row 0 and NaN
  const Bf16s weight(kKvDims, 0x3f80);
  const Bf16s rows = write({.format = NumberFormat::kBf16, .heads = 0}, kv, weight, {}).kv_out;
  const Written found = write({.heads = 0}, kv, weight, {});
  std::vector<std::uint8_t> expected(found.pages.size(), 0xff);
  for (std::size_t t = 0; t < kTokens.size(); ++t) {
    if (!is_written(t, found.layout)) continue;
    place_row(expected, found.layout, KvFormat::kFp8, kSlots[t],
              encode_row(KvFormat::kFp8, rows.data() + t * kKvDims));
  }
  expect_same_bytes(found.pages, expected, found.layout.page_stride_bytes);
}

// Rows of a trained model: what its float64 reference has in the cache.
TEST_P(CacheWriterTest, RowsOfARealModel) {
  const SafetensorsFile file(std::filesystem::path(TILEWRIGHT_TEST_DATA) /
                             "dsv4/cache_rows.safetensors");
  const auto bytes = [&](const std::string& name) {
    const ConstTensorView view = file.tensor(name);
    const std::int64_t elems =
        std::accumulate(view.shape.begin(), view.shape.end(), std::int64_t{1}, std::multiplies<>());
    std::vector<std::uint8_t> copy(static_cast<std::size_t>(elems * bits_per_elem(view.dtype) / 8));
    std::memcpy(copy.data(), view.data, copy.size());
    return copy;
  };
  const std::vector<std::uint8_t> raw = bytes("positions");
  std::vector<std::int32_t> positions(raw.size() / 4), slots(positions.size());
  std::memcpy(positions.data(), raw.data(), raw.size());
  std::iota(slots.begin(), slots.end(), 0);
  const KvCache cache(device(), {.format = NumberFormat::kFp8, .page_size = 8, .num_pages = 1});
  for (const std::string layer : {"0", "1", "2"}) {
    SCOPED_TRACE("layer " + layer);
    const RopeOptions options = layer == "0" ? kRopeWindowLayers : kRopeCompressedLayers;
    const Buffer kv = upload(bytes(layer + ".kv_in")), weight = upload(bytes(layer + ".norm")),
                 at = upload(positions), rows = upload(slots),
                 rope = upload(rope_table(options, 700)),
                 pages = poisoned(kv_cache_bytes(cache.layout()));
    cache.write({.tokens = std::ssize(positions),
                 .kv = pointer_to<void>(kv),
                 .kv_dtype = DType::kF32,
                 .kv_weight = pointer_to<void>(weight),
                 .positions = pointer_to<std::int32_t>(at),
                 .rope = {.angles = pointer_to<float>(rope), .positions = 700},
                 .slots = pointer_to<std::int32_t>(rows),
                 .pages = pointer_to<void>(pages)});
    const auto found = download<std::uint8_t>(pages);
    const auto codes = bytes(layer + ".kv_fp8"), scales = bytes(layer + ".kv_scale"),
               rotated = bytes(layer + ".kv_rope");
    // Where fp32 is on the other side of a tie than fp64, a code is off by one: none is here.
    for (std::size_t t = 0; t < positions.size(); ++t) {
      const auto row = found.begin() + static_cast<std::ptrdiff_t>(t * 576);
      const auto scale = found.begin() + static_cast<std::ptrdiff_t>(8 * 576 + t * 8);
      const auto part = [&](const std::vector<std::uint8_t>& all, std::size_t size) {
        const auto from = all.begin() + static_cast<std::ptrdiff_t>(t * size);
        return std::vector<std::uint8_t>(from, from + static_cast<std::ptrdiff_t>(size));
      };
      EXPECT_EQ(std::vector<std::uint8_t>(row, row + 448), part(codes, 448));
      EXPECT_EQ(std::vector<std::uint8_t>(row + 448, row + 576), part(rotated, 128));
      EXPECT_EQ(std::vector<std::uint8_t>(scale, scale + 7), part(scales, 7));
    }
  }
}

TEST_P(CacheWriterTest, RefusesWhatMakesNoSense) {
  const KvCache cache(device(), {.num_pages = 1});
  float place = 0;
  KvWriteArguments good = {.tokens = 1, .heads = 1, .q = &place, .rope = {.positions = 1}};
  expect_invalid([&] { cache.write(good); }, {"cache write", "positions", "null"});
  good.q_head_stride = 4;
  expect_invalid([&] { cache.write(good); }, {"q_head_stride = 4", "multiple of 8"});
  expect_invalid([&] { cache.read({.count = -1}); }, {"count = -1", "expected 0"});
  expect_invalid([&] { cache.list({.tokens = 1}); }, {"sequences.batch = 0"});
  expect_invalid([] { rope_table({.theta = 1}, 1); }, {"theta = 1"});
  expect_invalid([] { KvCache(device(), {.page_size = 0}); }, {"page_size = 0"});
  expect_invalid([] { KvCache(device(), {.format = NumberFormat::kMxfp4}); },
                 {"format = mxfp4", "expected bf16, fp8 or nvfp4"});
  // Their product does not fit into 64 bits.
  for (const std::int64_t stride : {std::int64_t{1} << 62, std::int64_t{1} << 61}) {
    expect_invalid([&] { kv_cache_bytes({.num_pages = 4, .page_stride_bytes = stride}); },
                   {"page_stride_bytes = ", "fewer than 2^63 bytes in all 4 pages"});
  }
  for (const double eps : {-1.0, 1e-320, 1e300, double{NAN}}) {
    KvWriteArguments wrong = {.tokens = 1, .heads = 1, .q = &place, .rope = {.positions = 1}};
    wrong.eps = eps;
    expect_invalid([&] { cache.write(wrong); }, {"eps = ", "as fp32 holds it"});
  }
}

}  // namespace
}  // namespace tilewright::ops
