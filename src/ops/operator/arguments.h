// Checks of what a caller gives to an operator, with messages that name operator, field and rule.
#pragma once

#include "base/error.h"
#include "ops/operator/float_checks.h"
#include "ops/operator/workspace.h"

#include <cstdint>
#include <limits>
#include <utility>

#include <fmt/format.h>

namespace tilewright::ops {

/// Of rows that are read in vectors, and of single words. A workspace has kWorkspaceAlignment.
inline constexpr std::size_t kRowAlignment = 16, kWordAlignment = 4;

/// A checked number as kernels have it.
constexpr std::int32_t narrow(std::int64_t x) {
  return static_cast<std::int32_t>(x);
}

/// The checks of one operator, by the name that its messages begin with.
class ArgumentChecks {
 public:
  explicit constexpr ArgumentChecks(const char* name) : name_(name) {}

  template <class... Args>
  void check(bool is_right, fmt::format_string<Args...> format, Args&&... args) const {
    if (is_right) return;
    fail(ErrorKind::kInvalidArgument, "{}: {}", name_,
         fmt::format(format, std::forward<Args>(args)...));
  }
  void address(const char* field, const void* address, std::size_t alignment) const {
    check(address != nullptr, "the address of {} is null; this call needs it", field);
    check(reinterpret_cast<std::uintptr_t>(address) % alignment == 0,
          "the address of {} is {}; expected a multiple of {}", field, address, alignment);
  }
  void address_if(bool is_needed, const char* field, const void* at, std::size_t alignment) const {
    if (is_needed) address(field, at, alignment);
  }
  /// The memory that a plan asks for, if it asks for any.
  void workspace(const void* at, std::size_t bytes) const {
    address_if(bytes > 0, "workspace", at, kWorkspaceAlignment);
  }
  void range(const char* field, std::int64_t value, std::int64_t least,
             std::int64_t most = std::numeric_limits<std::int32_t>::max()) const {
    check(value >= least && value <= most, "{} = {}; expected {} to {}", field, value, least, most);
  }
  /// What is added to a mean or a sum before it divides: 0 or more, and kept as it is by fp32.
  void eps(const char* field, double value) const {
    check(value >= 0 && is_zero_or_normal_float(value),
          "{} = {}; expected 0 or more, as fp32 holds it: 0, or 1.2e-38 to 3.4e38", field, value);
  }
  /// A distance of rows, where 0 stands for `contiguous`.
  std::int64_t stride(const char* field, std::int64_t value, std::int64_t contiguous,
                      std::int64_t multiple) const {
    if (value == 0) value = contiguous;
    check(value >= 0 && value % multiple == 0,
          "{} = {}; expected a multiple of {} from 0 on (16 bytes)", field, value, multiple);
    return value;
  }

 private:
  const char* name_;
};

}  // namespace tilewright::ops
