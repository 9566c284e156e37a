// Safetensors files in memory, right or wrong.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace tilewright {

/// A file with that length of header, header and data, whatever they are.
inline std::string safetensors_file(std::uint64_t header_length, std::string_view header,
                                    std::string_view data) {
  std::string file(8, '\0');
  std::memcpy(file.data(), &header_length, 8);
  return file.append(header).append(data);
}

/// The same with the right length.
inline std::string safetensors_file(std::string_view header, std::string_view data) {
  return safetensors_file(header.size(), header, data);
}

}  // namespace tilewright
