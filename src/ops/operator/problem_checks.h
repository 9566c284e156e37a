// Checks of a problem: they go on after the first that fails, so that a caller hears of all.
#pragma once

#include "tilewright/reason.h"

#include "ops/operator/float_checks.h"

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace tilewright::ops {

/// A value as a reason has it.
template <class Value>
std::string value_text(const Value& value) {
  if constexpr (std::is_enum_v<Value>) {
    return to_string(value);
  } else {
    return fmt::format("{}", value);
  }
}

/// What a failed check may add.
class Noted {
 public:
  explicit Noted(Reason* reason) : reason_(reason) {}

  /// What to do, as sentences.
  Noted remedy(const char* text) const {
    if (reason_ != nullptr) reason_->fix = text;
    return *this;
  }
  /// Whether the check held.
  explicit operator bool() const { return reason_ == nullptr; }

 private:
  Reason* reason_;
};

/// Whether all of them held. Those of a list are made in its order.
inline bool all_held(std::initializer_list<Noted> checks) {
  return std::ranges::all_of(checks, [](const Noted& noted) { return bool(noted); });
}

/// The checks of one problem, by the name of the operator that its messages begin with.
class ProblemChecks {
 public:
  explicit ProblemChecks(const char* op) : op_(op), root_(this) {}
  /// Those of a part of the problem: fields are "part.field".
  ProblemChecks(ProblemChecks& outer, const char* part)
      : op_(outer.op_), root_(outer.root_), part_(outer.part_ + part + ".") {}
  ProblemChecks(const ProblemChecks&) = delete;
  ProblemChecks& operator=(const ProblemChecks&) = delete;

  /// Unless it is right, notes that `field` has `value`, and what was expected.
  template <class Value, class... Args>
  Noted expect(bool is_right, const char* field, const Value& value,
               fmt::format_string<Args...> rule, Args&&... args) {
    if (is_right) return Noted(nullptr);
    return note(
        {part_ + field, value_text(value), fmt::format(rule, std::forward<Args>(args)...), {}});
  }
  Noted range(const char* field, std::int64_t value, std::int64_t least,
              std::int64_t most = std::numeric_limits<std::int32_t>::max()) {
    return expect(value >= least && value <= most, field, value, "{} to {}", least, most);
  }
  /// What is added to a mean or a sum before it divides: 0 or more, and kept as it is by fp32.
  Noted eps(const char* field, double value) {
    return expect(value >= 0 && is_zero_or_normal_float(value), field, value,
                  "0 or more, as fp32 holds it: 0, or 1.2e-38 to 3.4e38");
  }
  /// What attention multiplies scores with, and their cap. `default_scale` says what no scale
  /// stands for.
  void scores(std::optional<double> scale, const char* default_scale, double softcap);

  /// Whether nothing was noted until now, in any part.
  bool is_fine() const { return root_->reasons_.empty(); }
  /// Errors   InvalidArgument with everything that was noted, if anything was
  void finish() const;

 private:
  Noted note(Reason reason);

  const char* op_;
  ProblemChecks* root_;
  std::string part_;
  std::vector<Reason> reasons_;  // of the root
};

/// A Refusal whose text is "op: " and the reasons, each on a line of its own.
[[noreturn]] void refuse(ErrorKind kind, const std::string& op, std::vector<Reason> reasons);

}  // namespace tilewright::ops
