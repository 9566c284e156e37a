#include "base/tensor.h"

#include "tests/base/expect_error.h"

#include <array>
#include <cstring>
#include <limits>
#include <set>

// Under a sanitizer too, an allocation that cannot succeed shall throw.
extern "C" const char* __asan_default_options() {
  return "allocator_may_return_null=1";
}
extern "C" const char* __tsan_default_options() {
  return "allocator_may_return_null=1";
}

namespace tilewright {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

std::vector<DType> all_dtypes() {
  std::vector<DType> dtypes;
  for (int i = 0; i <= static_cast<int>(DType::kU64); ++i) dtypes.push_back(static_cast<DType>(i));
  return dtypes;
}

TEST(DType, NamesAreThoseOfTheFormatDescription) {
  // Copied from the list of the reference implementation, with the bits it states.
  const std::map<std::string, int> expected = {
      {"BOOL", 8}, {"F4", 4},          {"F6_E2M3", 6},     {"F6_E3M2", 6}, {"U8", 8},
      {"I8", 8},   {"F8_E5M2", 8},     {"F8_E4M3", 8},     {"F8_E8M0", 8}, {"I16", 16},
      {"U16", 16}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"F16", 16},    {"BF16", 16},
      {"I32", 32}, {"U32", 32},        {"F32", 32},        {"C64", 64},    {"F64", 64},
      {"I64", 64}, {"U64", 64},
  };
  std::map<std::string, int> actual;
  for (const DType dtype : all_dtypes()) actual.emplace(to_string(dtype), bits_per_elem(dtype));
  EXPECT_EQ(actual, expected);
}

TEST(DType, NameAndTypeAreInverse) {
  for (const DType dtype : all_dtypes()) EXPECT_EQ(dtype_from_string(to_string(dtype)), dtype);
  EXPECT_EQ(dtype_from_string("BF16"), DType::kBF16);
  for (const char* name : {"", "bf16", "BF16 ", "F8", "F128"}) {
    EXPECT_EQ(dtype_from_string(name), std::nullopt) << name;
  }
}

TEST(DType, WiderTypesComeLater) {
  // The order decides where tensors lie in a safetensors file; sub-byte types are on a par with
  // bytes there.
  int bits = 8;
  for (const DType dtype : all_dtypes()) {
    EXPECT_GE(std::max(bits_per_elem(dtype), 8), bits) << to_string(dtype);
    bits = std::max(bits_per_elem(dtype), 8);
  }
}

TEST(TensorView, MutableConvertsToConst) {
  float data[6] = {};
  const TensorView view = contiguous_view(static_cast<void*>(data), DType::kF32, {2, 3});
  const ConstTensorView read_only = view;
  EXPECT_EQ(read_only.data, data);
  EXPECT_EQ(read_only.dtype, DType::kF32);
  EXPECT_THAT(read_only.shape, ElementsAre(2, 3));
  EXPECT_THAT(read_only.strides, ElementsAre(3, 1));
  static_assert(!std::is_convertible_v<ConstTensorView, TensorView>);
}

TEST(ContiguousStrides, AreProductsOfLaterDimensions) {
  EXPECT_THAT(contiguous_strides(std::vector<std::int64_t>{2, 3, 4}), ElementsAre(12, 4, 1));
  EXPECT_THAT(contiguous_strides(std::vector<std::int64_t>{7}), ElementsAre(1));
  EXPECT_THAT(contiguous_strides({}), IsEmpty());
  EXPECT_THAT(contiguous_strides(std::vector<std::int64_t>{2, 0, 4}), ElementsAre(4, 4, 1));
}

TEST(ContiguousStrides, RefusesOverflowEvenOfAnEmptyTensor) {
  const std::vector<std::int64_t> shape = {0, kMax, 3};
  EXPECT_EQ(error_of(ErrorKind::kInvalidArgument, [&] { contiguous_strides(shape); }),
            "contiguous_strides: shape [0, 9223372036854775807, 3] has too many elements; at most "
            "2^63 - 1 fit");
}

ConstTensorView strided(std::vector<std::int64_t> shape, std::vector<std::int64_t> strides) {
  return {nullptr, DType::kF32, std::move(shape), std::move(strides)};
}

TEST(IsContiguous, LooksAtStridesThatMatter) {
  EXPECT_TRUE(is_contiguous(strided({}, {})));
  EXPECT_TRUE(is_contiguous(strided({2, 3}, {3, 1})));
  EXPECT_TRUE(is_contiguous(strided({2, 1, 3}, {3, 77, 1})));
  EXPECT_TRUE(is_contiguous(strided({5, 0}, {9, 9})));
  EXPECT_FALSE(is_contiguous(strided({2, 3}, {1, 2})));
  EXPECT_FALSE(is_contiguous(strided({2, 3}, {4, 1})));
  EXPECT_FALSE(is_contiguous(strided({2, 3}, {0, 1})));
  EXPECT_FALSE(is_contiguous(strided({3}, {-1})));
}

TEST(CheckedSizes, CountElementsAndBytes) {
  const std::vector<std::int64_t> shape = {3, 4, 2};
  EXPECT_EQ(checked_num_elems(shape, "t"), 24);
  EXPECT_EQ(checked_num_bytes(DType::kBF16, shape, "t"), 48);
  EXPECT_EQ(checked_num_bytes(DType::kF4, shape, "t"), 12);
  EXPECT_EQ(checked_num_bytes(DType::kF6_E2M3, shape, "t"), 18);
  EXPECT_EQ(checked_num_elems({}, "t"), 1);
  EXPECT_EQ(checked_num_bytes(DType::kF64, std::vector<std::int64_t>{5, 0}, "t"), 0);
  EXPECT_EQ(checked_num_elems(std::vector<std::int64_t>{kMax, 1}, "t"), kMax);
}

std::string size_error(DType dtype, std::vector<std::int64_t> shape) {
  return error_of(ErrorKind::kParseError,
                  [&] { checked_num_bytes(dtype, shape, "x.bin: w", ErrorKind::kParseError); });
}

TEST(CheckedSizes, RefusalsNameShapeAndValue) {
  EXPECT_EQ(size_error(DType::kF32, {2, -3}),
            "x.bin: w: shape [2, -3] has the dimension -3; dimensions are 0 or more");
  EXPECT_EQ(size_error(DType::kU8, {1LL << 32, 1LL << 31}),
            "x.bin: w: shape [4294967296, 2147483648] has too many elements; at most 2^63 - 1 fit");
  EXPECT_EQ(size_error(DType::kF64, {1LL << 60}),
            "x.bin: w: 1152921504606846976 elements of F64 are too large; at most 2^63 - 1 bits "
            "fit");
  EXPECT_EQ(size_error(DType::kF4, {3, 5}),
            "x.bin: w: shape [3, 5] of F4 takes 60 bits, not a whole number of bytes; pad the last "
            "dimension");
}

TEST(ShapeText, CutsHostileRanks) {
  EXPECT_EQ(shape_text({}), "[]");
  EXPECT_EQ(shape_text(std::vector<std::int64_t>(8, 1)), "[1, 1, 1, 1, 1, 1, 1, 1]");
  EXPECT_EQ(shape_text(std::vector<std::int64_t>(1'000'000, 1)),
            "[1, 1, 1, 1, 1, 1, 1, 1, ... 1000000 dimensions]");
}

TEST(IsElemType, MatchesKindAndWidth) {
  std::set<std::string> as_float;
  std::set<std::string> as_int16;
  std::set<std::string> as_uint8;
  for (const DType dtype : all_dtypes()) {
    if (is_elem_type<float>(dtype)) as_float.insert(to_string(dtype));
    if (is_elem_type<std::int16_t>(dtype)) as_int16.insert(to_string(dtype));
    if (is_elem_type<std::uint8_t>(dtype)) as_uint8.insert(to_string(dtype));
  }
  EXPECT_THAT(as_float, ElementsAre("F32"));
  EXPECT_THAT(as_int16, ElementsAre("I16"));
  EXPECT_THAT(as_uint8, ElementsAre("BOOL", "F8_E4M3", "F8_E4M3FNUZ", "F8_E5M2", "F8_E5M2FNUZ",
                                    "F8_E8M0", "I8", "U8"));
}

TEST(HostTensor, OwnsZeroedElements) {
  HostTensor tensor(DType::kF32, {2, 3});
  EXPECT_EQ(tensor.num_elems(), 6);
  EXPECT_EQ(tensor.bytes().size(), 24u);
  EXPECT_THAT(tensor.elems<float>(), ElementsAre(0, 0, 0, 0, 0, 0));
  tensor.elems<float>()[4] = 1.0f;
  EXPECT_EQ(std::as_const(tensor).elems<std::uint32_t>()[4], 0x3f800000u);
  EXPECT_THAT(tensor.view().strides, ElementsAre(3, 1));
  EXPECT_EQ(tensor.view().data, tensor.bytes().data());
}

TEST(HostTensor, DefaultHasNoElements) {
  const HostTensor tensor;
  EXPECT_EQ(tensor.num_elems(), 0);
  EXPECT_THAT(tensor.view().shape, ElementsAre(0));
  EXPECT_TRUE(tensor.bytes().empty());
}

TEST(HostTensor, CopiesUnalignedViews) {
  std::array<std::byte, 9> memory{};
  const float value = 2.5f;
  std::memcpy(memory.data() + 1, &value, sizeof(value));
  const HostTensor tensor(
      contiguous_view(static_cast<const void*>(memory.data() + 1), DType::kF32, {2}));
  EXPECT_THAT(tensor.elems<float>(), ElementsAre(2.5f, 0.0f));
}

TEST(HostTensor, RefusesViewsWithGaps) {
  const std::array<float, 8> memory{};
  const ConstTensorView view = {memory.data(), DType::kF32, {2, 3}, {4, 1}};
  EXPECT_EQ(error_of(ErrorKind::kUnsupported, [&] { HostTensor{view}; }),
            "HostTensor: shape [2, 3] with strides [4, 1] is not contiguous; make it contiguous "
            "first");
  const ConstTensorView no_strides = {memory.data(), DType::kF32, {2, 3}, {}};
  EXPECT_THAT(error_of(ErrorKind::kUnsupported, [&] { HostTensor{no_strides}; }),
              HasSubstr("shape [2, 3] with strides []"));
}

TEST(HostTensor, RefusesTheWrongElementType) {
  HostTensor tensor(DType::kBF16, {2});
  EXPECT_THAT(error_of(ErrorKind::kInvalidArgument, [&] { tensor.elems<float>(); }),
              HasSubstr("elements are BF16 (16 bits) and cannot be read as the C++ type asked for, "
                        "of 32 bits"));
  EXPECT_EQ(tensor.elems<std::uint16_t>().size(), 2u);
}

TEST(HostTensor, SaysWhatDoesNotFitIntoMemory) {
  EXPECT_EQ(
      error_of(ErrorKind::kOutOfMemory, [] { HostTensor(DType::kU8, {1LL << 59}); }),
      "HostTensor: no host memory for 576460752303423488 bytes (shape [576460752303423488] of "
      "U8)");
}

}  // namespace
}  // namespace tilewright
