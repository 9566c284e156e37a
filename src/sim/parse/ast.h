// A PTX module after parsing: names are resolved, block scopes are gone, instructions stand in one
// flat list per function. What an opcode means is decided later (compile/).
#pragma once

#include "sim/parse/types.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tilewright::sim {

/// A place in the PTX text, both from 1; line 0 means nowhere.
struct SourcePos {
  std::uint32_t line = 0;
  std::uint32_t column = 0;
};

/// What the last .loc before an instruction said: a file of Module::files and a line in it.
struct SourceLoc {
  std::uint32_t file = 0;  ///< key of Module::files; 0 = unknown
  std::uint32_t line = 0;
};

/// One declared register. `%r<3>` declares three, named %r0 %r1 %r2.
struct RegisterDecl {
  std::string name;
  Type type = Type::kNone;
  std::uint8_t num_components = 1;  ///< 2 or 4 for .v2 and .v4
  SourcePos pos;
};

/// Bytes of an initialiser that hold an address: they become the address of a variable or function.
struct Relocation {
  std::uint64_t offset_bytes = 0;
  std::uint8_t size_bytes = 8;
  std::uint8_t shift_bits =
      0;  ///< from mask(): the address is shifted right so far before it is cut to size
  bool is_generic = false;  ///< generic(sym): the generic address, else the address in its space
  bool is_function = false;
  std::uint32_t target = 0;  ///< index into Module::variables or Module::functions
  std::int64_t addend = 0;
};

enum class Linkage : std::uint8_t { kInternal, kVisible, kExtern, kWeak, kCommon };

/// A variable in any space but .reg, and a parameter of a function.
struct Variable {
  std::string name;
  Space space = Space::kGlobal;
  Type type = Type::kB8;
  std::uint32_t align_bytes = 1;
  std::uint64_t size_bytes = 0;  ///< 0 for an extern array without a size
  Linkage linkage = Linkage::kInternal;
  bool is_unsized_array = false;  ///< .extern .shared name[]: the dynamic shared memory
  bool is_managed = false;
  std::vector<std::byte> initial;  ///< size_bytes of them, or empty: zero
  std::vector<Relocation> relocations;
  std::uint32_t register_idx = 0;  ///< of a .reg parameter (Space::kReg): into Function::registers
  SourcePos pos;
};

/// Registers that the machine fills.
enum class SpecialRegister : std::uint8_t {
  kTid,
  kNtid,
  kCtaid,
  kNctaid,
  kClusterid,
  kNclusterid,
  kClusterCtaid,
  kClusterNctaid,  // .x .y .z
  kLaneid,
  kWarpid,
  kNwarpid,
  kSmid,
  kNsmid,
  kGridid,
  kIsExplicitCluster,
  kClusterCtarank,
  kClusterNctarank,
  kLanemaskEq,
  kLanemaskLe,
  kLanemaskLt,
  kLanemaskGe,
  kLanemaskGt,
  kClock,
  kClockHi,
  kClock64,
  kPm,
  kPm64,
  kEnvreg,
  kGlobaltimer,
  kGlobaltimerLo,
  kGlobaltimerHi,
  kTotalSmemSize,
  kAggrSmemSize,
  kDynamicSmemSize,
  kReservedSmemOffsetBegin,
  kReservedSmemOffsetEnd,
  kReservedSmemOffsetCap,
  kReservedSmemOffset,
  kCurrentGraphExec,
};

enum class OperandKind : std::uint8_t {
  kRegister,  ///< index: Function::registers; component if it is a vector register
  kSpecial,   ///< index: SpecialRegister; component 0..2 (number for %envregN, %pmN)
  kInteger,   ///< value
  kFloat,     ///< value holds the bits of a double; is_f32_bits if it was written 0f...
  kVariable,  ///< index: Function::variables or Module::variables (is_local says); value: + offset
  kFunction,  ///< index: Module::functions
  kLabel,     ///< index: Function::labels
  kTable,     ///< index: Function::tables (of .branchtargets, .calltargets, .callprototype)
  kMemory,  ///< [base + value]: parts[0] is the base (register, variable or integer); parts[1], if
            ///< there, the vector of coordinates of a tensor address
  kVector,  ///< {a, b, ...}: parts
  kPair,    ///< d|p: parts
  kSink,    ///< _
  kParenthesis  ///< (a, b): argument and result lists of call, scale-factor addresses of mma: parts
};

/// What Operand::component says for the selectors .b0 to .b3 and .h0, .h1 of video instructions.
constexpr std::uint8_t kByteSelector = 16;
constexpr std::uint8_t kHalfSelector = 24;

struct Operand {
  OperandKind kind = OperandKind::kSink;
  bool is_negated = false;  ///< !p
  bool is_minus = false;    ///< -%r, as in old-style operands
  bool is_local = false;    ///< kVariable: the variable is one of the function's
  bool is_f32_bits = false;
  std::uint8_t component =
      0;  ///< .x .y .z .w or .r .g .b .a: 0..3; kByteSelector, kHalfSelector + n
  bool has_component = false;
  std::uint32_t index = 0;
  std::int64_t value = 0;
  std::vector<Operand> parts;
  SourcePos pos;
};

/// @p or @!p
struct Guard {
  std::uint32_t register_idx = 0;
  bool is_negated = false;
};

struct Instruction {
  std::string_view opcode;  ///< "wgmma", without modifiers; views Module::text
  std::vector<std::string_view>
      modifiers;  ///< "mma_async", "sync", ... in the order of the text, without dots;
                  ///< "::" stays inside: "mbarrier::complete_tx::bytes"
  std::optional<Guard> guard;
  std::vector<Operand> operands;
  SourcePos pos;
  std::uint32_t length = 0;  ///< characters from the opcode to before the semicolon
  SourceLoc loc;
};

/// A .branchtargets, .calltargets or .callprototype statement.
struct TargetTable {
  std::string name;
  std::vector<std::uint32_t> targets;  ///< labels (.branchtargets) or functions (.calltargets)
  bool is_branch = false;
  bool is_prototype = false;
  std::vector<Variable> returns, params;  ///< of a prototype
};

struct Label {
  std::string name;
  std::uint32_t instruction_idx = 0;  ///< index into Function::body; body.size() at the end
};

/// .maxntid and its kin; 0 = absent.
struct LaunchBounds {
  std::uint32_t max_threads[3] = {};
  std::uint32_t required_threads[3] = {};
  std::uint32_t min_ctas_per_sm = 0;
  std::uint32_t max_registers = 0;
  std::uint32_t required_cluster[3] = {};
  std::uint32_t max_cluster_rank = 0;
  bool is_explicit_cluster = false;
  bool is_blocks_are_clusters = false;
};

struct Function {
  std::string name;
  bool is_entry = false;
  bool is_defined = false;  ///< has a body
  bool is_noreturn = false;
  Linkage linkage = Linkage::kInternal;
  LaunchBounds bounds;
  std::optional<std::uint32_t> alias;  ///< .alias: index of the function whose body this name means
  std::vector<std::uint32_t>
      params;  ///< indices into variables, in order; in Space::kReg if they are registers
  std::vector<std::uint32_t> returns;  ///< likewise
  std::vector<RegisterDecl> registers;
  std::vector<Variable>
      variables;  ///< params, returns, and everything declared in the body but registers
  std::vector<Label> labels;
  std::vector<TargetTable> tables;
  std::vector<Instruction> body;
  SourcePos pos;
};

/// Code for sm_90a runs on 9.0 alone, for sm_100f on 10.0 and 10.3 (10.1 is of another family, the
/// one of 11.0), for sm_103f on 10.3, for sm_90 on 9.0 and all later devices.
constexpr bool target_runs_on(int target, char suffix, int compute_capability) noexcept {
  if (suffix == 'a') return target == compute_capability;
  const bool is_family = suffix != 'f' || (target / 10 == compute_capability / 10 &&
                                           (target == 101) == (compute_capability == 101));
  return is_family && target <= compute_capability;
}

/// Newer modules are run as far as their instructions are known; what is not is named with the
/// version of the module beside it.
inline constexpr int kNewestPtx = 90;

/// An instruction's operands say `is_local` where they mean Function::variables.
struct Module {
  std::string name;                         ///< for messages: the file's name
  std::shared_ptr<const std::string> text;  ///< owns what string_views point to, also after a move
  int version = 0;                          ///< 90 for .version 9.0
  int target = 0;                           ///< 90 for sm_90a
  bool is_arch_specific = false;            ///< sm_90a
  bool is_family_specific = false;          ///< sm_100f
  int address_bits = 64;
  std::vector<Variable> variables;
  std::vector<Function> functions;
  /// Machine code that was made of the text, for the timing model; nullptr if there is none
  std::shared_ptr<const std::string> cubin;
  std::vector<std::pair<std::uint32_t, std::string>> files;  ///< of .file: number and path

  /// "; the module is PTX 9.4, and 9.0 is the newest known here", or nothing if it is not newer:
  /// goes behind whatever is said of a name that is not known.
  std::string version_note() const;
  /// "path/kernel.cu" of a .loc's file, "" if unknown.
  std::string_view file_name(std::uint32_t file) const noexcept;
  /// The instruction in one line, blanks shortened, cut to that many characters with "..." then.
  std::string text_of(const Instruction& instruction, std::size_t most_chars) const;
  /// "sm_90a", and whether a device of this compute capability, 90 for 9.0, runs it.
  std::string target_name() const;
  bool runs_on(int compute_capability) const noexcept;
};

}  // namespace tilewright::sim
