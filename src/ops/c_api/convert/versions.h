// Structs of callers that were compiled with an older or a newer header: each begins with its size,
// members are only ever added at its end, and structs inside of it carry their own size.
#pragma once

#include "tilewright/reason.h"
#include "tilewright/tensor.h"

#include "base/error.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

namespace tilewright::c_api {

struct Shape;

/// A struct inside of another one.
struct Inner {
  std::size_t offset;
  const Shape* shape;
  const char* name;
};

/// A struct of this version of the library.
struct Shape {
  const char* name;
  std::size_t bytes;
  std::span<const Inner> inner;
};

/// Shape, defaults and C++ type of a struct; convert.h has one for each.
template <class C>
struct Version;

/// What an error message calls a value: "tw_attention_create: problem.q_strides".
struct Where {
  const char* function;
  const char* name;
  const Where* outer = nullptr;
  std::vector<Reason>* refused = nullptr;  ///< where wrong members are noted; null: they throw

  Where in(const char* inner) const noexcept { return {function, inner, this, refused}; }
  std::string path() const;
  /// The path of a member below the outermost struct: "fp8.scales".
  std::string field(const char* member) const;
};

/// Copies the members that the caller's struct has into `ours`, whose other members stay.
/// Errors   InvalidArgument if a size makes no sense, or if a member that only a newer version
///          knows is not 0
void read_struct(const Shape& shape, const void* given, void* ours, const Where& where);

/// Copies `ours` into the members that the caller's struct has. Its sizes are filled in; what only
/// a newer version knows becomes 0.
/// Errors   InvalidArgument if a size makes no sense
void write_struct(const Shape& shape, const void* ours, void* given, const Where& where);

/// InvalidArgument unless the address is set: "tw_attention_run: arguments is NULL".
void require_address(const void* address, const char* function, const char* name);

/// A caller's struct as one of this version.
template <class C>
C accept(const C* given, const Where& where) {
  require_address(given, where.function, where.name);
  C ours = Version<C>::defaults();
  read_struct(Version<C>::kShape, given, &ours, where);
  return ours;
}

/// The problem or the arguments that a caller's struct describes. Members that no value of C++
/// stands for are noted.
template <class C>
auto to_cpp(const C* given, const Where& where, std::vector<Reason>& refused) {
  typename Version<C>::Cpp p = {};
  Where noting = where;
  noting.refused = &refused;
  assign(accept(given, where), p, noting);
  return p;
}

/// InvalidArgument with all of them, if there are any.
void require_none(const std::vector<Reason>& refused, const Where& where);

/// Likewise, and they are refused.
template <class C>
auto to_cpp(const C* given, const Where& where) {
  std::vector<Reason> refused;
  auto p = to_cpp(given, where, refused);
  require_none(refused, where);
  return p;
}

/// One value that an enumeration may have.
template <class Enum>
struct Choice {
  std::int32_t value;
  Enum means;
  const char* name;
};

/// "tw_moe_create: problem.score = 7; expected TW_MOE_SCORE_SOFTMAX = 0 or ..."
void refuse_choice(std::int32_t value, std::span<const Choice<int>> choices, const Where& where,
                   const char* member);

template <class Enum>
Enum choose(std::int32_t value, std::initializer_list<Choice<Enum>> choices, const Where& where,
            const char* member) {
  std::array<Choice<int>, 8> listed = {};
  std::size_t count = 0;
  for (const Choice<Enum>& choice : choices) {
    if (choice.value == value) return choice.means;
    listed.at(count++) = {choice.value, 0, choice.name};
  }
  refuse_choice(value, std::span(listed).first(count), where, member);
  return choices.begin()->means;  // it was noted
}

}  // namespace tilewright::c_api
