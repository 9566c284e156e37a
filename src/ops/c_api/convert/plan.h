// clang-format off
// Made by tools/make_c_api.py from tools/c_api; edit that.
//
// Structs of the C interface, plan: shape, defaults, and what they mean in C++.
#pragma once

#include "ops/c_api/convert/versions.h"
#include "tilewright/tilewright.h"

#include <cstddef>

namespace tilewright::c_api {

template <>
struct Version<tw_reason> {
  static constexpr const char* kName = "tw_reason";
  static constexpr Shape kShape = {kName, sizeof(tw_reason), {}};
  static tw_reason defaults() {
    tw_reason c = {};
    c.struct_bytes = sizeof c;
    return c;
  }
};

template <>
struct Version<tw_candidate> {
  static constexpr const char* kName = "tw_candidate";
  static constexpr Shape kShape = {kName, sizeof(tw_candidate), {}};
  static tw_candidate defaults() {
    tw_candidate c = {};
    c.struct_bytes = sizeof c;
    return c;
  }
};

template <>
struct Version<tw_launch> {
  static constexpr const char* kName = "tw_launch";
  static constexpr Shape kShape = {kName, sizeof(tw_launch), {}};
  static tw_launch defaults() {
    tw_launch c = {};
    c.struct_bytes = sizeof c;
    return c;
  }
};

}  // namespace tilewright::c_api
