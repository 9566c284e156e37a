// What is wrong with a PTX text, shown as compilers do:
//
//     gemm.ptx:41:12: error: unknown instruction "wgmma.mma_asinc"
//       wgmma.mma_asinc.sync.aligned.m64n64k16.f32.bf16.bf16 {...
//       ^
#pragma once

#include "base/error.h"
#include "sim/parse/ast.h"

namespace tilewright::sim {

/// The text above, ready to be thrown or collected. Tabs and long lines are shortened so that the
/// caret fits.
std::string format_diagnostic(std::string_view file, std::string_view text, SourcePos pos,
                              std::string_view message);

/// Throws a ParseError with that text.
[[noreturn]] void fail_at(const Module& module, SourcePos pos, std::string_view message);

}  // namespace tilewright::sim
