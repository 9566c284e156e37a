// What is refused, where the caret stands, and what the message proposes.
#include "sim/parse/diagnostic.h"
#include "sim/parse/limits.h"
#include "tests/sim/parse/sample.h"

namespace tilewright::sim {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

TEST(Diagnostics, ShowTheLineAndACaret) {
  EXPECT_EQ(format_diagnostic("a.ptx", "one\n\ttwo three\nfour", {2, 6}, "message"),
            "a.ptx:2:6: error: message\n   two three\n       ^");
  EXPECT_EQ(format_diagnostic("a.ptx", "one", {}, "message"), "a.ptx: error: message");
  EXPECT_EQ(format_diagnostic("a\n", "", {7, 9}, "message"), "a\\n:7:9: error: message\n  \n  ^");
}

TEST(Diagnostics, CutLongLinesAroundTheCaret) {
  const std::string line = std::string(500, 'a') + "X" + std::string(500, 'b');
  const std::string shown = format_diagnostic("f", line, {1, 501}, "m");
  EXPECT_LT(shown.size(), 250u);
  const auto row = shown.find('\n') + 1;
  const auto caret_row = shown.find('\n', row) + 1;
  EXPECT_EQ(shown.find('X') - row, shown.find('^') - caret_row);
}

struct Refusal {
  const char* statements;
  int column;
  const char* message;
};

TEST(ParseErrors, InFunctions) {
  for (const Refusal& refusal : std::initializer_list<Refusal>{
           {"mov.b32 %r1, %r10;", 14, "unknown register \"%r10\"; similar names: "},
           {"mov.b32 %r1, %tidx;", 14, "\"%tid\""},
           {"mov.b32 %r1, countre;", 14, "unknown name \"countre\"; similar names: \"counter\""},
           {"LOOP: bra LOP;", 11, "unknown label \"LOP\"; similar names: \"LOOP\""},
           {"{ L: } bra L;", 12, "unknown label \"L\""},
           {"bra %r1;", 5, "unknown label"},
           {"call kk;", 6, "unknown function \"kk\"; similar names: \"k\""},
           {"L: mov.b32 %r1, 1; L:", 20, "\"L\" is already declared in this scope, in line 7"},
           {".reg .b32 a; a:", 14, "already declared"},
           {".reg .b32 %r1;", 11, "\"%r1\" is already declared in this scope, in line 6"},
           {".reg .b32 pointer;", 11, "already declared in this scope, in line 5"},
           {"mov.b32 %r1, 1", 15, "expected ';' after the instruction \"mov\", found \"ret\""},
           {"mov.b32 %r1 %r2;", 12, "expected ';' after the instruction"},
           {"mov.b32 %r1, ;", 13, "expected an operand, found \";\""},
           {"mov.b32 %r1, 0x1G;", 14, "bad number \"0x1G\""},
           {"mov.b32 %r1, 09;", 14, "base 8"},
           {"mov.b32 %r1, 0f3F8;", 14, "expected 8 hexadecimal digits"},
           {"mov.b32 %r1, 1u;", 14, "no suffix but U"},
           {"mov.b32 %r1, 18446744073709551616;", 14, "fits in 64 bits"},
           {"mov.f32 %r1, 1e999;", 14, "does not fit in a double"},
           {"ld.global.b32 %r1, [%rd1;", 25, "expected ']' to close the address"},
           {"ld.global.b32 %r1, [%rd1+%rd2];", 26, "expected a constant, found \"%rd2\""},
           {"mov.b64 {%r1, %r2, %rd1;", 24, "expected '}' to close the list"},
           {"@%r1 bra L;", 2, "a guard needs a register of type .pred; \"%r1\" is .b32"},
           {"@%p9 bra L;", 2, "unknown register \"%p9\""},
           {"mov.b32 %r1.x, 1;", 12, "no vector register"},
           {".reg .v2 .f32 v; mov.b32 v.z, 1;", 27, "has 2 components"},
           {"mov.b32 %r1.foo, 1;", 12, "no component"},
           {".rag .b32 a;", 1, "\".rag\" cannot stand in a function; similar names: \".reg\""},
           {".reg .b31 a;", 6, "no type that a declaration can have"},
           {".reg a;", 5, "the type is missing"},
           {".reg .b32 a[4];", 11, "registers cannot be arrays"},
           {".shared .align 3 .b32 a;", 16, "no power of two"},
           {".shared .b32 a[0];", 16, "expected an integer from 1"},
           {".shared .b32 a[];", 14, "an array without size"},
           {"= 5;", 1, "expected a statement"},
           {"mov.b32 %r1, \x80;", 14, "unexpected character"},
           {"t: .branchtargets nowhere;", 19, "unknown label \"nowhere\""},
           {"t: .calltargets counter;", 17, "unknown function"},
           {"/* ", 1, "this comment has no end"},
           {".pragma \"x;", 9, "this string has no end"}}) {
    const std::string message = error_in(kernel(refusal.statements));
    const std::string place = "input:" + std::to_string(kFirstLineOfKernel) + ":" +
                              std::to_string(refusal.column) + ": error: ";
    EXPECT_THAT(message, AllOf(StartsWith(place), HasSubstr(refusal.message)))
        << refusal.statements;
    const auto num_blanks = static_cast<std::size_t>(refusal.column) + 1;
    const std::string caret = "\n" + std::string(num_blanks, ' ') + "^";
    EXPECT_THAT(message, EndsWith(caret)) << refusal.statements;
  }
}

TEST(ParseErrors, OutsideOfFunctions) {
  EXPECT_THAT(error_in("L:"), HasSubstr("input:4:1: error: the label \"L\" stands outside"));
  EXPECT_THAT(error_in("add.s32 a, b;"), HasSubstr("expected a directive"));
  EXPECT_THAT(error_in(".entri k() {}"), HasSubstr("similar names: \".entry\""));
  EXPECT_THAT(error_in(".reg .b32 a;"), HasSubstr(".reg outside of a function"));
  EXPECT_THAT(error_in(".func f() { {"),
              HasSubstr("input:4:13: error: this brace is never closed"));
  EXPECT_THAT(error_in(".func f() { } }"), HasSubstr("input:4:15"));
  EXPECT_THAT(error_in(".func f() .maxntidd 3 { }"), HasSubstr("similar names: \".maxntid\""));
  EXPECT_THAT(error_in(".func f() 3"), HasSubstr("expected '{' or ';' after the header of \"f\""));
  EXPECT_THAT(error_in(".func f() {}\n.func f() {}"),
              HasSubstr("input:5:7: error: \"f\" is already"));
  EXPECT_THAT(error_in(".func f(.param .b32 a);\n.func f(.param .b64 a) {}"),
              HasSubstr("other parameters"));
  EXPECT_THAT(error_in(".func f(.param .b32 a, .param .b32 a) {}"), HasSubstr("already declared"));
  EXPECT_THAT(error_in(".func f(.global .b32 a) {}"), HasSubstr("a parameter is .param or .reg"));
  EXPECT_THAT(error_in(".global .b32 f; .func f() {}"), HasSubstr("already declared"));
  EXPECT_THAT(error_in(".func f(); .alias f, g;"), HasSubstr("unknown function \"g\""));
  EXPECT_THAT(error_in(".section .debug_info { .b8 1"), HasSubstr("never closed"));
}

TEST(ParseErrors, NewerVersionsAreNamedBesideWhatIsUnknown) {
  const auto error = [](std::string version, const char* body) {
    const std::string text = ".version " + version + "\n.target sm_90a\n" + body;
    return error_of(ErrorKind::kParseError, [&] { parse_module(text, "input"); });
  };
  const auto has_note = HasSubstr("; the module is PTX 9.4, and 9.0 is the newest known here");
  for (const char* body :
       {".entry f() { mov.u32 %r1, %new_register; }", ".entry f() .newbound { ret; }",
        ".entry f() { .new 3; ret; }", ".newdirective 4;"}) {
    EXPECT_THAT(error("9.4", body), has_note) << body;
    EXPECT_THAT(error("9.0", body), Not(HasSubstr("newest known"))) << body;
  }
  EXPECT_THAT(error("9.4", ".entry f() { bra L; }"), Not(HasSubstr("newest known")));
}

TEST(ParseErrors, TheBeginning) {
  const auto error = [](const char* text) {
    return error_of(ErrorKind::kParseError, [&] { parse_module(text, "input"); });
  };
  EXPECT_THAT(error(""), HasSubstr("PTX begins with .version"));
  EXPECT_THAT(error(".target sm_90a"), HasSubstr("PTX begins with .version"));
  EXPECT_THAT(error(".version 9"), HasSubstr("no version"));
  EXPECT_THAT(error(".version 9.0 .address_size 64"), HasSubstr("expected .target"));
  EXPECT_THAT(error(".version 90.0 .target sm_90a"), HasSubstr("from 1.0 to 29.9"));
  EXPECT_THAT(error(".version 0.0 .target sm_90a"), HasSubstr("no version"));
  EXPECT_THAT(error(".version 9.0 .target sm_90x"), HasSubstr("no architecture"));
  EXPECT_THAT(error(".version 9.0 .target debug"), HasSubstr("names no architecture"));
}

TEST(HostileTexts, SizesAreBounded) {
  EXPECT_THAT(error_in(kernel(".reg .b32 x<4000000000>;")), HasSubstr("expected 1 to 262144"));
  EXPECT_THAT(error_in(kernel(".reg .b32 x<0>;")), HasSubstr("expected 1 to"));
  std::string ranges;
  for (const std::string name : {"a", "b", "c"}) ranges += ".reg .b32 " + name + "<200000>;\n";
  EXPECT_THAT(error_in(kernel(ranges)), HasSubstr("input:8:"));
  EXPECT_THAT(error_in(kernel(".reg .b32 " + std::string(300, 'x') + "<9>;")),
              HasSubstr("too long"));
  EXPECT_THAT(error_in(".global .b8 a[99999999999999];"), HasSubstr("expected an integer from 1"));
  EXPECT_THAT(error_in(".global .b8 a[60000000000][60000000000];"), HasSubstr("more than"));
  EXPECT_THAT(error_in(".global .b8 a[60000000000] = {1};"), HasSubstr("initialised variables"));
  std::string dimensions = ".global .b8 a";
  for (int i = 0; i < 20; ++i) dimensions += "[1]";
  EXPECT_THAT(error_in(dimensions + ";"), HasSubstr("more than 16 dimensions"));
}

TEST(HostileTexts, DepthIsBounded) {
  const std::string braces(100'000, '{');
  const std::string parentheses(100'000, '(');
  const std::string brackets(100'000, '[');
  EXPECT_THAT(error_in(kernel(braces)), HasSubstr("more than 64 deep"));
  EXPECT_THAT(error_in(kernel("mov.b32 %r1, 1+" + parentheses)), HasSubstr("more than 64 deep"));
  EXPECT_THAT(error_in(kernel("mov.b32 %r1, " + std::string(100'000, '~'))), HasSubstr("64 deep"));
  EXPECT_THAT(error_in(kernel("mov.b32 %r1, " + brackets)), HasSubstr("more than 8 deep"));
  EXPECT_THAT(error_in(kernel("mov.b32 %r1, " + braces)), HasSubstr("more than 8 deep"));
  EXPECT_THAT(error_in(".global .b8 a[2] = " + braces), HasSubstr("braces where a value"));
}

TEST(HostileTexts, ZeroBytes) {
  EXPECT_THAT(error_in(std::string("// a\n  b\0", 9)), HasSubstr("input:5:4: error: a zero byte"));
}

TEST(HostileTexts, MessagesStayShort) {
  const std::string name(1'000'000, 'n');
  EXPECT_LT(error_in(kernel("mov.b32 %r1, " + name + ";")).size(), 1000u);
  EXPECT_LT(error_in(kernel(name + ": " + name + ":")).size(), 1000u);
  EXPECT_LT(error_in(".func " + name + "() 3").size(), 1500u);
}

TEST(HostileTexts, TimeIsLinear) {
  // Labels of many scopes, and jumps out of the deepest one: each would take minutes if anything
  // were quadratic.
  std::string text = ".entry k() {\n";
  for (int i = 0; i < 60; ++i) text += "{";
  for (int i = 0; i < 20'000; ++i) text += "bra OUT;\n";
  for (int i = 0; i < 60; ++i) text += "}";
  text += "OUT:\n";
  for (int i = 0; i < 20'000; ++i) text += "{ .reg .b32 r; L: bra L; mov.b32 r, 0; }\n";
  text += "ret; }";
  EXPECT_EQ(parse(text).functions[0].body.size(), 60'001u);
}

}  // namespace
}  // namespace tilewright::sim
