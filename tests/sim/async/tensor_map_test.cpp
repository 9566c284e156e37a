#include "sim/async/tensor_map.h"

#include <cstring>
#include <functional>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright::sim {
namespace {

using ::testing::HasSubstr;
using Object = std::array<std::byte, kTensorMapBytes>;

/// K of a small attention: [heads, kv_len, head_dim] bf16.
TensorMapFields k_fields() {
  TensorMapFields fields;
  fields.element = TensorElement::kBf16;
  fields.swizzle = TensorSwizzle::k128B;
  fields.l2_promotion = TensorL2Promotion::k256B;
  fields.fill = TensorFill::kNan;
  fields.rank = 3;
  fields.address = 0x7f0000001000;
  fields.dims = {128, 1000, 8};
  fields.strides_bytes = {256, 256000};
  fields.box = {64, 128, 1};
  fields.element_strides = {1, 1, 1, 0, 0};
  return fields;
}

TensorMapFields im2col_fields() {
  TensorMapFields fields = k_fields();
  fields.mode = TensorMode::kIm2col;
  fields.rank = 4;
  fields.dims = {64, 14, 14, 8};
  fields.strides_bytes = {128, 1792, 25088};
  fields.box = {};
  fields.element_strides = {1, 2, 2, 1, 0};
  fields.lower_corner = {-1, -1};
  fields.upper_corner = {-2, 3};
  fields.channels_per_pixel = 64;
  fields.pixels_per_column = 256;
  return fields;
}

TEST(SimTensorMap, RoundTrip) {
  for (const TensorMapFields& fields : {k_fields(), im2col_fields()}) {
    Object object;
    encode(fields, object);
    const Object copy = object;
    const DecodedTensorMap decoded = decode_tensor_map(copy);
    EXPECT_EQ(decoded.problem, "");
    EXPECT_EQ(decoded.fields, fields);
  }
}

TEST(SimTensorMap, EveryCodeRoundTrips) {
  for (int element = 0; element < 16; ++element) {
    for (int swizzle = 0; swizzle < 8; ++swizzle) {
      TensorMapFields fields = k_fields();
      fields.element = static_cast<TensorElement>(element);
      fields.swizzle = static_cast<TensorSwizzle>(swizzle);
      Object object;
      encode(fields, object);
      EXPECT_EQ(decode_tensor_map(object).fields, fields);
    }
  }
}

/// What CuTeDSL writes on the host and on the device: no call of a driver, nothing behind word 15.
TEST(SimTensorMap, WordsMadeByHandAreAMap) {
  const std::uint32_t words[32] = {
      0x00001000, 0x00007f00, 2 << 4 | 10 << 7 | 3 << 13 | 1 << 15 | 3 << 17,
      16,         16000,      0,
      0,          0,          127,
      999,        7,          0,
      0,          63u << 24,  127};
  Object object;
  std::memcpy(object.data(), words, sizeof words);
  const DecodedTensorMap decoded = decode_tensor_map(object);
  EXPECT_EQ(decoded.problem, "");
  EXPECT_EQ(decoded.fields, k_fields());
}

/// CuTe DSL 4.8.1 sets bit 1 for both chips, and bit 21 for sm_100, whatever the swizzle is.
TEST(SimTensorMap, BitsOfCuteDslAreNoProblem) {
  for (const TensorSwizzle swizzle : {TensorSwizzle::kNone, TensorSwizzle::k128B}) {
    for (const std::uint32_t bits : {1U << 1, 1U << 1 | 1U << 21}) {
      TensorMapFields fields = k_fields();
      fields.swizzle = swizzle;
      Object object;
      encode(fields, object);
      std::uint32_t word;
      std::memcpy(&word, object.data() + 8, 4);
      word |= bits;
      std::memcpy(object.data() + 8, &word, 4);
      const DecodedTensorMap decoded = decode_tensor_map(object);
      EXPECT_EQ(decoded.problem, "");
      EXPECT_EQ(decoded.fields, fields);
    }
  }
}

TEST(SimTensorMap, NonsenseIsNamed) {
  struct Breach {
    std::size_t word;
    std::uint32_t bits, value;  // the bits take the value
    const char* text;
  };
  const Breach breaches[] = {
      {2, 0x8, 0x8, "of which the bits 0x00000008 mean nothing"},
      {2, 0x80000000, 0x80000000, "of which the bits 0x80000000 mean nothing"},
      {2, 7 << 4, 5 << 4, "rank = 6; expected 1 to 5"},
      {2, 15 << 7, 11 << 7, "element type = 11"},
      {2, 1 << 16, 1 << 16, "element type = 10 with bit 16 (TF32) = 1"},
      {2, 3 << 11, 3 << 11, "interleave = 3; expected 0 to 2"},
      {2, 3 << 13 | 3 << 19, 1 << 13 | 1 << 19, "swizzle_atomicity = 1 with swizzle_mode = 1"},
      {2, 1 << 22, 1 << 22, "swizzle_mode = 7"},
      {2, 15 << 7, 1 << 7, "fill = NaN with type u16"},
      {13, 1 << 20, 1 << 20, "bytes 52 to 55"},
      {13, 0xffu << 24, 64u << 24, "box[0] = 65 of bf16"},
      {0, 15, 8, "is not a multiple of 16"},
  };
  for (const Breach& breach : breaches) {
    Object object;
    encode(k_fields(), object);
    std::uint32_t word;
    std::memcpy(&word, object.data() + 4 * breach.word, 4);
    word = (word & ~breach.bits) | breach.value;
    std::memcpy(object.data() + 4 * breach.word, &word, 4);
    EXPECT_THAT(decode_tensor_map(object).problem, HasSubstr(breach.text));
  }
}

/// Whatever bytes there are: an answer, and what is taken for a map is written back as it was.
TEST(SimTensorMap, MutatedObjectsAreMapsOrNamed) {
  std::mt19937_64 rng(11);
  int num_maps = 0;
  for (int i = 0; i < 200000; ++i) {
    Object object;
    encode(i % 2 == 0 ? k_fields() : im2col_fields(), object);
    for (std::uint64_t count = rng() % 4 + 1; count > 0; --count) {
      const std::size_t at = rng() % 64;
      object[at] ^= std::byte{1} << rng() % 8;
      if (rng() % 4 == 0) object[at] = static_cast<std::byte>(rng());
    }
    const DecodedTensorMap decoded = decode_tensor_map(object);
    if (!decoded.problem.empty()) {
      ASSERT_THAT(decoded.problem, ::testing::StartsWith("tensor map: "));
      continue;
    }
    ++num_maps;
    ASSERT_EQ(validate(decoded.fields), "");
    Object again;
    encode(decoded.fields, again);
    ASSERT_EQ(decode_tensor_map(again).fields, decoded.fields);
  }
  EXPECT_GT(num_maps, 10000);
}

TEST(SimTensorMap, ZerosWithEverythingReplacedAreAMap) {
  using F = TensorMapField;
  struct Replacement {
    F field;
    std::uint32_t ordinal;
    std::uint64_t value;
  };
  std::vector<Replacement> all = {{F::kGlobalAddress, 0, 0x7f0000001000},
                                  {F::kRank, 0, 2},
                                  {F::kElemtype, 0, 10},
                                  {F::kInterleaveLayout, 0, 0},
                                  {F::kSwizzleMode, 0, 3},
                                  {F::kSwizzleAtomicity, 0, 3},
                                  {F::kFillMode, 0, 1},
                                  {F::kBoxDim, 0, 64},
                                  {F::kBoxDim, 1, 128},
                                  {F::kBoxDim, 2, 1},
                                  {F::kGlobalDim, 0, 128},
                                  {F::kGlobalDim, 1, 1000},
                                  {F::kGlobalDim, 2, 8},
                                  {F::kGlobalStride, 0, 256},
                                  {F::kGlobalStride, 1, 256000},
                                  {F::kElementStride, 0, 1},
                                  {F::kElementStride, 1, 1},
                                  {F::kElementStride, 2, 1}};
  TensorMapFields expected = k_fields();
  expected.swizzle = TensorSwizzle::k128BAtom64B;
  expected.l2_promotion = TensorL2Promotion::kNone;
  std::mt19937 rng(7);
  for (int order = 0; order < 20; ++order) {
    std::shuffle(all.begin(), all.end(), rng);
    Object object{};
    for (std::size_t i = 0; i < all.size(); ++i) {
      EXPECT_EQ(replace_field(object, all[i].field, all[i].ordinal, all[i].value), "");
    }
    const DecodedTensorMap decoded = decode_tensor_map(object);
    EXPECT_EQ(decoded.problem, "");
    EXPECT_EQ(decoded.fields, expected);
  }
}

TEST(SimTensorMap, ReplaceSpeaksPtx) {
  const TensorElement by_ptx_code[] = {TensorElement::kF16,    TensorElement::kF32,
                                       TensorElement::kF32Ftz, TensorElement::kF64,
                                       TensorElement::kBf16,   TensorElement::kTf32};
  for (std::uint64_t code = 6; code < 12; ++code) {
    Object object;
    encode(k_fields(), object);
    EXPECT_EQ(replace_field(object, TensorMapField::kElemtype, 0, code), "");
    EXPECT_EQ(decode_tensor_map(object).fields.element, by_ptx_code[code - 6]) << code;
  }
}

TEST(SimTensorMap, ReplaceRefuses) {
  Object object;
  encode(k_fields(), object);
  const Object before = object;
  const auto replace = [&](TensorMapField field, std::uint32_t ordinal, std::uint64_t value) {
    return replace_field(object, field, ordinal, value);
  };
  EXPECT_THAT(replace(TensorMapField::kElemtype, 0, 16),
              HasSubstr(".elemtype = 16; expected 0 to"));
  EXPECT_THAT(replace(TensorMapField::kRank, 0, 5), HasSubstr(".rank = 5; expected 0 to 4"));
  EXPECT_THAT(replace(TensorMapField::kGlobalStride, 4, 16), HasSubstr("ordinal 4"));
  EXPECT_THAT(replace(TensorMapField::kBoxDim, 5, 16), HasSubstr("ordinal 5"));
  EXPECT_THAT(replace(TensorMapField::kBoxDim, 1, 65536 + 16),
              HasSubstr(".box_dim = 65552; expected 1 to 256"));
  EXPECT_THAT(replace(TensorMapField::kBoxDim, 1, 0), HasSubstr(".box_dim = 0"));
  EXPECT_THAT(replace(TensorMapField::kElementStride, 2, 9),
              HasSubstr(".element_stride = 9; expected 1 to 8"));
  EXPECT_THAT(replace(TensorMapField::kGlobalStride, 0, 264), HasSubstr("a multiple of 16"));
  EXPECT_THAT(replace(TensorMapField::kGlobalStride, 0, std::uint64_t{1} << 40),
              HasSubstr(".global_stride = 1099511627776; expected 0 to"));
  EXPECT_EQ(object, before);
  EXPECT_THAT(decode_tensor_map(Object{}).problem, HasSubstr("all 128 bytes are 0"));
  object.fill(std::byte{0xcd});
  EXPECT_THAT(decode_tensor_map(object).problem, HasSubstr("bytes 8 to 11 are 0xcdcdcdcd"));
}

TEST(SimTensorMap, SwizzleModeAndAtomicityMustFit) {
  Object object;
  encode(k_fields(), object);
  EXPECT_EQ(replace_field(object, TensorMapField::kSwizzleMode, 0, 1), "");
  EXPECT_EQ(replace_field(object, TensorMapField::kSwizzleAtomicity, 0, 1), "");
  EXPECT_THAT(decode_tensor_map(object).problem, HasSubstr("swizzle_atomicity = 1"));
}

struct Rule {
  const char* text;
  std::function<void(TensorMapFields&)> breach;
};

TEST(SimTensorMap, Rules) {
  using F = TensorMapFields;
  const Rule rules[] = {
      {"rank = 0; expected 1 to 5", [](F& f) { f.rank = 0; }},
      {"rank = 6; expected 1 to 5", [](F& f) { f.rank = 6; }},
      {"rank = 2; expected 3 to 5 with interleave",
       [](F& f) { f.rank = 2, f.interleave = TensorInterleave::k16B; }},
      {"is not a multiple of 16", [](F& f) { f.address += 8; }},
      {"is not a multiple of 32",
       [](F& f) { f.interleave = TensorInterleave::k32B, f.address += 16; }},
      {"box[0] = 12 of bf16 are 24 bytes",
       [](F& f) { f.interleave = TensorInterleave::k32B, f.box[0] = 12; }},
      {"a box has 4194304 bytes; expected at most the 233472 of shared memory",
       [](F& f) {
         f.box = {64, 128, 256};
       }},
      {"dims[1] = 0; expected 1 to 2^32", [](F& f) { f.dims[1] = 0; }},
      {"dims[2] = 4294967297", [](F& f) { f.dims[2] = 0x100000001; }},
      {"strides_bytes[0] = 264 is not", [](F& f) { f.strides_bytes[0] = 264; }},
      {"expected less than 2^40", [](F& f) { f.strides_bytes[1] = std::uint64_t{1} << 40; }},
      {"box[1] = 257; expected 1 to 256", [](F& f) { f.box[1] = 257; }},
      {"box[2] = 0; expected 1 to 256", [](F& f) { f.box[2] = 0; }},
      {"box[0] = 12 of bf16 are 24 bytes; expected a multiple of 16", [](F& f) { f.box[0] = 12; }},
      {"box[0] = 72 of bf16 are 144 bytes; swizzle 128B spans 128", [](F& f) { f.box[0] = 72; }},
      {"element_strides[1] = 9; expected 1 to 8", [](F& f) { f.element_strides[1] = 9; }},
      {"fill = NaN with type u16", [](F& f) { f.element = TensorElement::kU16; }},
      {"dims[0] = 200 is not a multiple of 128, as 16U4_ALIGN16B needs",
       [](F& f) { f.element = TensorElement::k16U4Align16B, f.dims[0] = 200; }},
      {"box[0] = 64; 16U4_ALIGN16B needs 128",
       [](F& f) {
         f.element = TensorElement::k16U4Align16B, f.fill = TensorFill::kZeros;
         f.strides_bytes[0] = 64;
       }},
      {"swizzle = 64B with type 16U4_ALIGN16B",
       [](F& f) {
         f.element = TensorElement::k16U4Align16B, f.fill = TensorFill::kZeros;
         f.swizzle = TensorSwizzle::k64B;
       }},
      {"16U6_ALIGN16B cannot be interleaved",
       [](F& f) {
         f.element = TensorElement::k16U6Align16B, f.interleave = TensorInterleave::k16B;
       }},
  };
  EXPECT_EQ(validate(k_fields()), "");
  for (const Rule& rule : rules) {
    TensorMapFields fields = k_fields();
    rule.breach(fields);
    EXPECT_THAT(validate(fields), HasSubstr(rule.text));
  }
}

TEST(SimTensorMap, Im2colRules) {
  using F = TensorMapFields;
  const Rule rules[] = {
      {"rank = 2; expected 3 to 5 with interleave or im2col", [](F& f) { f.rank = 2; }},
      {"channels per pixel = 257", [](F& f) { f.channels_per_pixel = 257; }},
      {"pixels per column = 1025", [](F& f) { f.pixels_per_column = 1025; }},
      {"lower corner[1] = -129; expected -128 to 127 with rank 4",
       [](F& f) { f.lower_corner[1] = -129; }},
      {"upper corner[0] = 128", [](F& f) { f.upper_corner[0] = 128; }},
      {"lower corner[1] = 10 and upper corner[1] = -4 leave 0 of the 14 pixels of dims[2]",
       [](F& f) { f.lower_corner[1] = 10, f.upper_corner[1] = -4; }},
      {"lower corner[2] = 16; expected -16 to 15 with rank 5",
       [](F& f) {
         f.rank = 5, f.dims[4] = 1, f.element_strides[4] = 1, f.lower_corner = {0, 0, 16};
       }},
  };
  EXPECT_EQ(validate(im2col_fields()), "");
  for (const Rule& rule : rules) {
    TensorMapFields fields = im2col_fields();
    rule.breach(fields);
    EXPECT_THAT(validate(fields), HasSubstr(rule.text));
  }
}

TEST(SimTensorMap, StartIsAMultipleOf16Bytes) {
  struct Group {
    TensorElement element;
    int elems;
  };
  for (const auto& [element, elems] :
       {Group{TensorElement::kU8, 16}, Group{TensorElement::kU16, 8}, Group{TensorElement::kF32, 4},
        Group{TensorElement::k16U4Align16B, 128}, Group{TensorElement::k16U4Align8B, 32}}) {
    TensorMapFields fields = k_fields();
    fields.element = element;
    for (int x = -300; x < 300; ++x) {
      EXPECT_EQ(check_start(fields, x).empty(), x % elems == 0) << name_of(element) << " " << x;
    }
  }
  EXPECT_THAT(check_start(k_fields(), -4),
              HasSubstr("coordinate -4 of bf16 elements; expected a multiple of 8 (16 bytes)"));
}

}  // namespace
}  // namespace tilewright::sim
