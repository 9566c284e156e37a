// Structs that come through C.
#pragma once

#include "base/error.h"
#include "ops/c_api/status.h"

namespace tilewright::c_api {

/// A struct of the caller, if it is not null and of this version of the library.
/// Errors   InvalidArgument naming `function`, and `init`, which fills such a struct
template <class T>
const T& checked(const T* given, const char* function, const char* init) {
  require_address(given, function, "arguments");
  require(given->struct_bytes == sizeof(T), ErrorKind::kInvalidArgument,
          "{}: struct_bytes = {}; expected {}. Fill it with {}() of the same version of the "
          "library.",
          function, given->struct_bytes, sizeof(T), init);
  return *given;
}

}  // namespace tilewright::c_api
