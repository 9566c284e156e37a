// How the layout commands read their arguments.
#pragma once

#include "arch/fragments/named_layout.h"

#include <string>
#include <utility>

namespace tilewright::cli {

using arch::NamedLayout;
using arch::read_atom;
using arch::read_layout;

/// "8:24" is {8, 24}, "24" is {0, 24}, "8:" is {8, -1} and "" is {0, -1}: to the end.
std::pair<int, int> read_range(const std::string& text);

}  // namespace tilewright::cli
