// Drawings as text: a table with coloured cells for a terminal, or a plain one.
#pragma once

#include "layout/draw.h"

#include <string>

namespace tilewright {

/// How much colour the terminal takes.
enum class TextColor { kNone, k256, kTrue };

std::string to_text(const Drawing& drawing, TextColor color);

}  // namespace tilewright
