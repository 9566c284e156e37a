// The operations of the algebra by name, on text: what the tool evaluates and what case files
// exercise.
#pragma once

#include "layout/swizzle.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace tilewright {

using OperationResult = std::variant<ComposedLayout, std::int64_t>;

struct LayoutOperation {
  const char* name;
  const char* operands;  ///< one word per operand: "A", "A B", "A BOUND", "A TILER CRD"
  const char* summary;   ///< what the result is
  OperationResult (*run)(std::span<const std::string> operands);

  int num_operands() const;
};

/// All operations, in the order in which they are explained in docs/01-layouts.
std::span<const LayoutOperation> layout_operations();

/// Null if there is none of that name.
const LayoutOperation* find_layout_operation(std::string_view name);

/// Runs an operation on operands given as text.
/// Errors  InvalidArgument: unknown name, wrong number of operands, or a law of the operation is
///         broken; ParseError
OperationResult run_layout_operation(std::string_view name, std::span<const std::string> operands);

}  // namespace tilewright
