// A kernel with its calls replaced by the functions' bodies. A function that can call itself, in
// one step or several, has one body behind the kernel's and is called (call_frame.h).
#pragma once

#include "sim/parse/ast.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string_view>
#include <vector>

namespace tilewright::sim {

/// One copy of a function's body: the entry itself, an inlined call, or one that is called.
struct FunctionCopy {
  const Function* function = nullptr;
  std::uint32_t register_base = 0;  ///< number of its first register in the kernel
  std::uint32_t label_base = 0;
  std::uint32_t end_label = 0;  ///< where `ret` goes; unused in the entry
  /// .param variables of the function that are other variables of the caller: key and value are
  /// indices into Function::variables, the value's of the copy `param_owner`.
  std::map<std::uint32_t, std::uint32_t> param_alias;
  std::uint32_t caller = 0;  ///< index of the copy it was called from
  /// The copy that it is inlined in, in the end: the entry (0), or one that is called and then
  /// itself if it is the one.
  std::uint32_t root = 0;
  std::vector<std::uint32_t> return_labels;  ///< of a root that is called: where it may return to
};

enum class FlatKind : std::uint8_t {
  kSyntax,       ///< an instruction of the text
  kReturn,       ///< `ret` of an inlined function: goes to label
  kSkip,         ///< goes to label where the guard of `syntax` does not hold
  kSkipTarget,   ///< goes to label where the called address is not `function`'s
  kBuiltin,      ///< a call of vprintf, __assertfail, malloc, free
  kBadCall,      ///< an indirect call that met none of its targets
  kFrameCall,    ///< a call of the copy `callee`
  kResults,      ///< behind it: its results become the caller's
  kFrameReturn,  ///< `ret` of a copy that is called
  kExit,         ///< the end of the entry, with other bodies behind it
};

struct FlatInsn {
  FlatKind kind = FlatKind::kSyntax;
  std::uint32_t copy = 0;
  const Instruction* syntax = nullptr;
  std::uint32_t label = 0;             ///< number of the label in the kernel
  const Function* function = nullptr;  ///< kBuiltin, kSkipTarget
  std::uint32_t callee = 0;            ///< kFrameCall, kResults
};

struct FlatKernel {
  const Module* module = nullptr;
  std::vector<FunctionCopy> copies;  ///< [0] is the entry
  std::vector<FlatInsn> body;
  std::vector<std::uint32_t> labels;  ///< number of the label -> index into body
  std::uint32_t num_registers = 0;
  std::vector<std::shared_ptr<const Instruction>> made;  ///< that are not in the text
};

/// Modifiers of an fma that was made from a subtraction: -a * b + c, a * b - c. No text has them.
inline constexpr std::string_view kMinusA = "-a";
inline constexpr std::string_view kMinusC = "-c";

/// The parts of `call (results), target, (arguments), table`; nullptr for what is not there.
struct Call {
  const Operand* results = nullptr;
  const Operand* target = nullptr;
  const Operand* arguments = nullptr;
  const Operand* table = nullptr;
};
Call split_call(const Instruction& syntax);

/// Functions the machine itself provides.
bool is_builtin(const Function& function);

/// The address that a function has as a value.
std::uint64_t function_address(std::uint32_t function_idx);

/// Errors   Unsupported for a call of a function without a body; ParseError with its place
FlatKernel flatten(const Module& module, const Function& entry);

}  // namespace tilewright::sim
