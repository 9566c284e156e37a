#include "sim/driver/objects/call.h"

#include "base/error.h"
#include "sim/driver/objects/state.h"

#include <atomic>
#include <cstdio>
#include <mutex>
#include <new>
#include <string>
#include <utility>

namespace tilewright::sim {

namespace {

std::atomic<bool> g_is_quiet = false;
std::mutex g_messages_mutex;

/// Never destroyed, as the driver.
std::string& kept_messages() {
  static std::string& messages = *new std::string;
  return messages;
}

CUresult result_of(ErrorKind kind) noexcept {
  switch (kind) {
    case ErrorKind::kInvalidArgument:
      return CUresult::kInvalidValue;
    case ErrorKind::kUnsupported:
      return CUresult::kNotSupported;
    case ErrorKind::kOutOfMemory:
      return CUresult::kOutOfMemory;
    case ErrorKind::kParseError:
      return CUresult::kInvalidPtx;
    case ErrorKind::kDeviceError:
    case ErrorKind::kCheckFailed:
      return CUresult::kLaunchFailed;
    case ErrorKind::kInternal:
      break;
  }
  return CUresult::kUnknown;
}

}  // namespace

void refuse(CUresult result) {
  throw Failure{result};
}

void be_quiet(bool quiet) noexcept {
  g_is_quiet = quiet;
}

bool is_quiet() noexcept {
  return g_is_quiet;
}

bool keep_message(std::string_view text) {
  constexpr std::size_t kMostBytes = 1 << 20;  // nothing may ever take them
  if (!g_is_quiet) return false;
  const std::lock_guard lock(g_messages_mutex);
  std::string& messages = kept_messages();
  if (messages.size() < kMostBytes) messages += text;
  if (!messages.ends_with('\n')) messages += '\n';
  return true;
}

std::string take_messages() {
  const std::lock_guard lock(g_messages_mutex);
  return std::exchange(kept_messages(), {});
}

void say(std::string_view text) noexcept try {
  if (keep_message(text)) return;
  const bool has_prefix = text.starts_with("sim: ");
  const bool has_end = text.ends_with('\n');
  std::fprintf(stderr, "%s%.*s%s", has_prefix ? "" : "sim: ", static_cast<int>(text.size()),
               text.data(), has_end ? "" : "\n");
} catch (const std::exception&) {  // no memory to keep it: nothing can be said
}

CUresult result_of_exception() noexcept {
  try {
    throw;
  } catch (const Failure& failure) {
    return failure.result;
  } catch (const Error& error) {
    // Running out of memory is an answer that programs expect and act on.
    if (error.kind() != ErrorKind::kOutOfMemory) say(error.what());
    return result_of(error.kind());
  } catch (const std::bad_alloc&) {
    return CUresult::kOutOfMemory;
  } catch (const std::exception& error) {
    say(error.what());
    return CUresult::kUnknown;
  } catch (...) {
    return CUresult::kUnknown;
  }
}

void require_initialized() {
  const Driver& driver = Driver::get();
  expect(!driver.is_closed(), CUresult::kDeinitialized);
  expect(driver.is_initialized(), CUresult::kNotInitialized);
}

}  // namespace tilewright::sim
