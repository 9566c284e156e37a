// Suggestions for names that do not exist.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tilewright {

/// The most similar names for an error message: "similar names: "a.weight", "b.weight"". Similar
/// means that beginning and end agree. "there are no names" if there are none.
std::string similar_names(std::string_view name, std::vector<std::string_view> names);

}  // namespace tilewright
