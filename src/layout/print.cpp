#include "layout/print.h"

#include <fmt/format.h>

namespace tilewright {

namespace {

// Writes the nesting of a profile, each leaf by a callback.
template <class WriteLeaf>
void write_tree(std::string& out, const Profile& profile, int node, WriteLeaf write_leaf,
                const char* brackets = "()") {
  if (profile.is_leaf(node)) {
    write_leaf(out, profile.first_leaf(node));
    return;
  }
  out += brackets[0];
  for (int k = 0; k < profile.rank_at(node); ++k) {
    if (k > 0) out += ',';
    write_tree(out, profile, profile.child(node, k), write_leaf, brackets);
  }
  out += brackets[1];
}

void write_stride(std::string& out, std::int64_t stride, Basis basis) {
  out += std::to_string(stride);
  for (int level = basis.depth(); level-- > 0;) out += fmt::format("@{}", basis.index(level));
}

}  // namespace

std::string to_string(const IntTuple& tuple) {
  std::string out;
  write_tree(out, tuple.profile, 0, [&](std::string& text, int i) {
    text += tuple.value[i] == kFree ? "_" : std::to_string(tuple.value[i]);
  });
  return out;
}

std::string to_string(const Layout& layout) {
  std::string out = to_string(shape(layout)) + ':';
  write_tree(out, layout.profile, 0, [&](std::string& text, int i) {
    write_stride(text, layout.stride[i], layout.basis[i]);
  });
  return out;
}

std::string to_string(const Swizzle& swizzle) {
  return fmt::format("Sw<{},{},{}>", swizzle.bits, swizzle.base, swizzle.shift);
}

std::string to_string(const ComposedLayout& layout) {
  const bool at_origin = layout.offset == IntTuple(0);
  if (layout.swizzle.is_identity()) {
    return at_origin ? to_string(layout.layout)
                     : fmt::format("{} o {}", to_string(layout.offset), to_string(layout.layout));
  }
  return fmt::format("{} o {} o {}", to_string(layout.swizzle), to_string(layout.offset),
                     to_string(layout.layout));
}

std::string to_string(const Tiler& tiler) {
  std::string out;
  // Angle brackets tell a tuple of layouts from the layout of a tuple.
  write_tree(
      out, tiler.profile, 0,
      [&](std::string& text, int i) {
        text += tiler.is_free[i] ? "_" : to_string(tiler.layout[i]);
      },
      "<>");
  return out;
}

}  // namespace tilewright
