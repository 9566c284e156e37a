// From exceptions to status codes: nothing is thrown through C.
#pragma once

#include "tilewright/error.h"
#include "tilewright/tilewright.h"

#include <functional>

namespace tilewright::c_api {

/// Calls `body`; a failure becomes a status and the thread's last error.
tw_status guarded(const std::function<void()>& body) noexcept;

}  // namespace tilewright::c_api
