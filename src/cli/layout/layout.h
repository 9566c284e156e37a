// How the layout commands read their arguments.
#pragma once

#include "arch/fragments/atoms.h"

#include <string>
#include <utility>

namespace tilewright::cli {

/// A layout given by the user; `atom` is set if it was given by name.
struct NamedLayout {
  ComposedLayout layout;
  const arch::NamedAtom* atom = nullptr;
};

/// The layout that a text or a name of `layout atoms` stands for.
/// Errors   ParseError; InvalidArgument for an unknown name (the message has similar ones)
NamedLayout read_layout(const std::string& text);

/// The atom of that name. Errors as read_layout.
const arch::NamedAtom& read_atom(const std::string& name);

/// "8:24" is {8, 24}, "24" is {0, 24}, "8:" is {8, -1} and "" is {0, -1}: to the end.
std::pair<int, int> read_range(const std::string& text);

}  // namespace tilewright::cli
