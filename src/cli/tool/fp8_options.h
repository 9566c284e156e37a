// The options of attention in e4m3.
#pragma once

#include "tilewright/attention_prepare.h"

#include "cli/tool/command.h"

#include <string>

namespace tilewright::cli {

/// As given on the command line.
struct Fp8Args {
  std::string scales = "tensor", v_layout = "rows", accumulation = "auto";
  bool is_rotated = false;

  Fp8Options options() const;
};
void add_fp8_options(CLI::App& command, Fp8Args& args);

}  // namespace tilewright::cli
