// What stands in functions.
#include "tests/sim/parse/sample.h"

namespace tilewright::sim {
namespace {

using testing::ElementsAre;
using Kind = OperandKind;

class Statements : public testing::Test {
 protected:
  const Module module_ = parse_sample("instructions.ptx");
  const Function& kernel_ = function_named(module_, "kernel");

  /// The n-th instruction with that opcode.
  const Instruction& instruction(std::string_view opcode, int n = 0) const {
    for (const Instruction& each : kernel_.body) {
      if (each.opcode == opcode && n-- == 0) return each;
    }
    throw std::out_of_range(std::string(opcode));
  }
  std::string register_name(const Operand& operand) const {
    EXPECT_EQ(operand.kind, Kind::kRegister);
    return kernel_.registers.at(operand.index).name;
  }
  const Label& label(const Operand& operand) const {
    EXPECT_EQ(operand.kind, Kind::kLabel);
    return kernel_.labels.at(operand.index);
  }
};

TEST_F(Statements, Registers) {
  EXPECT_EQ(kernel_.registers[0].name, "%r0");
  EXPECT_EQ(kernel_.registers[19].name, "%r19");
  EXPECT_EQ(kernel_.registers[20].name, "x");
  EXPECT_EQ(kernel_.registers[20].type, Type::kB32);
  const auto vec = std::ranges::find(kernel_.registers, "vec", &RegisterDecl::name);
  EXPECT_EQ(vec->num_components, 4);
  EXPECT_EQ(std::ranges::count(kernel_.registers, "p", &RegisterDecl::name), 3);
}

TEST_F(Statements, ParametersAndVariables) {
  EXPECT_EQ(kernel_.params.size(), 2u);
  std::vector<std::string> names;
  for (const Variable& variable : kernel_.variables) names.push_back(variable.name);
  EXPECT_THAT(names,
              ElementsAre("kernel_param_0", "map", "depot", "tile", "param0", "param0", "retval0"));
  EXPECT_EQ(kernel_.variables[2].space, Space::kLocal);
  EXPECT_EQ(kernel_.variables[3].space, Space::kShared);
  EXPECT_EQ(kernel_.variables[4].space, Space::kParam);
  const Function& add_one = function_named(module_, "add_one");
  ASSERT_EQ(add_one.params.size(), 2u);
  const Variable& second = add_one.variables[add_one.params[1]];
  EXPECT_EQ(second.space, Space::kReg);
  EXPECT_EQ(add_one.registers[second.register_idx].name, "b");
  EXPECT_EQ(add_one.body[0].operands[2].index, second.register_idx);
}

TEST_F(Statements, OpcodesAndPositions) {
  const Instruction& copy = instruction("cp");
  EXPECT_THAT(copy.modifiers,
              ElementsAre("async", "bulk", "tensor", "2d", "shared::cluster", "global",
                          "mbarrier::complete_tx::bytes", "L2::cache_hint"));
  EXPECT_EQ(copy.pos.column, 3u);
  EXPECT_EQ(copy.loc.file, 1u);
  EXPECT_EQ(copy.loc.line, 8u);
  EXPECT_EQ(instruction("ld").loc.line, 7u);
  const Instruction& add = instruction("add", 3);
  EXPECT_EQ(add.pos.column, 18u);
  EXPECT_EQ(add.length, std::string_view("add.s32 x, x, (1+2)*3").size());
  EXPECT_EQ(module_.text->substr(static_cast<std::size_t>(add.opcode.data() - module_.text->data()),
                                 add.length),
            "add.s32 x, x, (1+2)*3");
}

TEST_F(Statements, SpecialRegisters) {
  const Operand& tid = instruction("mov", 1).operands[1];
  EXPECT_EQ(tid.kind, Kind::kSpecial);
  EXPECT_EQ(static_cast<SpecialRegister>(tid.index), SpecialRegister::kTid);
  EXPECT_TRUE(tid.has_component);
  EXPECT_EQ(instruction("mov", 2).operands[1].component, 1);
  const Operand& envreg = instruction("mov", 4).operands[1];
  EXPECT_EQ(static_cast<SpecialRegister>(envreg.index), SpecialRegister::kEnvreg);
  EXPECT_EQ(envreg.component, 3);
  EXPECT_FALSE(envreg.has_component);
}

TEST_F(Statements, PairsSinksAndNegation) {
  const auto& pair = instruction("setp").operands[0];
  EXPECT_EQ(pair.kind, Kind::kPair);
  EXPECT_EQ(register_name(pair.parts[0]), "%p1");
  EXPECT_EQ(register_name(pair.parts[1]), "%p2");
  const auto& second = instruction("setp", 1).operands;
  EXPECT_EQ(second[0].parts[1].kind, Kind::kSink);
  EXPECT_EQ(second[2].value, 32);
  EXPECT_TRUE(second[3].is_negated);
  EXPECT_EQ(register_name(second[3]), "%p1");
  EXPECT_EQ(instruction("shfl").operands[0].kind, Kind::kPair);
}

TEST_F(Statements, GuardsAndLabels) {
  const Instruction& first = instruction("bra");
  ASSERT_TRUE(first.guard.has_value());
  EXPECT_FALSE(first.guard->is_negated);
  EXPECT_EQ(kernel_.registers[first.guard->register_idx].name, "%p1");
  EXPECT_TRUE(instruction("bra", 1).guard->is_negated);
  EXPECT_EQ(label(first.operands[0]).name, "$L__BB0_2");
  EXPECT_EQ(kernel_.body[label(first.operands[0]).instruction_idx].opcode, "ret");
  EXPECT_EQ(kernel_.labels.back().instruction_idx, kernel_.body.size());
}

TEST_F(Statements, LabelsAndRegistersOfSiblingScopesAreDifferent) {
  const Label& first = label(instruction("bra", 3).operands[0]);
  const Label& second = label(instruction("bra", 4).operands[0]);
  EXPECT_EQ(first.name, "LAB_WAIT");
  EXPECT_EQ(second.name, "LAB_WAIT");
  EXPECT_EQ(kernel_.body[first.instruction_idx].opcode, "mbarrier");
  EXPECT_EQ(kernel_.body[second.instruction_idx].opcode, "setp");
  EXPECT_NE(instruction("bra", 2).guard->register_idx, instruction("bra", 4).guard->register_idx);
}

TEST_F(Statements, Addresses) {
  const auto address = [&](int n) { return instruction("ld", n).operands[1]; };
  EXPECT_EQ(address(0).parts[0].kind, Kind::kVariable);
  EXPECT_TRUE(address(0).parts[0].is_local);
  EXPECT_EQ(register_name(address(1).parts[0]), "%rd2");
  EXPECT_EQ(address(2).value, 16);
  EXPECT_EQ(address(3).value, -8);
  EXPECT_EQ(address(4).value, 8);
  EXPECT_FALSE(address(5).parts[0].is_local);
  EXPECT_EQ(address(5).value, 4);
  EXPECT_EQ(address(6).value, 16);
  EXPECT_EQ(instruction("ld", 6).operands[0].parts[2].kind, Kind::kSink);
  const auto& tensor = instruction("cp").operands[1];
  EXPECT_EQ(tensor.kind, Kind::kMemory);
  EXPECT_EQ(tensor.parts[1].kind, Kind::kVector);
  EXPECT_EQ(register_name(tensor.parts[1].parts[1]), "%r2");
  const Operand& moved = instruction("mov", 6).operands[1];
  EXPECT_EQ(moved.kind, Kind::kVariable);
  EXPECT_EQ(moved.value, 4);
}

TEST_F(Statements, ComponentsAndImmediates) {
  const auto& move = instruction("mov", 7).operands;
  EXPECT_TRUE(move[0].has_component);
  EXPECT_EQ(move[1].kind, Kind::kFloat);
  EXPECT_TRUE(move[1].is_f32_bits);
  EXPECT_EQ(move[1].value, 0x3ff0000000000000);
  EXPECT_EQ(instruction("add").operands[1].component, 3);
  EXPECT_FALSE(instruction("add").operands[2].is_f32_bits);
  EXPECT_EQ(instruction("add", 2).operands[2].value, -1);
  EXPECT_EQ(instruction("add", 3).operands[2].value, 9);
  EXPECT_EQ(instruction("vadd").operands[1].component, kByteSelector);
  EXPECT_EQ(instruction("vadd").operands[2].component, kHalfSelector + 1);
}

TEST_F(Statements, Calls) {
  const auto& direct = instruction("call").operands;
  ASSERT_EQ(direct.size(), 2u);
  EXPECT_EQ(module_.functions[direct[0].index].name, "callee");
  EXPECT_EQ(direct[1].kind, Kind::kParenthesis);
  const auto& with_result = instruction("call", 1).operands;
  ASSERT_EQ(with_result.size(), 3u);
  EXPECT_EQ(with_result[2].parts[1].value, 5);
  const auto& indirect = instruction("call", 2).operands;
  ASSERT_EQ(indirect.size(), 4u);
  EXPECT_EQ(register_name(indirect[1]), "%rd7");
  EXPECT_EQ(indirect[3].kind, Kind::kTable);
  const TargetTable& prototype = kernel_.tables[indirect[3].index];
  EXPECT_TRUE(prototype.is_prototype);
  EXPECT_EQ(prototype.params.size(), 2u);
  EXPECT_EQ(prototype.returns.size(), 1u);
  const auto& among = instruction("call", 3).operands;
  const TargetTable& functions = kernel_.tables[among[2].index];
  EXPECT_FALSE(functions.is_branch);
  EXPECT_EQ(module_.functions[functions.targets.at(0)].name, "callee");
}

TEST_F(Statements, BranchTables) {
  const Operand& operand = instruction("brx").operands[1];
  EXPECT_EQ(operand.kind, Kind::kTable);
  std::vector<std::string> names;
  const TargetTable& table = kernel_.tables[operand.index];
  EXPECT_TRUE(table.is_branch);
  for (const auto target : table.targets) names.push_back(kernel_.labels[target].name);
  EXPECT_THAT(names, ElementsAre("$L__BB0_1", "$L__BB0_2", "case0", "case1"));
}

TEST(Scopes, InnerNamesHideOuterOnes) {
  const ParsedKernel parsed =
      parse_statements("{ .reg .f32 %r1; mov.b32 %r1, 1; { mov.b32 %r1, 2; } } mov.b32 %r1, 3;");
  const Function& function = parsed.function();
  EXPECT_EQ(function.registers[function.body[0].operands[0].index].type, Type::kF32);
  EXPECT_EQ(function.body[0].operands[0].index, function.body[1].operands[0].index);
  EXPECT_EQ(function.registers[function.body[2].operands[0].index].type, Type::kB32);
}

TEST(Scopes, AJumpGoesToTheInnermostLabelEvenIfItComesLater) {
  const ParsedKernel parsed =
      parse_statements("L: mov.b32 %r1, 1; { bra L; { bra L; } mov.b32 %r1, 2; L: } { bra L; }");
  const Function& function = parsed.function();
  const auto target = [&](std::size_t i) {
    return function.labels[function.body[i].operands[0].index].instruction_idx;
  };
  EXPECT_EQ(target(1), 4u);
  EXPECT_EQ(target(2), 4u);
  EXPECT_EQ(target(4), 0u);
}

TEST(Operands, FormsThatCompilersSeldomWrite) {
  const ParsedKernel parsed = parse_statements(
      "ld.global.b32 %r1, [%rd1].unified;\n"
      "mov.v4.u32 {%r1,%r2,%r3,%r4}, %tid;\n"
      "tex.2d.v4.f32.f32 {%r1,%r2,%r3,%r4}|%p1, [%rd1, %rd2, {%r1, %r2}];\n"
      "ld.shared.b32 %r1, [16 + 4];\n"
      "sub.s32 %r1, -%r2, %r3;\n"
      "mov.u64 %rd1, %pm3_64;\n"
      "@ !%p1 mov.u32 %r1, %reserved_smem_offset_1;\n"
      "ld.global.b32 %r1, [%rd1-4];\n"
      ";\n"
      "call k;");
  const Function& function = parsed.function();
  EXPECT_EQ(function.body[0].modifiers.back(), "unified");
  EXPECT_FALSE(function.body[1].operands[1].has_component);
  EXPECT_EQ(function.body[2].operands[0].parts[0].kind, Kind::kVector);
  EXPECT_EQ(function.body[2].operands[1].parts.size(), 3u);
  EXPECT_EQ(function.body[3].operands[1].parts[0].value, 20);
  EXPECT_TRUE(function.body[4].operands[1].is_minus);
  EXPECT_EQ(function.body[5].operands[1].component, 3);
  EXPECT_EQ(function.body[6].operands[1].component, 1);
  EXPECT_EQ(function.body[7].operands[1].value, -4);
  EXPECT_EQ(function.body[8].operands[0].kind, Kind::kFunction);
}

}  // namespace
}  // namespace tilewright::sim
