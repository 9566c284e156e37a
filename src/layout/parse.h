// Reading layouts from text, at run time and at compile time ("(4,8):(1,4)"_layout).
//
//   tuple   := number | '_' | '(' [tuple {',' tuple}] ')'
//   layout  := tuple ':' strides | tuple                     a shape alone is compact column-major
//   strides := like tuple, with numbers as 3, 1@0 or 1@0@1   (coordinate layouts)
//   composed:= ['Sw<' B ',' M ',' S '>' 'o'] [number 'o'] layout
//   tiler   := '<' tiler {',' tiler} '>' | '[' ... ']' | '_' | layout
#pragma once

#include "layout/swizzle.h"

#include <cstdint>
#include <string_view>

namespace tilewright {

/// Throws ParseError: the text, a caret under `at`, and what was expected there.
[[noreturn]] void bad_layout_text(std::string_view text, std::size_t at, const char* expected);

namespace detail {

// A recursive-descent parser that works in constant evaluation: no allocation, no exceptions.
class LayoutParser {
 public:
  explicit constexpr LayoutParser(std::string_view text) : text_(text) {}

  constexpr IntTuple tuple() { return tuple_at(0).numbers; }

  constexpr Layout layout() {
    const std::size_t begin = skip_space();
    const Parsed shape = tuple_at(0);
    for (int i = 0; i < shape.numbers.profile.num_leaves; ++i) {
      if (shape.numbers.value[i] < 1)
        malformed_layout_text(begin, "a shape with extents of at least 1");
    }
    if (!accept(':')) return make_layout(shape.numbers);
    const std::size_t at = skip_space();
    const Parsed stride = tuple_at(0);
    if (!congruent(shape.numbers, stride.numbers))
      malformed_layout_text(at, "a stride nested like the shape");
    for (int i = 0; i < stride.numbers.profile.num_leaves; ++i) {
      if (stride.numbers.value[i] == kFree) malformed_layout_text(at, "strides that are numbers");
    }
    Layout out = make_layout(shape.numbers, stride.numbers);
    for (int i = 0; i < out.profile.num_leaves; ++i) out.basis[i] = stride.basis[i];
    return out;
  }

  constexpr ComposedLayout composed() {
    ComposedLayout out;
    skip_space();
    if (accept('S')) {
      expect('w', "`Sw<B,M,S>`");
      out.swizzle = swizzle();
      expect('o', "`o` between the swizzle and what it is composed with");
    }
    const std::size_t begin = skip_space();
    const Parsed first = tuple_at(0);
    if (accept('o')) {
      out.offset = first.numbers;
    } else {
      at_ = begin;
    }
    out.layout = layout();
    return out;
  }

  constexpr Tiler tiler() {
    skip_space();
    const bool angle = accept('<');
    if (!angle && !accept('[')) {
      if (accept('_')) return Tiler(IntTuple(kFree));
      return Tiler(layout());
    }
    Tiler out;
    do {
      push_mode(out, tiler());
    } while (accept(','));
    expect(angle ? '>' : ']', "`,` or the closing bracket of the tiler");
    return out;
  }

  constexpr void end() {
    if (skip_space() != text_.size()) malformed_layout_text(at_, "the end of the text");
  }

 private:
  struct Parsed {
    IntTuple numbers;
    Basis basis[kMaxLeaves] = {};
    constexpr void set_leaf(int i, const Parsed& from, int j) {
      numbers.set_leaf(i, from.numbers, j);
      basis[i] = from.basis[j];
    }
  };

  [[noreturn]] void malformed_layout_text(std::size_t at, const char* expected) const {
    bad_layout_text(text_, at, expected);
  }
  constexpr std::size_t skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
    return at_;
  }
  constexpr bool accept(char c) {
    skip_space();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  constexpr void expect(char c, const char* what) {
    if (!accept(c)) malformed_layout_text(at_, what);
  }

  constexpr std::int64_t number() {
    skip_space();
    const bool negative = accept('-');
    const std::size_t begin = at_;
    std::int64_t value = 0;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') {
      if (value > kMaxNumber / 10 - 1) malformed_layout_text(begin, "a number below 2^62");
      value = value * 10 + (text_[at_++] - '0');
    }
    if (at_ == begin) malformed_layout_text(begin, "a number or `(`");
    return negative ? -value : value;
  }

  constexpr Swizzle swizzle() {
    Swizzle out;
    expect('<', "`<B,M,S>`");
    const std::size_t begin = skip_space();
    const std::int64_t bits = number();
    expect(',', "`,`");
    const std::int64_t base = number();
    expect(',', "`,`");
    const std::int64_t shift = number();
    expect('>', "`>`");
    const std::int64_t distance = shift < 0 ? -shift : shift;
    if (bits < 0 || base < 0 || bits > 30 || base > 30 || distance > 30 || distance < bits) {
      malformed_layout_text(begin, "B, M in 0..30 and B <= |S| <= 30");
    }
    out.bits = static_cast<int>(bits);
    out.base = static_cast<int>(base);
    out.shift = static_cast<int>(shift);
    return out;
  }

  constexpr Parsed tuple_at(int level) {
    if (level > kMaxParseDepth) malformed_layout_text(at_, "at most 16 levels of nesting");
    Parsed out;
    if (!accept('(')) {
      leaf(out);
      return out;
    }
    if (accept(')')) return out;
    const std::size_t begin = at_;
    do {
      const Parsed child = tuple_at(level + 1);
      append_child(out, child, begin);
    } while (accept(','));
    expect(')', "`,` or `)`");
    return out;
  }

  constexpr void leaf(Parsed& out) {
    if (accept('_')) {
      out.numbers = IntTuple(kFree);
      return;
    }
    out.numbers = IntTuple(number());
    int path[Basis::kMaxDepth] = {};
    int levels = 0;
    while (accept('@')) {
      const std::size_t begin = skip_space();
      const std::int64_t index = number();
      if (levels == Basis::kMaxDepth || index < 0 || index >= 0xfe) {
        malformed_layout_text(begin, "at most 4 basis indices, each below 254");
      }
      path[levels++] = static_cast<int>(index);
    }
    while (levels-- > 0) out.basis[0] = out.basis[0].then(path[levels]);
  }

  constexpr void append_child(Parsed& tuple, const Parsed& child, std::size_t begin) {
    const int first = tuple.numbers.profile.num_leaves;
    if (first + child.numbers.profile.num_leaves > kMaxLeaves ||
        tuple.numbers.profile.num_nodes + child.numbers.profile.num_nodes > kMaxNodes) {
      malformed_layout_text(begin, "at most 24 numbers in a tuple");
    }
    push_mode(tuple.numbers, child.numbers);
    for (int i = 0; i < child.numbers.profile.num_leaves; ++i)
      tuple.basis[first + i] = child.basis[i];
  }

  static constexpr int kMaxParseDepth = 16;
  static constexpr std::int64_t kMaxNumber = std::int64_t{1} << 62;
  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace detail

/// Each throws ParseError (with a caret) on anything that is not exactly one tuple, layout or
/// tiler.
constexpr IntTuple parse_int_tuple(std::string_view text) {
  detail::LayoutParser parser(text);
  const IntTuple out = parser.tuple();
  parser.end();
  return out;
}
constexpr Layout parse_layout(std::string_view text) {
  detail::LayoutParser parser(text);
  const Layout out = parser.layout();
  parser.end();
  return out;
}
constexpr ComposedLayout parse_composed_layout(std::string_view text) {
  detail::LayoutParser parser(text);
  const ComposedLayout out = parser.composed();
  parser.end();
  return out;
}
constexpr Tiler parse_tiler(std::string_view text) {
  detail::LayoutParser parser(text);
  const Tiler out = parser.tiler();
  parser.end();
  return out;
}

inline namespace literals {

consteval Layout operator""_layout(const char* text, std::size_t length) {
  return parse_layout({text, length});
}
consteval ComposedLayout operator""_composed(const char* text, std::size_t length) {
  return parse_composed_layout({text, length});
}
consteval IntTuple operator""_shape(const char* text, std::size_t length) {
  return parse_int_tuple({text, length});
}

}  // namespace literals

}  // namespace tilewright
