// What stands outside of functions, and their headers.
#include "tests/sim/parse/sample.h"

#include <cstring>

namespace tilewright::sim {
namespace {

template <class T>
std::vector<T> values_of(const Variable& variable) {
  std::vector<T> values(variable.initial.size() / sizeof(T));
  std::memcpy(values.data(), variable.initial.data(), values.size() * sizeof(T));
  return values;
}

template <class T>
std::vector<T> initial(const std::string& declaration) {
  return values_of<T>(parse(declaration).variables.at(0));
}

using testing::ElementsAre;
using testing::HasSubstr;

class Declarations : public testing::Test {
 protected:
  const Module module_ = parse_sample("declarations.ptx");
  const Variable& variable(std::string_view name) const { return variable_named(module_, name); }
};

TEST_F(Declarations, Header) {
  EXPECT_EQ(module_.version, 90);
  EXPECT_EQ(module_.target, 90);
  EXPECT_TRUE(module_.is_arch_specific);
  EXPECT_FALSE(module_.is_family_specific);
  EXPECT_EQ(module_.address_bits, 64);
  EXPECT_EQ(module_.file_name(1), "kernel.cu");
  EXPECT_EQ(module_.file_name(2), "vector.h");
  EXPECT_EQ(module_.file_name(3), "");
}

TEST_F(Declarations, Initialisers) {
  EXPECT_THAT(values_of<std::uint32_t>(variable("answer")), ElementsAre(42));
  EXPECT_THAT(values_of<std::uint32_t>(variable("three")), ElementsAre(2, 3, 5));
  EXPECT_THAT(values_of<float>(variable("matrix")), ElementsAre(1.0F, 2.0F, -1.5F, 1.0F));
  EXPECT_THAT(values_of<double>(variable("precise")), ElementsAre(1.5));
  EXPECT_THAT(values_of<float>(variable("vector")), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(values_of<std::uint32_t>(variable("pairs")), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(values_of<std::int32_t>(variable("computed")), ElementsAre(28));
  EXPECT_THAT(values_of<std::uint64_t>(variable("unsigned_shift")), ElementsAre(15));
  EXPECT_THAT(values_of<std::int32_t>(variable("numbers")), ElementsAre(31, 15, 5, 12, -1, ~32));
  EXPECT_THAT(values_of<std::uint8_t>(variable("ragged")), ElementsAre(1, 0, 0, 4, 5, 0));
  EXPECT_THAT(values_of<std::int64_t>(variable("wide")), ElementsAre(-2, -1));
  EXPECT_THAT(values_of<std::uint32_t>(variable("second")), ElementsAre(2));
  EXPECT_TRUE(variable("first").initial.empty());
}

TEST_F(Declarations, SizesAndProperties) {
  EXPECT_EQ(variable("vector").align_bytes, 16u);
  EXPECT_EQ(variable("vector").size_bytes, 16u);
  EXPECT_EQ(variable("tentative").size_bytes, 128u);
  EXPECT_EQ(variable("tentative").linkage, Linkage::kCommon);
  EXPECT_EQ(variable("tile").space, Space::kShared);
  EXPECT_EQ(variable("tile").align_bytes, 16u);
  EXPECT_TRUE(variable("managed").is_managed);
  EXPECT_FALSE(variable("unified").is_managed);
  EXPECT_EQ(variable("image").size_bytes, 8u);
  EXPECT_EQ(variable("table").linkage, Linkage::kWeak);
  EXPECT_EQ(variable("last").size_bytes, 8u);
  const Variable& dynamic = variable("dynamic");
  EXPECT_TRUE(dynamic.is_unsized_array);
  EXPECT_EQ(dynamic.size_bytes, 0u);
  EXPECT_EQ(dynamic.align_bytes, 128u);
  EXPECT_EQ(dynamic.linkage, Linkage::kExtern);
}

TEST_F(Declarations, Addresses) {
  const auto& table = variable("table").relocations;
  ASSERT_EQ(table.size(), 4u);
  EXPECT_EQ(module_.variables[table[0].target].name, "three");
  EXPECT_TRUE(table[0].is_generic);
  EXPECT_EQ(table[1].addend, 4);
  EXPECT_FALSE(table[2].is_generic);
  EXPECT_EQ(table[2].addend, 4);
  EXPECT_EQ(table[3].offset_bytes, 32u);
  EXPECT_TRUE(table[3].is_function);
  EXPECT_EQ(module_.functions[table[3].target].name, "twice");

  const auto& bytes = variable("answer_bytes").relocations;
  ASSERT_EQ(bytes.size(), 3u);
  EXPECT_EQ(bytes[1].shift_bits, 8);
  EXPECT_EQ(bytes[1].size_bytes, 1);
  EXPECT_EQ(bytes[2].shift_bits, 16);
  EXPECT_EQ(bytes[2].offset_bytes, 2u);
  EXPECT_EQ(bytes[2].addend, 4);
  EXPECT_TRUE(bytes[2].is_generic);
}

TEST_F(Declarations, Functions) {
  EXPECT_EQ(module_.functions.size(), 6u);
  const Function& twice = function_named(module_, "twice");
  EXPECT_TRUE(twice.is_defined);
  EXPECT_FALSE(twice.is_entry);
  EXPECT_EQ(twice.body.size(), 4u);
  EXPECT_EQ(twice.variables.at(twice.params.at(0)).name, "a");
  EXPECT_EQ(twice.variables.at(twice.returns.at(0)).name, "result");
  const Function& vprintf = function_named(module_, "vprintf");
  EXPECT_FALSE(vprintf.is_defined);
  EXPECT_EQ(vprintf.linkage, Linkage::kExtern);
  EXPECT_EQ(vprintf.params.size(), 2u);
  EXPECT_TRUE(function_named(module_, "stop").is_noreturn);
  const auto alias = function_named(module_, "also_twice").alias;
  ASSERT_TRUE(alias.has_value());
  EXPECT_EQ(module_.functions[*alias].name, "twice");
}

TEST_F(Declarations, Kernels) {
  const Function& bounded = function_named(module_, "bounded");
  EXPECT_TRUE(bounded.is_entry);
  EXPECT_EQ(bounded.linkage, Linkage::kVisible);
  EXPECT_THAT(bounded.bounds.max_threads, ElementsAre(384, 1, 1));
  EXPECT_EQ(bounded.bounds.min_ctas_per_sm, 2u);
  EXPECT_EQ(bounded.bounds.max_registers, 168u);
  EXPECT_TRUE(bounded.bounds.is_explicit_cluster);
  EXPECT_THAT(bounded.bounds.required_cluster, ElementsAre(2, 1, 1));
  ASSERT_EQ(bounded.params.size(), 3u);
  EXPECT_EQ(bounded.variables[0].size_bytes, 128u);
  EXPECT_EQ(bounded.variables[0].align_bytes, 64u);
  EXPECT_EQ(bounded.variables[1].align_bytes, 8u);  // .align 16 is what it points to
  EXPECT_EQ(bounded.variables[2].name, "count");
  const Function& plain = function_named(module_, "plain");
  EXPECT_THAT(plain.bounds.required_threads, ElementsAre(64, 1, 1));
  EXPECT_THAT(plain.bounds.max_threads, ElementsAre(0, 0, 0));
}

TEST(ConstantExpressions, HaveTheOperatorsOfC) {
  EXPECT_THAT(initial<std::int64_t>(".global .s64 a[] = {1 + 2 * 3, (1 + 2) * 3, 7 / 2, -7 / 2, "
                                    "10 - 2 - 3, 1 << 2 + 1, 5 & 3 | 8 ^ 1, !3, ~0, - -4};"),
              ElementsAre(7, 9, 3, -3, 5, 8, 9, 0, -1, 4));
  EXPECT_THAT(initial<std::int64_t>(".global .s64 a[] = {1 < 2, 2 <= 1, 3 == 3, 3 != 3, 1 && 0, "
                                    "1 || 0, 0 ? 1 : 2 ? 3 : 4, -1 >> 1, -1 < 0U, WARP_SZ};"),
              ElementsAre(1, 0, 1, 0, 0, 1, 3, -1, 0, 32));
  EXPECT_THAT(initial<std::uint64_t>(".global .u64 a[] = {-7 % 4, (.s64)-2.9, (.u64)3.9, "
                                     "1 << 64, 0xFFFFFFFFFFFFFFFF >> 63};"),
              ElementsAre(1, static_cast<std::uint64_t>(-2), 3, 0, 1));
  EXPECT_THAT(initial<double>(".global .f64 a[] = {1.5 * 2, 1 / 4.0, -1.5, 2, .5, 1., 1e3};"),
              ElementsAre(3, 0.25, -1.5, 2, 0.5, 1, 1000));
  EXPECT_EQ(parse(".global .b8 a[2 * (3 + 1)];").variables[0].size_bytes, 8u);
}

TEST(ConstantExpressions, RefuseWhatHasNoValue) {
  for (const char* text :
       {"1 / 0", "1 % 0", "1.0 / 0", "1.5 & 1", "~1.5", "(.s64)1e30", "1 +", "(1"}) {
    EXPECT_THAT(error_in(".global .s64 a = " + std::string(text) + ";"), HasSubstr("input:4:"))
        << text;
  }
}

TEST(ConstantExpressions, IntegersAreCutToSize) {
  EXPECT_THAT(initial<std::uint8_t>(".global .u8 a[] = {256, -1, 511};"), ElementsAre(0, 255, 255));
}

TEST(ConstantExpressions, FloatBitsKeepNanPayloads) {
  EXPECT_THAT(initial<std::uint32_t>(".global .f32 a[] = {0f7FA00001, 0fFFFFFFFF, 0f7F800000};"),
              ElementsAre(0x7fa00001, 0xffffffff, 0x7f800000));
  EXPECT_THAT(initial<std::uint32_t>(".global .b32 a = 0f3F800000;"), ElementsAre(0x3f800000));
}

TEST(Variables, ExternDeclarationAndDefinitionAreOne) {
  const Module module = parse(
      ".extern .global .u64 a; .global .u32 b; .visible .global .u64 a = generic(b);\n"
      ".extern .global .u64 a;");
  ASSERT_EQ(module.variables.size(), 2u);
  EXPECT_EQ(module.variables[0].linkage, Linkage::kVisible);
  ASSERT_EQ(module.variables[0].relocations.size(), 1u);
  EXPECT_EQ(module.variables[0].relocations[0].target, 1u);
  EXPECT_THAT(error_in(".extern .global .u64 a; .global .u32 a;"), HasSubstr("another type"));
  EXPECT_THAT(error_in(".global .u32 a; .global .u32 a;"), HasSubstr("already declared"));
}

TEST(Variables, InitialisersMustFit) {
  EXPECT_THAT(error_in(".global .b8 a[2] = {1, 2, 3};"), HasSubstr("more values than the 2"));
  EXPECT_THAT(error_in(".global .b8 a[2][2] = {{1, 2, 3}};"), HasSubstr("more values than the 2"));
  EXPECT_THAT(error_in(".global .b8 a[2] = {{1}};"), HasSubstr("braces where a value"));
  EXPECT_THAT(error_in(".global .b8 a[2] = 1;"), HasSubstr("needs braces"));
  EXPECT_THAT(error_in(".global .b16 a = 1.5;"), HasSubstr("floating-point"));
  EXPECT_THAT(error_in(".global .f16 a = 1;"), HasSubstr("cannot be initialised"));
  EXPECT_THAT(error_in(".shared .b32 a = 1;"), HasSubstr("can be initialised"));
  EXPECT_THAT(error_in(".extern .global .b32 a = 1;"), HasSubstr("where it is defined"));
  EXPECT_THAT(error_in(".global .u8 a = 0xff1(a);"), HasSubstr("mask"));
  EXPECT_THAT(error_in(".global .u16 a = a;"), HasSubstr("4 or 8 bytes"));
  EXPECT_THAT(error_in(".global .u32 base; .global .u64 a = bass;"), HasSubstr("\"base\""));
}

TEST(Modules, StayValidWhenTheyMove) {
  Module first = parse(kernel("mov.b32 %r1, 1;"));
  const Module second = std::move(first);
  first = {};
  EXPECT_EQ(second.functions[0].body[0].opcode, "mov");
  EXPECT_EQ(second.functions[0].body[0].modifiers[0], "b32");
}

TEST(Modules, OldDirectivesAndTargets) {
  const Module module = parse_module(
      ".version 8.7 .target sm_100f .const[3] .u32 a; .global .samplerref s = {addr_mode_0 = "
      "wrap};",
      "input");
  EXPECT_EQ(module.version, 87);
  EXPECT_EQ(module.target, 100);
  EXPECT_TRUE(module.is_family_specific);
  EXPECT_EQ(module.variables.size(), 2u);
}

}  // namespace
}  // namespace tilewright::sim
