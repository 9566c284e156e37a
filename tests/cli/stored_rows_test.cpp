// The weight that results are compared with is the one that the operator multiplies, in every form
// of a source. Each is read by code of its own.
#include "verify/stored_rows.h"

#include "base/tensor.h"
#include "tests/ops/linear/case.h"

#include <gmock/gmock.h>

namespace tilewright::cli {
namespace {

constexpr std::int64_t kRows = 144, kColumns = 160;  // no multiple of the blocks of 128

void expect_same(const LinearWeightSource& source) {
  const ops::HostWeight host = ops::check_weight_source(source);
  const std::vector<double> whole = reference::dequantize(ops::stored(host));
  const std::vector<double> in_e4m3 = reference::dequantize_as_e4m3(ops::stored(host));
  const StoredRows stored(source);
  ASSERT_EQ(stored.n(), kRows);
  ASSERT_EQ(stored.k(), kColumns);
  for (std::int64_t j = 0; j < kRows; ++j) {
    const auto row = [&](const std::vector<double>& all) {
      const auto begin = all.begin() + j * kColumns;
      return std::vector<double>(begin, begin + kColumns);
    };
    ASSERT_EQ(reference::dequantize(stored.row(j)), row(whole)) << "row " << j;
    ASSERT_EQ(reference::dequantize_as_e4m3(stored.row(j)), row(in_e4m3)) << "row " << j;
  }
}

TEST(StoredRows, AreThoseOfTheOperatorInEveryFormat) {
  for (const NumberFormat format : ops::kEveryFormat) {
    SCOPED_TRACE(to_string(format));
    const ops::RandomWeight weight(format, kRows, kColumns);
    expect_same(weight.source);
  }
}

TEST(StoredRows, ReadScalesIn128x4Order) {
  for (const NumberFormat format : {NumberFormat::kMxfp4, NumberFormat::kNvfp4}) {
    SCOPED_TRACE(to_string(format));
    ops::RandomWeight weight(format, kRows, kColumns);
    weight.swizzle();
    expect_same(weight.source);
  }
}

TEST(StoredRows, ReadBytesWithTwoValuesAndReciprocals) {
  ops::RandomWeight weight(NumberFormat::kNvfp4, kRows, kColumns);
  weight.source.values = contiguous_view(static_cast<const void*>(weight.values.data()), DType::kU8,
                                         {kRows, kColumns / 2});
  weight.source.global_scale = 81.25f;
  weight.source.is_global_scale_reciprocal = true;
  expect_same(weight.source);
}

TEST(StoredRows, ReadPowersOfTwoOfFp8Blocks) {
  ops::RandomWeight weight(NumberFormat::kFp8, kRows, kColumns);
  const std::vector<std::uint8_t> powers = {120, 127, 130, 125};
  weight.source.scales =
      contiguous_view(static_cast<const void*>(powers.data()), DType::kF8_E8M0, {2, 2});
  expect_same(weight.source);
}

}  // namespace
}  // namespace tilewright::cli
