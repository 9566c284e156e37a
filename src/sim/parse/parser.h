// PTX text -> Module.
#pragma once

#include "sim/parse/ast.h"

#include <filesystem>
#include <string>

namespace tilewright::sim {

/// Parses PTX ISA up to 9.0: directives, scopes, declarations with initialisers, functions,
/// instructions with all operand forms, debug sections (skipped), .loc and .file (kept). Opcodes,
/// modifiers and the version number are not interpreted.
/// Errors   ParseError with file, line, column and a caret; also for hostile sizes (limits.h)
Module parse_module(std::string text, std::string name);

/// The text of a file, which is not read if it is too large to be parsed.
/// Errors   InvalidArgument if it cannot be opened, is not a regular file, or is too large
std::string read_ptx(const std::filesystem::path& path);

}  // namespace tilewright::sim
