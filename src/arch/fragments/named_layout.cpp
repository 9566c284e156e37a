#include "arch/fragments/named_layout.h"

#include "base/error.h"
#include "base/similar.h"
#include "layout/cases.h"
#include "layout/parse.h"
#include "layout/print.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <string_view>

namespace tilewright::arch {

using nlohmann::json;

NamedLayout read_layout(const std::string& text) {
  if (const NamedAtom* atom = find_atom(text)) return {atom->layout, atom};
  // Names start with a letter, and only Sw<..> does so among layouts.
  const bool looks_like_a_name = !text.empty() &&
                                 std::isalpha(static_cast<unsigned char>(text[0])) != 0 &&
                                 !text.starts_with("Sw");
  if (looks_like_a_name) {
    std::vector<std::string_view> names;
    for (const NamedAtom& atom : named_atoms()) names.push_back(atom.name);
    fail(ErrorKind::kInvalidArgument,
         "no layout is named {} ({}); `tilewright layout atoms` lists all", text,
         similar_names(text, names));
  }
  return {parse_composed_layout(text), nullptr};
}

const NamedAtom& read_atom(const std::string& name) {
  const NamedLayout named = read_layout(name);
  require(named.atom != nullptr, ErrorKind::kInvalidArgument,
          "{} is a layout, not a name; expected a name that `tilewright layout atoms` lists", name);
  return *named.atom;
}

std::vector<std::string> resolve_names(std::vector<std::string> words) {
  for (std::string& word : words) {
    if (const NamedAtom* atom = find_atom(word)) word = to_string(atom->layout);
  }
  return words;
}

json describe_layout(const ComposedLayout& layout, int limit) {
  json out = to_json(layout.layout);
  out["text"] = to_string(layout);
  out["rank"] = rank(layout);
  out["depth"] = depth(layout.layout);
  out["size"] = size(layout);
  out["swizzle"] = layout.swizzle.is_identity() ? json() : json(to_string(layout.swizzle));
  out["coalesced"] = to_string(coalesce(layout));
  if (!layout.layout.is_coordinate()) out["cosize"] = cosize(layout.layout);
  out["values"] = json::array();
  const std::int64_t count = std::min<std::int64_t>(size(layout), limit);
  for (std::int64_t i = 0; i < count; ++i) {
    const IntTuple at = coordinate(layout, i);
    out["values"].push_back(is_leaf(at) ? json(at.value[0]) : json(to_string(at)));
  }
  return out;
}

json describe_atom(const NamedAtom& atom) {
  return {{"name", atom.name},
          {"family", atom.family},
          {"kind", to_string(atom.kind)},
          {"layout", to_string(atom.layout)},
          {"element_bits", atom.element_bits},
          {"summary", atom.summary}};
}

Drawing draw_layout(const NamedLayout& named, const DrawnAs& as) {
  const bool as_it_is = as.kind.empty() || as.kind == "auto";
  if (named.atom != nullptr && as_it_is) return draw_atom(*named.atom, as.window);
  const ComposedLayout& layout = named.layout;
  if (as.kind == "tv") {
    const bool has_tile = as.tile_rows > 0 && as.tile_columns > 0;
    return draw_thread_values(layout.layout, has_tile ? as.tile_rows : 1,
                              has_tile ? as.tile_columns : cosize(layout.layout), as.window);
  }
  if (as.kind == "memory") {
    MemoryView view;
    if (as.element_bits > 0) view.element_bits = as.element_bits;
    view.row_name = "i";
    view.column_name = "j";
    view.color_mode = 1;
    return draw_memory(layout, view, as.window);
  }
  if (as.kind == "tmem") {
    const int bits = as.element_bits > 0 ? as.element_bits : 32;
    return draw_tmem(layout.layout, {bits, 128, "i", "j", false}, as.window);
  }
  require(as_it_is || as.kind == "offsets", ErrorKind::kInvalidArgument,
          "a layout cannot be drawn as \"{}\"; expected offsets, tv, memory or tmem", as.kind);
  return draw_offsets(layout, as.window, as.element_bits);
}

}  // namespace tilewright::arch
