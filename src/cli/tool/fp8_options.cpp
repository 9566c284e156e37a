#include "cli/tool/fp8_options.h"

#include "cli/tool/words.h"

namespace tilewright::cli {

Fp8Options Fp8Args::options() const {
  Fp8Options out;
  out.scales = scales == "tensor" ? ScaleSharing::kTensor
               : scales == "head" ? ScaleSharing::kHead
                                  : ScaleSharing::kBlock;
  out.v_layout = v_layout == "rows" ? Fp8ValueLayout::kRows : Fp8ValueLayout::kColumns;
  out.accumulation = accumulation == "auto"        ? Fp8Accumulation::kAuto
                     : accumulation == "one_level" ? Fp8Accumulation::kOneLevel
                                                   : Fp8Accumulation::kTwoLevel;
  return out;
}

void add_fp8_options(CLI::App& command, Fp8Args& args) {
  command.add_option("--scales", args.scales, "e4m3: one scale per tensor, head or block")
      ->type_name("tensor|head|block")
      ->check(quiet(CLI::IsMember({"tensor", "head", "block"})))
      ->capture_default_str();
  command
      .add_option("--v-layout", args.v_layout,
                  "e4m3: values laid out as keys are, or transposed and permuted, which saves the "
                  "kernel work")
      ->type_name("rows|columns")
      ->check(quiet(CLI::IsMember({"rows", "columns"})))
      ->capture_default_str();
  command.add_flag("--rotate", args.is_rotated,
                   "e4m3: first rotate q and k by random signs and a Hadamard transform");
  command
      .add_option(
          "--accumulation", args.accumulation,
          "e4m3, k7 and k8: one level, the tensor core adds over all keys; two, fp32 registers "
          "add its sums over 256 keys each; auto: chosen by a bound on the error")
      ->type_name("auto|one_level|two_level")
      ->check(
          one_of({"auto", "one_level", "two_level"}, {{"one", "one_level"}, {"two", "two_level"}}))
      ->capture_default_str();
}

}  // namespace tilewright::cli
