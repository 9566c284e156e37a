// Attention in e4m3 as the tool runs it: operands rounded on the device, options, and how far off
// results may be.
#pragma once

#include "tilewright/attention_prepare.h"

#include "cli/command.h"
#include "device/memory.h"

#include <memory>
#include <string>

namespace tilewright::cli {

/// As given on the command line.
struct Fp8Args {
  std::string scales = "tensor", v_layout = "rows", accumulation = "auto";
  bool is_rotated = false;

  Fp8Options options() const;
};
void add_fp8_options(CLI::App& command, Fp8Args& args);

/// A problem of 16 bits on operands that are rounded before.
AttentionProblem to_e4m3_problem(const AttentionProblem& problem, const Fp8Options& options);

/// e4m3 operands in device memory.
class Fp8Operands {
 public:
  Fp8Operands(const Device& device, const AttentionPrepareProblem& problem);

  /// Makes them of those of 16 bits; addresses and the stream of `from` count.
  void enqueue(const AttentionArguments& from) const;
  /// Puts their addresses in the place of q, k and v.
  void set(AttentionArguments& arguments) const;

  const AttentionPreparePlan& plan() const noexcept { return prepare_.plan(); }

 private:
  AttentionPrepare prepare_;
  device::Buffer q_, k_, v_, q_descale_, k_descale_, v_descale_, v_descale_max_, workspace_;
};

/// What the relative root mean square of errors against operands of 16 bits may be; 0: there are
/// bounds for every element instead. e4m3 rounds by at most 2^-4, 0.026 in the mean square of
/// mantissas that are as good as random: weights 0.026, values 0.026, and q and k move a score of
/// standard deviation 1 by 0.026 * sqrt(2) = 0.037, in all 0.052 where errors add up as the values
/// do, independently. Scores of real heads have deviations of up to 3: 0.12, and a fourth more.
double fp8_rms_limit(const AttentionPlan& plan);

}  // namespace tilewright::cli
