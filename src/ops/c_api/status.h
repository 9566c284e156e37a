// From exceptions to status codes: nothing is thrown through C.
#pragma once

#include "tilewright/error.h"
#include "tilewright/tilewright.h"

#include <functional>
#include <string>

namespace tilewright::c_api {

/// The text of the thread's last error, of a failure that is not thrown.
void note_failure(const std::string& text) noexcept;

/// Calls `body`; a failure becomes a status and the thread's last error.
tw_status guarded(const std::function<void()>& body) noexcept;

}  // namespace tilewright::c_api
