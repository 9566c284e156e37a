// Layouts and number formats through C: plain functions on text and arrays.
#include "tilewright/tilewright.h"

#include "arch/fragments/atoms.h"
#include "formats/block_scale.h"
#include "layout/draw_svg.h"
#include "layout/parse.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <random>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

json evaluate(const char* operation, std::vector<const char*> operands) {
  const char* text = nullptr;
  EXPECT_EQ(tw_layout_evaluate(operation, operands.data(), operands.size(), &text), TW_OK)
      << tw_last_error();
  return text == nullptr ? json() : json::parse(text);
}

TEST(LayoutC, EvaluatesOperations) {
  EXPECT_EQ(evaluate("composition", {"(8,8):(8,1)", "(4,2):(2,1)"})["text"], "(4,2):(16,8)");
  EXPECT_EQ(evaluate("offset", {"(4,8):(8,1)", "(2,3)"})["value"], 19);
  const json atom = evaluate("eval", {"wgmma.m64n64.C"});
  EXPECT_EQ(atom["size"], 4096);
  EXPECT_TRUE(atom["swizzle"].is_null());
  EXPECT_EQ(evaluate("eval", {"Sw<3,4,3> o 0 o (8,64):(64,1)"})["swizzle"], "Sw<3,4,3>");
}

TEST(LayoutC, ValuesAreThoseOfTheLayout) {
  std::vector<std::int64_t> values(5);
  ASSERT_EQ(tw_layout_values("(4,8):(8,1)", 2, 5, values.data()), TW_OK);
  EXPECT_EQ(values, (std::vector<std::int64_t>{16, 24, 1, 9, 17}));
  EXPECT_EQ(tw_layout_values("(4,8)", 30, 3, values.data()), TW_INVALID_ARGUMENT);
  EXPECT_EQ(tw_layout_values("(4,8)", -1, 3, values.data()), TW_INVALID_ARGUMENT);
  EXPECT_EQ(tw_layout_values("(4,8):(1@0,1@1)", 0, 1, values.data()), TW_INVALID_ARGUMENT);
}

TEST(LayoutC, DrawsAsTheTool) {
  const char* svg = nullptr;
  ASSERT_EQ(tw_layout_draw("(8,8):(8,1)", nullptr, nullptr, 0, nullptr, &svg), TW_OK);
  EXPECT_EQ(svg, to_svg(draw_offsets(parse_layout("(8,8):(8,1)"))));
  const std::int32_t window[] = {0, 16, 0, -1};
  ASSERT_EQ(tw_layout_draw("wgmma.m64n64.C", nullptr, nullptr, 0, window, &svg), TW_OK);
  EXPECT_EQ(svg, to_svg(arch::draw_atom(*arch::find_atom("wgmma.m64n64.C"), {0, 16, 0, -1})));
  EXPECT_EQ(tw_layout_draw("(8,8)", "sideways", nullptr, 0, nullptr, &svg), TW_INVALID_ARGUMENT);
  EXPECT_THAT(tw_last_error(), HasSubstr("sideways"));
  EXPECT_EQ(tw_layout_draw("(8,8)", nullptr, nullptr, 5, nullptr, &svg), TW_INVALID_ARGUMENT);
  EXPECT_EQ(tw_layout_draw("(8,8", nullptr, nullptr, 0, nullptr, &svg), TW_PARSE_ERROR);
  EXPECT_EQ(tw_layout_draw(nullptr, nullptr, nullptr, 0, nullptr, &svg), TW_INVALID_ARGUMENT);
}

TEST(LayoutC, NamesAtomsAndHandoffs) {
  const char* text = nullptr;
  ASSERT_EQ(tw_layout_atoms(&text), TW_OK);
  EXPECT_EQ(json::parse(text).size(), arch::named_atoms().size());
  ASSERT_EQ(tw_layout_handoff("wgmma.m64n64.C", "wgmma.m64k16.A", &text), TW_OK);
  EXPECT_EQ(json::parse(text)["verdict"], "as they are");
  ASSERT_EQ(tw_layout_draw_handoff("tmem.C.m128.n64", "tmem.A.m128.k64.16bit", &text), TW_OK);
  EXPECT_THAT(text, HasSubstr("</svg>"));
  EXPECT_EQ(tw_layout_draw_handoff("wgmma.m64n64.C", "wgmma.m64k16.A", &text), TW_INVALID_ARGUMENT);
  EXPECT_EQ(tw_layout_handoff("(8,8)", "wgmma.m64k16.A", &text), TW_INVALID_ARGUMENT);
  EXPECT_EQ(tw_layout_handoff("wgmma.m64n64.C", "wgmma.m64k61.A", &text), TW_INVALID_ARGUMENT);
  EXPECT_THAT(tw_last_error(), HasSubstr("wgmma.m64k16.A"));
}

TEST(FormatsC, EncodeAndDecode) {
  const double values[] = {0.3, 1e9, -0.0, std::nan("")};
  std::uint32_t codes[4];
  ASSERT_EQ(tw_format_encode("e4m3", nullptr, -1, values, 4, codes), TW_OK);
  double back[4];
  ASSERT_EQ(tw_format_decode("e4m3", codes, 4, back), TW_OK);
  EXPECT_EQ(back[0], 0.3125);
  EXPECT_EQ(back[1], 448);
  EXPECT_TRUE(std::signbit(back[2]));
  EXPECT_TRUE(std::isnan(back[3]));
  ASSERT_EQ(tw_format_encode("e4m3", "toward_zero", 0, values, 1, codes), TW_OK);
  EXPECT_EQ(codes[0], encode(kE4m3, 0.3, {.rounding = Rounding::kTowardZero}));
  EXPECT_EQ(tw_format_encode("e4m4", nullptr, -1, values, 1, codes), TW_INVALID_ARGUMENT);
  EXPECT_EQ(tw_format_encode("e4m3", "sideways", -1, values, 1, codes), TW_INVALID_ARGUMENT);
  EXPECT_THAT(tw_last_error(), HasSubstr("toward_zero"));
  codes[0] = 256;
  EXPECT_EQ(tw_format_decode("e4m3", codes, 1, back), TW_INVALID_ARGUMENT);
}

TEST(FormatsC, QuantizeAsTheLibraryItself) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  std::vector<float> values(3 * 130);
  for (float& value : values) value = normal(random);
  for (const BlockFormat& format : kBlockFormats) {
    const QuantizedTensor expected = quantize(format, values, 3, 130);
    std::size_t code_bytes = 0, scale_bytes = 0;
    ASSERT_EQ(tw_block_quantize_sizes(format.name, 3, 130, &code_bytes, &scale_bytes), TW_OK);
    std::vector<std::uint8_t> codes(code_bytes), scales(scale_bytes);
    float tensor_scale = 0;
    ASSERT_EQ(tw_block_quantize(format.name, values.data(), 3, 130, 0, nullptr, codes.data(),
                                scales.data(), &tensor_scale),
              TW_OK);
    EXPECT_EQ(codes, expected.codes) << format.name;
    EXPECT_EQ(scales, expected.scales) << format.name;
    EXPECT_EQ(tensor_scale, expected.tensor_scale) << format.name;
    std::vector<float> back(values.size());
    ASSERT_EQ(tw_block_dequantize(format.name, codes.data(), scales.data(), tensor_scale, 3, 130,
                                  back.data()),
              TW_OK);
    EXPECT_EQ(back, dequantize(format, expected)) << format.name;
  }
}

TEST(FormatsC, PackAndRefuse) {
  const std::uint8_t codes[] = {1, 2, 3};
  std::uint8_t bytes[2], back[3];
  ASSERT_EQ(tw_codes_pack(4, codes, 3, bytes), TW_OK);
  EXPECT_EQ(bytes[0], 0x21);
  EXPECT_EQ(bytes[1], 0x03);
  ASSERT_EQ(tw_codes_unpack(4, bytes, 3, back), TW_OK);
  EXPECT_EQ(back[2], 3);
  EXPECT_EQ(tw_codes_pack(5, codes, 3, bytes), TW_INVALID_ARGUMENT);
  std::size_t size = 0;
  EXPECT_EQ(tw_block_quantize_sizes("nvfp4", -1, 4, &size, &size), TW_INVALID_ARGUMENT);
  EXPECT_EQ(tw_block_quantize("nvfp4", nullptr, 1, 16, 0, nullptr, nullptr, nullptr, nullptr),
            TW_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace tilewright
