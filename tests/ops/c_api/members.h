// What the generated test of the C interface's members asks.
#pragma once

#include "ops/c_api/convert/all.h"

#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace tilewright::c_api {

/// Names of members. Five hundred places add one: inlined, they take ten times as long to compile.
class Changes : public std::vector<std::string> {
 public:
  using std::vector<std::string>::vector;
  [[gnu::noinline]] void push_back(std::string_view name) { emplace_back(name); }
};

inline void append(Changes& found, const std::string& prefix, const Changes& inside) {
  for (const std::string& name : inside) found.push_back(prefix + name);
}

/// An address that nothing else in the test has.
template <class T>
T* at(std::uintptr_t number) {
  return reinterpret_cast<T*>(0x10000 + 64 * number);
}

/// Checks of one struct. `changed` names the members in which two C++ structs differ.
template <class C, class Cpp>
class Members {
 public:
  Members(void (*init)(C*), Changes (*changed)(const Cpp&, const Cpp&))
      : init_(init), changed_(changed) {}

  void has_the_defaults() const {
    EXPECT_EQ(changed_(convert(initialised()), Cpp{}), Changes{}) << "default of C and of C++";
  }

  void sets(const char* path, void (*set)(C&), bool (*is_there)(const Cpp&)) const {
    C c = initialised();
    set(c);
    const Cpp p = convert(c);
    EXPECT_TRUE(is_there(p)) << path << " is not where it belongs";
    EXPECT_EQ(changed_(p, Cpp{}), Changes{path});
  }

  void refuses(const char* path, void (*set)(C&)) const {
    C c = initialised();
    set(c);
    try {
      convert(c);
      ADD_FAILURE() << path << " = 77 is taken";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(std::string("test: given.") + path + " = 77; "),
                std::string::npos)
          << error.what();
    }
  }

 private:
  C initialised() const {
    C c;
    std::memset(&c, 0xa5, sizeof c);
    init_(&c);
    return c;
  }
  static Cpp convert(const C& c) { return to_cpp(&c, Where{"test", "given"}); }

  void (*init_)(C*);
  Changes (*changed_)(const Cpp&, const Cpp&);
};

}  // namespace tilewright::c_api
