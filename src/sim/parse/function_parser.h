// Functions and kernels: header, body, labels.
#pragma once

#include "sim/parse/declaration.h"
#include "sim/parse/operand.h"

namespace tilewright::sim {

/// Takes a function or kernel from .func or .entry to the end of its body, or to the semicolon of a
/// prototype, and puts it into the module. Declarations of one function are merged.
void parse_function(ParseContext& context, Linkage linkage);

/// Takes one .pragma, .loc, .file, which may stand anywhere; false if the next token begins none.
bool parse_annotation(ParseContext& context);

}  // namespace tilewright::sim
