// A tw_plan, and what every tw_X_plan() does alike.
#pragma once

#include "tilewright/plan.h"
#include "tilewright/tilewright.h"

#include "ops/c_api/convert/versions.h"
#include "ops/c_api/device.h"
#include "ops/c_api/status.h"

#include <cstdint>
#include <functional>
#include <string>
#include <tuple>
#include <vector>

struct tw_plan {
  tw_status status = TW_OK;
  tilewright::Plan plan = {};  // without kernel and launches if there are reasons
  std::vector<tilewright::Reason> reasons = {};
  std::string text = {};
};

namespace tilewright::c_api {

/// A caller's struct, and what messages call it.
template <class C>
struct Given {
  const C* given;
  const char* name;
};

/// What plan_X() takes for a parameter of tw_X_plan(). Wrong members are noted.
template <class C>
auto input(const char* function, std::vector<Reason>& refused, const Given<C>& given) {
  return to_cpp(given.given, Where{function, given.name}, refused);
}
inline std::int64_t input(const char*, std::vector<Reason>&, std::int64_t number) {
  return number;
}
inline bool input(const char*, std::vector<Reason>&, std::int32_t flag) {
  return flag != 0;
}

/// *plan becomes what `make` returns, or why it does not, with what was refused before.
tw_status make_plan(std::vector<Reason>& refused, tw_plan** plan,
                    const std::function<Plan()>& make);

/// A tw_X_plan: `make` gets the device and the parameters in C++.
template <class Make, class... Inputs>
tw_status plan(const char* function, const tw_device* device, tw_plan** plan, const Make& make,
               const Inputs&... inputs) {
  tw_status status = TW_OK;
  const tw_status failed = guarded([&] {
    require_address(plan, function, "plan");
    *plan = nullptr;
    require_address(device, function, "device");
    std::vector<Reason> refused;
    const std::tuple parameters{input(function, refused, inputs)...};
    status = make_plan(refused, plan, [&]() -> Plan {
      return std::apply([&](const auto&... given) { return make(device->device, given...); },
                        parameters);
    });
  });
  return failed != TW_OK ? failed : status;
}

}  // namespace tilewright::c_api
