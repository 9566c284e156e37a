#include "sim/driver/objects/module.h"

#include <algorithm>
#include <cstring>

namespace tilewright::sim {

namespace {

std::size_t size_in(void* const* value) {
  return value == nullptr ? 0 : reinterpret_cast<std::uintptr_t>(*value);
}

}  // namespace

JitOptions::JitOptions(unsigned count, const abi::CUjit_option* keys, void** values) {
  expect(count == 0 || (keys != nullptr && values != nullptr));
  for (unsigned i = 0; i < count; ++i) {
    switch (keys[i]) {
      case abi::CUjit_option::kInfoLogBuffer:
        info_log_.text = static_cast<char*>(values[i]);
        break;
      case abi::CUjit_option::kInfoLogBufferSizeBytes:
        info_log_.size = &values[i];
        break;
      case abi::CUjit_option::kErrorLogBuffer:
        error_log_.text = static_cast<char*>(values[i]);
        break;
      case abi::CUjit_option::kErrorLogBufferSizeBytes:
        error_log_.size = &values[i];
        break;
      default:
        break;  // about code that a GPU would run
    }
  }
  for (const Buffer* log : {&info_log_, &error_log_}) {
    if (log->text != nullptr && size_in(log->size) > 0) log->text[0] = '\0';
  }
}

void JitOptions::write(std::string_view text, const Buffer& log, std::size_t& written) {
  const std::size_t size = size_in(log.size);
  if (log.text == nullptr || written + 1 >= size) return;
  const std::size_t length = std::min(text.size(), size - 1 - written);
  std::memcpy(log.text + written, text.data(), length);
  written += length;
  log.text[written] = '\0';
}

void JitOptions::finish() const {
  const auto give = [](const Buffer& log, std::size_t written) {
    if (log.size != nullptr) *log.size = reinterpret_cast<void*>(written);
  };
  give(info_log_, info_bytes_);
  give(error_log_, error_bytes_);
}

}  // namespace tilewright::sim
