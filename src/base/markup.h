// Text in HTML, SVG and XML.
#pragma once

#include <string>
#include <string_view>

namespace tilewright {

/// The text with < > & and double quotes as entities: fit for contents and for quoted attributes.
std::string escape_markup(std::string_view text);

}  // namespace tilewright
