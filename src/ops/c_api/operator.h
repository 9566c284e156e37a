// What the C functions of every operator do alike: objects made behind guarded() of a caller's
// problem, run with a caller's arguments, and plans read through a handle that may be null.
#pragma once

#include "tilewright/block_scaled_linear.h"
#include "tilewright/linear.h"
#include "tilewright/moe.h"

#include "ops/c_api/convert/all.h"
#include "ops/c_api/device.h"
#include "ops/c_api/status.h"

#include <string>
#include <utility>

struct tw_linear_weight {
  tilewright::LinearWeight weight;
};

struct tw_block_scaled_weight {
  tilewright::BlockScaledWeight weight;
};

struct tw_moe_weights {
  tilewright::MoeWeights weights;
};

namespace tilewright::c_api {

/// An operator, and the text of its plan, which a caller may read for as long as it lives.
template <class Op>
struct Made {
  explicit Made(Op made) : op(std::move(made)) {
    if constexpr (requires { op.plan().to_string(); }) plan_text = op.plan().to_string();
  }

  Op op;
  std::string plan_text;
};

/// What an operator is made on.
inline const Device& held(const tw_device& device) noexcept {
  return device.device;
}
inline const LinearWeight& held(const tw_linear_weight& weight) noexcept {
  return weight.weight;
}
inline const BlockScaledWeight& held(const tw_block_scaled_weight& weight) noexcept {
  return weight.weight;
}
inline const MoeWeights& held(const tw_moe_weights& weights) noexcept {
  return weights.weights;
}

/// *handle becomes a new Handle of what `make` returns; null if that fails.
template <class Handle, class Make>
tw_status create(const char* function, const char* name, Handle** handle, const Make& make) {
  return guarded([&] {
    require_address(handle, function, name);
    *handle = nullptr;
    *handle = new Handle{make()};
  });
}

/// A tw_X_create with a problem. The names are those of its parameters.
template <class On, class Problem, class Handle>
tw_status create_on(const char* function, const On* on, const char* on_name, const Problem* problem,
                    const char* problem_name, Handle** handle, const char* name) {
  return create(function, name, handle, [&] {
    require_address(on, function, on_name);
    return decltype(Handle::op)(held(*on), to_cpp(problem, Where{function, problem_name}));
  });
}

/// A tw_X_create without one.
template <class On, class Handle>
tw_status create_on(const char* function, const On* on, const char* on_name, Handle** handle,
                    const char* name) {
  return create(function, name, handle, [&] {
    require_address(on, function, on_name);
    return decltype(Handle::op)(held(*on));
  });
}

/// A tw_X_run: `body` with the operator and its C++ arguments.
template <class Handle, class Arguments, class Body>
tw_status call(const char* function, const Handle* handle, const char* name,
               const Arguments* arguments, const Body& body) {
  return guarded([&] {
    require_address(handle, function, name);
    body(handle->op, to_cpp(arguments, Where{function, "arguments"}));
  });
}

template <class Op>
const char* plan_text(const Made<Op>* made) noexcept {
  return made == nullptr ? "" : made->plan_text.c_str();
}

/// A tw_X_set_defaults: the members that the caller's struct has, by the sizes in it.
template <class C>
void set_defaults(C* given) noexcept {
  if (given == nullptr) return;
  (void)guarded([&] {
    const C defaults = Version<C>::defaults();
    write_struct(Version<C>::kShape, &defaults, given, Where{"set_defaults", Version<C>::kName});
  });
}

}  // namespace tilewright::c_api
