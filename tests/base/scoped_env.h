// An environment variable for the time of one test.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>

namespace tilewright {

/// Sets a variable, or removes it if the value is null, and restores what there was.
class ScopedEnv {
 public:
  ScopedEnv(const char* name, const char* value) : name_(name) {
    if (const char* old = std::getenv(name)) old_value_ = old;
    set(value);
  }
  ~ScopedEnv() { set(old_value_ ? old_value_->c_str() : nullptr); }
  ScopedEnv(const ScopedEnv&) = delete;
  ScopedEnv& operator=(const ScopedEnv&) = delete;

 private:
  void set(const char* value) {
    if (value != nullptr) {
      ::setenv(name_.c_str(), value, 1);
    } else {
      ::unsetenv(name_.c_str());
    }
  }

  std::string name_;
  std::optional<std::string> old_value_;
};

}  // namespace tilewright
