#include "ops/c_api/status.h"

#include "base/error.h"
#include "base/source_commit.h"

#include <exception>
#include <new>
#include <string>

namespace tilewright::c_api {

namespace {

thread_local std::string last_error;

tw_status to_status(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kInvalidArgument:
      return TW_INVALID_ARGUMENT;
    case ErrorKind::kUnsupported:
      return TW_UNSUPPORTED;
    case ErrorKind::kOutOfMemory:
      return TW_OUT_OF_MEMORY;
    case ErrorKind::kDeviceError:
      return TW_DEVICE_ERROR;
    case ErrorKind::kParseError:
      return TW_PARSE_ERROR;
    case ErrorKind::kCheckFailed:
      return TW_CHECK_FAILED;
    case ErrorKind::kInternal:
      break;
  }
  return TW_INTERNAL;
}

tw_status note(tw_status status, const char* text) noexcept {
  try {
    last_error = text;
  } catch (...) {
    last_error.clear();
  }
  return status;
}

}  // namespace

void note_failure(const std::string& text) noexcept {
  (void)note(TW_OK, text.c_str());
}

tw_status guarded(const std::function<void()>& body) noexcept {
  try {
    body();
    return TW_OK;
  } catch (const Error& error) {
    return note(to_status(error.kind()), error.what());
  } catch (const std::bad_alloc&) {
    return note(TW_OUT_OF_MEMORY, "out of host memory");
  } catch (const std::exception& error) {
    return note(TW_INTERNAL, error.what());
  } catch (...) {
    return note(TW_INTERNAL, "an exception of unknown type");
  }
}

}  // namespace tilewright::c_api

extern "C" const char* tw_last_error(void) {
  return tilewright::c_api::last_error.c_str();
}

extern "C" const char* tw_commit(void) {
  return tilewright::kBuiltCommit;
}

extern "C" const char* tw_version(void) {
  return TILEWRIGHT_VERSION;
}
