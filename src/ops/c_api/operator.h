// What the C functions of every operator do alike: structs of the caller that carry a version,
// objects made behind guarded(), and plans read through a handle that may be null.
#pragma once

#include "base/error.h"
#include "ops/c_api/status.h"

#include <cstddef>
#include <string>
#include <utility>

namespace tilewright::c_api {

/// An operator, and the text of its plan, which a caller may read for as long as it lives.
template <class Op>
struct Planned {
  explicit Planned(Op made) : op(std::move(made)), plan_text(op.plan().to_string()) {}

  Op op;
  std::string plan_text;
};

/// A tw_X_init: the defaults, with the size that tells checked() whose version filled them in.
template <class T>
void initialise(T* given, T defaults = {}) noexcept {
  if (given == nullptr) return;
  defaults.struct_bytes = sizeof(T);
  *given = defaults;
}

/// A struct that `init` has filled in: not null, and of this version of the library.
template <class T>
const T& checked(const T* given, const char* function, const char* name, const char* init) {
  require_address(given, function, name);
  require(given->struct_bytes == sizeof(T), ErrorKind::kInvalidArgument,
          "{}: {}.struct_bytes = {}; expected {}. Fill it with {}() of the same version of the "
          "library.",
          function, name, given->struct_bytes, sizeof(T), init);
  return *given;
}

/// A tw_X_create: *handle becomes a new Handle of what `make` returns; null if that fails.
template <class Handle, class Make>
tw_status create(const char* function, const char* name, Handle** handle, const Make& make) {
  return guarded([&] {
    require_address(handle, function, name);
    *handle = nullptr;
    *handle = new Handle{make()};
  });
}

/// A tw_X_run: `body` with the operator and its arguments once both are there.
template <class Op, class Arguments, class Body>
tw_status run(const char* function, const char* name, const Planned<Op>* planned,
              const Arguments* arguments, const Body& body) {
  return guarded([&] {
    require_address(planned, function, name);
    require_address(arguments, function, "arguments");
    body(planned->op, *arguments);
  });
}

template <class Op>
const char* plan_text(const Planned<Op>* planned) {
  return planned == nullptr ? "" : planned->plan_text.c_str();
}

template <class Op>
const char* kernel_name(const Planned<Op>* planned) {
  return planned == nullptr ? "" : planned->op.plan().kernel.c_str();
}

/// A number of the plan: of_plan(linear, &LinearPlan::flops).
template <class Op, class Plan, class Number>
Number of_plan(const Planned<Op>* planned, Number Plan::*number) {
  return planned == nullptr ? Number{} : planned->op.plan().*number;
}

}  // namespace tilewright::c_api
