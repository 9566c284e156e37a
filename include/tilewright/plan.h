// What every operator says before it runs: which kernels can do a problem, which one will, what it
// launches and what that needs.
#pragma once

#include "tilewright/reason.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tilewright {

/// One kernel of an operator, and whether it can do a problem.
struct Candidate {
  std::string name;
  std::string reason;  ///< why it is not possible, or not chosen; empty for the chosen one
  bool is_possible = false;
  bool is_automatic = false;  ///< possible, and "auto" may take it
  double cost_us = 0;         ///< estimate that the choice goes by; infinity: none
};

/// One kernel launch.
struct Launch {
  std::string step;   ///< what it does for the operator: "attend", "quantize"
  std::string entry;  ///< as `tilewright kernels` lists it
  std::array<std::uint32_t, 3> grid = {}, block = {};
  std::uint32_t cluster = 1;       ///< CTAs along x
  std::uint32_t shared_bytes = 0;  ///< dynamic
};

/// A line of a plan's text that only one operator has.
struct PlanNote {
  std::string label, text;
};

/// How much a problem computes and moves.
struct Work {
  double flops = 0;  ///< of all products
  double bytes = 0;  ///< each operand and result once
};

/// What will be launched: made from the problem and the properties of the device alone, without
/// touching either. The plan of every operator is one, with its problem beside it.
struct Plan {
  std::string kernel;  ///< name of the chosen candidate; empty where there is nothing to choose
  std::vector<Candidate> candidates;
  std::vector<Launch> launches;      ///< in order; none if there is nothing to do
  std::size_t workspace_bytes = 0;   ///< device memory that run() needs, 256-byte aligned
  double flops = 0;                  ///< of all products
  double bytes = 0;                  ///< each operand and result once
  std::string assumption = {};       ///< of flops and bytes: "full caches"; empty if exact
  std::vector<PlanNote> notes = {};  ///< problem and details, the first lines of the text

  /// What no kernel can be faster than on a device with these rates, in microseconds: the larger of
  /// bytes / bytes_per_s and flops / flops_per_s.
  double floor_us(double bytes_per_s, double flops_per_s) const noexcept;

  /// Problem, kernel, launches, workspace, work, and why not the other kernels, the best of them
  /// first.
  std::string to_string() const;
  /// The same with the best three of the others. `rest` says how a reader sees them all.
  std::string summary(const std::string& rest) const;
};

}  // namespace tilewright
