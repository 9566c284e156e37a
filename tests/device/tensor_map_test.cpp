#include "device/tensor_map.h"

#include "fake_device_test.h"

#include <bit>

namespace tilewright::device {
namespace {

using abi::CUresult;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

using Type = TensorMapType;
using Swizzle = TensorMapSwizzle;
using Interleave = TensorMapInterleave;

using TensorMapTest = FakeDeviceTest;

/// K of a small attention: [heads, kv_len, head_dim] bf16.
TensorMapSpec k_spec() {
  return {
      .name = "K",
      .type = Type::kBfloat16,
      .address = 0x7f0000001000,
      .dims = {128, 1000, 8},
      .strides_bytes = {256, 256000},
      .box = {64, 128, 1},
      .swizzle = Swizzle::k128B,
      .l2_promotion = TensorMapL2Promotion::k256B,
      .oob_fill = TensorMapOobFill::kNan,
  };
}

/// The least of a 4-bit tensor in 16-byte groups.
TensorMapSpec fp4_spec() {
  return {
      .name = "W",
      .type = Type::k16U4Align16B,
      .address = 0x7f0000001020,
      .dims = {256, 64},
      .strides_bytes = {128},
      .box = {128, 16},
      .swizzle = Swizzle::k128B,
  };
}

/// Changes one field and expects the message to name it.
template <class Change>
std::string refusal(TensorMapSpec spec, Change&& change) {
  change(spec);
  const std::string message = error_of(ErrorKind::kInvalidArgument, [&] { validate(spec); });
  EXPECT_THAT(message, StartsWith("tensor map " + spec.name + ": "));
  return message;
}

template <class Change>
void expect_valid(TensorMapSpec spec, Change&& change) {
  change(spec);
  EXPECT_NO_THROW(validate(spec));
}

TEST_F(TensorMapTest, EveryFieldReachesTheDriver) {
  const Device device = open();
  const abi::CUtensorMap map = encode_tensor_map(device, k_spec());
  EXPECT_EQ(map.opaque[0], 0x7e500000u);
  EXPECT_EQ(map.opaque[15], 0x7e50000fu);
  ASSERT_EQ(state().tensor_maps.size(), 1u);
  const fake::TensorMapCall& call = state().tensor_maps[0];
  EXPECT_EQ(call.type, Type::kBfloat16);
  EXPECT_EQ(call.rank, 3u);
  EXPECT_EQ(call.address, 0x7f0000001000u);
  EXPECT_THAT(call.dims, ElementsAre(128, 1000, 8));
  EXPECT_THAT(call.strides_bytes, ElementsAre(256, 256000));
  EXPECT_THAT(call.box, ElementsAre(64, 128, 1));
  EXPECT_THAT(call.element_strides, ElementsAre(1, 1, 1)) << "empty means 1 everywhere";
  EXPECT_EQ(call.interleave, Interleave::kNone);
  EXPECT_EQ(call.swizzle, Swizzle::k128B);
  EXPECT_EQ(call.l2_promotion, TensorMapL2Promotion::k256B);
  EXPECT_EQ(call.oob_fill, TensorMapOobFill::kNan);
}

TEST_F(TensorMapTest, OneDimensionNeedsNoStrides) {
  const Device device = open();
  encode_tensor_map(device, {.name = "v",
                             .type = Type::kFloat32,
                             .address = 0x1000,
                             .dims = {1000},
                             .strides_bytes = {},
                             .box = {256}});
  EXPECT_THAT(state().tensor_maps.at(0).strides_bytes, IsEmpty());
}

// Params of a kernel hold a type of their own with the same bytes.
TEST_F(TensorMapTest, FitsIntoAnyTypeOf128Bytes) {
  struct alignas(128) KernelsOwn {
    std::uint64_t words[16];
  };
  const abi::CUtensorMap map = encode_tensor_map(open(), k_spec());
  EXPECT_EQ(std::bit_cast<KernelsOwn>(map).words[3], map.opaque[3]);
  static_assert(alignof(abi::CUtensorMap) == 64);
}

TEST(TensorMapRules, RankAndCounts) {
  const TensorMapSpec k = k_spec();
  EXPECT_THAT(refusal(k, [](auto& s) { s.dims.clear(); }), HasSubstr("dims has 0 entries"));
  EXPECT_THAT(refusal(k, [](auto& s) { s.dims.resize(6, 1); }),
              HasSubstr("dims has 6 entries; expected 1 to 5 without interleave"));
  EXPECT_THAT(refusal(k, [](auto& s) { s.strides_bytes.pop_back(); }),
              HasSubstr("strides_bytes has 1 entries for 3 dims; expected 2"));
  EXPECT_THAT(refusal(k, [](auto& s) { s.box.push_back(1); }),
              HasSubstr("box has 4 entries for 3 dims"));
  EXPECT_THAT(refusal(k, [](auto& s) { s.element_strides = {1}; }),
              HasSubstr("element_strides has 1 entries for 3 dims"));
  EXPECT_THAT(refusal(k,
                      [](auto& s) {
                        s.interleave = Interleave::k16B;
                        s.dims.pop_back();
                        s.strides_bytes.pop_back();
                        s.box.pop_back();
                      }),
              HasSubstr("dims has 2 entries; expected 3 to 5 with interleave"));
  expect_valid(k, [](auto& s) {
    s.dims = {64, 2, 3, 4, 5};
    s.strides_bytes = {128, 256, 768, 3072};
    s.box = {64, 1, 1, 1, 1};
    s.element_strides = {1, 2, 3, 4, 8};
  });
}

TEST(TensorMapRules, Address) {
  const TensorMapSpec k = k_spec();
  EXPECT_THAT(refusal(k, [](auto& s) { s.address = 0; }), HasSubstr("address is null"));
  EXPECT_THAT(refusal(k, [](auto& s) { s.address += 8; }),
              HasSubstr("address = 0x7f0000001008 is not a multiple of 16"));
  expect_valid(k, [](auto& s) { s.address += 16; });
  const auto interleave_32 = [](auto& s) {
    s.interleave = Interleave::k32B;
    s.swizzle = Swizzle::k32B;
  };
  expect_valid(k, interleave_32);
  EXPECT_THAT(refusal(k, [&](auto& s) { interleave_32(s), s.address += 16; }),
              HasSubstr("is not a multiple of 32"));
  EXPECT_THAT(refusal(fp4_spec(), [](auto& s) { s.address -= 16; }),
              HasSubstr("is not a multiple of 32"));
}

TEST(TensorMapRules, Dims) {
  const TensorMapSpec k = k_spec();
  EXPECT_THAT(refusal(k, [](auto& s) { s.dims[1] = 0; }),
              HasSubstr("dims[1] = 0; expected 1 to 2^32"));
  EXPECT_THAT(refusal(k, [](auto& s) { s.dims[2] = (std::uint64_t{1} << 32) + 1; }),
              HasSubstr("dims[2] = 4294967297"));
  expect_valid(k, [](auto& s) { s.dims[2] = std::uint64_t{1} << 32; });
  EXPECT_THAT(refusal(fp4_spec(), [](auto& s) { s.dims[0] = 192; }),
              HasSubstr("dims[0] = 192 is not a multiple of 128, as k16U4Align16B needs"));
  EXPECT_THAT(refusal(fp4_spec(), [](auto& s) { s.type = Type::k16U4Align8B, s.dims[0] = 255; }),
              HasSubstr("dims[0] = 255 is not a multiple of 2, as k16U4Align8B needs"));
}

TEST(TensorMapRules, Strides) {
  const TensorMapSpec k = k_spec();
  EXPECT_THAT(refusal(k, [](auto& s) { s.strides_bytes[1] = 256008; }),
              HasSubstr("strides_bytes[1] = 256008 is not a multiple of 16; pad the rows"));
  EXPECT_THAT(refusal(k, [](auto& s) { s.strides_bytes[0] = std::uint64_t{1} << 40; }),
              HasSubstr("strides_bytes[0] = 1099511627776; expected less than 2^40"));
  expect_valid(k, [](auto& s) { s.strides_bytes[1] = (std::uint64_t{1} << 40) - 16; });
  EXPECT_THAT(refusal(fp4_spec(), [](auto& s) { s.strides_bytes[0] = 144; }),
              HasSubstr("strides_bytes[0] = 144 is not a multiple of 32"));
}

TEST(TensorMapRules, Box) {
  const TensorMapSpec k = k_spec();
  EXPECT_THAT(refusal(k, [](auto& s) { s.box[1] = 0; }),
              HasSubstr("box[1] = 0; expected 1 to 256"));
  EXPECT_THAT(refusal(k, [](auto& s) { s.box[1] = 257; }),
              HasSubstr("box[1] = 257; expected 1 to 256. Copy several boxes"));
  expect_valid(k, [](auto& s) { s.box[1] = 256; });
  EXPECT_THAT(refusal(k, [](auto& s) { s.box[0] = 20; }),
              HasSubstr("box[0] = 20 of 16 bits are 40 bytes; expected a multiple of 16"));
  EXPECT_THAT(refusal(fp4_spec(), [](auto& s) { s.box[0] = 64; }),
              HasSubstr("box[0] = 64; k16U4Align16B needs 128"));
  // Interleaved tensors have no rule for the inner bytes.
  expect_valid(k, [](auto& s) { s.box[0] = 20, s.interleave = Interleave::k16B; });
}

TEST(TensorMapRules, BoxFitsTheSwizzle) {
  const std::pair<Swizzle, std::uint32_t> spans[] = {{Swizzle::k32B, 16},
                                                     {Swizzle::k64B, 32},
                                                     {Swizzle::k128B, 64},
                                                     {Swizzle::k128BAtom32B, 64},
                                                     {Swizzle::k128BAtom32BFlip8B, 64},
                                                     {Swizzle::k128BAtom64B, 64}};
  for (const auto& [swizzle, elems] : spans) {
    expect_valid(k_spec(), [&](auto& s) { s.swizzle = swizzle, s.box[0] = elems; });
    EXPECT_THAT(
        refusal(k_spec(), [&](auto& s) { s.swizzle = swizzle, s.box[0] = elems + 8; }),
        AllOf(HasSubstr(fmt::format("box[0] = {} of 16 bits are {} bytes; swizzle {} spans {}",
                                    elems + 8, 2 * elems + 16, name_of(swizzle), 2 * elems)),
              HasSubstr("narrower box")));
  }
  expect_valid(k_spec(), [](auto& s) { s.swizzle = Swizzle::kNone, s.box[0] = 256; });
}

TEST(TensorMapRules, ElementStrides) {
  const TensorMapSpec k = k_spec();
  EXPECT_THAT(refusal(k,
                      [](auto& s) {
                        s.element_strides = {1, 0, 1};
                      }),
              HasSubstr("element_strides[1] = 0; expected 1 to 8"));
  EXPECT_THAT(refusal(k,
                      [](auto& s) {
                        s.element_strides = {1, 1, 9};
                      }),
              HasSubstr("element_strides[2] = 9"));
  EXPECT_THAT(refusal(k,
                      [](auto& s) {
                        s.element_strides = {2, 1, 1};
                      }),
              HasSubstr("element_strides[0] = 2; the hardware ignores it"));
  expect_valid(k, [](auto& s) { s.element_strides = {2, 8, 1}, s.interleave = Interleave::k16B; });
}

TEST(TensorMapRules, Modes) {
  EXPECT_THAT(refusal(k_spec(), [](auto& s) { s.interleave = Interleave::k32B; }),
              HasSubstr("swizzle = k128B with interleave 32B; expected k32B"));
  EXPECT_THAT(refusal(k_spec(), [](auto& s) { s.type = Type::kInt32, s.box[0] = 32; }),
              HasSubstr("oob_fill = kNan with type kInt32; only floating types"));
  const auto fp6 = [](auto& s) { s.type = Type::k16U6Align16B; };
  expect_valid(fp4_spec(), fp6);
  EXPECT_THAT(refusal(fp4_spec(),
                      [&](auto& s) {
                        fp6(s);
                        s.interleave = Interleave::k16B;
                        s.dims.push_back(1), s.strides_bytes.push_back(128 * 64),
                            s.box.push_back(1);
                      }),
              HasSubstr("type k16U6Align16B cannot be interleaved"));
}

TEST(TensorMapRules, SwizzlesOfPaddedTypes) {
  const Swizzle all[] = {Swizzle::kNone,       Swizzle::k32B,         Swizzle::k64B,
                         Swizzle::k128B,       Swizzle::k128BAtom32B, Swizzle::k128BAtom32BFlip8B,
                         Swizzle::k128BAtom64B};
  for (const Type type : {Type::k16U4Align16B, Type::k16U6Align16B}) {
    std::string accepted;
    for (const Swizzle swizzle : all) {
      TensorMapSpec spec = fp4_spec();
      spec.type = type;
      spec.swizzle = swizzle;
      try {
        validate(spec);
        accepted += fmt::format("{} ", name_of(swizzle));
      } catch (const Error& error) {
        EXPECT_THAT(error.what(), HasSubstr(name_of(swizzle)));
      }
    }
    EXPECT_EQ(accepted, type == Type::k16U4Align16B ? "kNone k128B k128BAtom32B "
                                                    : "kNone k128B k128BAtom32B k128BAtom64B ");
  }
}

TEST(TensorMapRules, NanNeedsAFloatingType) {
  std::vector<std::pair<Type, std::string>> types;
#define ADD(ours, theirs, value) types.emplace_back(Type::ours, #theirs);
  TILEWRIGHT_CU_TENSOR_MAP_DATA_TYPES(ADD)
#undef ADD
  int floating = 0;
  for (const auto& [type, header_name] : types) {
    TensorMapSpec spec = fp4_spec();
    spec.type = type;
    spec.dims = {128, 64};
    spec.strides_bytes = {1024};
    spec.swizzle = Swizzle::kNone;
    EXPECT_NO_THROW(validate(spec)) << header_name;
    spec.oob_fill = TensorMapOobFill::kNan;
    if (header_name.find("FLOAT") != std::string::npos) {
      ++floating;
      EXPECT_NO_THROW(validate(spec)) << header_name;
    } else {
      EXPECT_THROW(validate(spec), Error) << header_name;
    }
  }
  EXPECT_EQ(floating, 7);
}

TEST(TensorMapRules, ElementBits) {
  const std::pair<const char*, int> expected[] = {
      {"kUint8", 8},        {"kUint16", 16},     {"kUint32", 32},      {"kInt32", 32},
      {"kUint64", 64},      {"kInt64", 64},      {"kFloat16", 16},     {"kFloat32", 32},
      {"kFloat64", 64},     {"kBfloat16", 16},   {"kFloat32Ftz", 32},  {"kTfloat32", 32},
      {"kTfloat32Ftz", 32}, {"k16U4Align8B", 4}, {"k16U4Align16B", 4}, {"k16U6Align16B", 6}};
  int value = 0;
  for (const auto& [name, bits] : expected) {
    EXPECT_STREQ(name_of(static_cast<Type>(value)), name);
    EXPECT_EQ(element_bits(static_cast<Type>(value)), bits) << name;
    ++value;
  }
}

TEST_F(TensorMapTest, BrokenRulesNeverReachTheDriver) {
  const Device device = open();
  TensorMapSpec spec = k_spec();
  spec.box[1] = 300;
  state().calls.clear();
  error_of(ErrorKind::kInvalidArgument, [&] { encode_tensor_map(device, spec); });
  EXPECT_THAT(state().calls, IsEmpty());
}

TEST_F(TensorMapTest, RefusalOfTheDriverNamesAllFields) {
  const Device device = open();
  fail_next("cuTensorMapEncodeTiled", CUresult::kInvalidValue);
  EXPECT_THAT(
      error_of(ErrorKind::kDeviceError, [&] { encode_tensor_map(device, k_spec()); }),
      AllOf(StartsWith("cuTensorMapEncodeTiled: CUDA_ERROR_INVALID_VALUE"),
            HasSubstr(
                "tensor map = K, type = kBfloat16, address = 0x7f0000001000, dims = [128, 1000, "
                "8], strides_bytes = [256, 256000], box = [64, 128, 1]"),
            HasSubstr("swizzle = k128B"), ::testing::Not(HasSubstr("compute capability 10.0"))));
  fail_next("cuTensorMapEncodeTiled", CUresult::kInvalidValue);
  EXPECT_THAT(error_of(ErrorKind::kDeviceError, [&] { encode_tensor_map(device, fp4_spec()); }),
              HasSubstr("4-bit and 6-bit types and swizzle atoms above 16 bytes need compute "
                        "capability 10.0"));
}

TEST_F(TensorMapTest, DevicesWithoutTmaAreRefused) {
  state().gpus[0].attributes[static_cast<int>(abi::CUdevice_attribute::kTensorMapAccess)] = 0;
  EXPECT_THAT(error_of(ErrorKind::kUnsupported, [&] { encode_tensor_map(open(), k_spec()); }),
              HasSubstr("no Tensor Memory Accelerator"));
}

}  // namespace
}  // namespace tilewright::device
