// Which kernel does a problem: the one that was asked for, or the one that is expected to be
// fastest; and why not the others. Every operator that has several asks here.
#pragma once

#include "tilewright/plan.h"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace tilewright::ops {

/// A kernel as the choice sees it. Of equals the first is taken.
struct Option {
  std::string name;
  std::string obstacle;     ///< why it cannot do the problem; empty if it can
  double cost_us = 0;       ///< if it can; infinity if nothing is known of it
  std::string reservation;  ///< why "auto" leaves it alone although it can; empty: it does not
  /// Where costs are counted: bytes that L2 reads out. Among options that cost the same to 0.1 %,
  /// the fewest.
  double l2_bytes = 0;
};

/// Who asks, and for what.
struct Request {
  const char* op;      ///< messages begin with it
  std::string kernel;  ///< "auto", or a name
  std::string device;
  std::string task;    ///< what has to be done, for a message: "bf16 with head_dim 96"
  const char* remedy;  ///< if no kernel can: "Pad head_dim."
};

/// Fills in kernel and candidates of a plan, and returns which option was chosen.
/// Errors   InvalidArgument if there is no kernel of the name that was asked for (all are listed);
///          Unsupported if it cannot do the problem (those that can are listed), or none can (all
///          reasons are listed)
std::size_t choose(Plan& plan, const Request& request, std::span<const Option> options);

/// There is no kernel of that name; there are these, and auto.
[[noreturn]] void refuse_unknown(const char* op, const std::string& kernel,
                                 const std::string& names);

/// The same of a table: `option` says what each of its rows is.
template <class Rows, class MakeOption>
std::size_t choose(Plan& plan, const Request& request, const Rows& rows, const MakeOption& option) {
  std::vector<Option> options;
  for (const auto& row : rows) options.push_back(option(row));
  return choose(plan, request, std::span<const Option>(options));
}

/// An option whose cost is looked at only if nothing stands in its way.
template <class Cost>
Option make_option(std::string name, std::string obstacle, const Cost& cost_us) {
  const double us = obstacle.empty() ? cost_us() : 0;
  return {std::move(name), std::move(obstacle), us, {}, 0};
}

}  // namespace tilewright::ops
