// The tensor maps of test programs:
//
//     // map: element=u16 at=in+256 dims=64,32 strides=128 box=8,4 steps=1,1 swizzle=128B fill=nan
//     // map: element=f16 at=in dims=8,6,6,2 strides=16,96,576 lower=-1,-1 upper=-1,-1 channels=8
//            pixels=32                                                        (im2col; one line)
//
// Arrays innermost first, as in the driver's functions; steps are element strides (1 without them).
#pragma once

#include "sim/async/tensor_map.h"

#include <algorithm>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>

namespace tilewright::sim {

inline std::size_t index_of_name(std::span<const std::string_view> names, std::string_view name) {
  const auto at = std::ranges::find(names, name);
  if (at == names.end()) throw std::invalid_argument("tensor map: " + std::string(name));
  return static_cast<std::size_t>(at - names.begin());
}

template <class Array>
std::size_t parse_list(const std::string& text, Array& out) {
  std::istringstream stream(text);
  std::size_t count = 0;
  for (std::string word; std::getline(stream, word, ',');) {
    out.at(count++) = static_cast<typename Array::value_type>(std::stoll(word));
  }
  return count;
}

inline void set_map_field(TensorMapFields& map, std::string_view key, const std::string& value) {
  static constexpr std::string_view kElements[] = {
      "u8",  "u16",  "u32",     "s32",  "u64",      "s64",     "f16",      "f32",
      "f64", "bf16", "f32.ftz", "tf32", "tf32.ftz", "u4x16_8", "u4x16_16", "u6x16_16"};
  static constexpr std::string_view kSwizzles[] = {"none", "32B", "64B", "128B", "128B_32B"};
  static constexpr std::string_view kInterleaves[] = {"none", "16B", "32B"};
  if (key == "element") map.element = static_cast<TensorElement>(index_of_name(kElements, value));
  if (key == "swizzle") map.swizzle = static_cast<TensorSwizzle>(index_of_name(kSwizzles, value));
  if (key == "interleave") {
    map.interleave = static_cast<TensorInterleave>(index_of_name(kInterleaves, value));
  }
  if (key == "fill") map.fill = value == "nan" ? TensorFill::kNan : TensorFill::kZeros;
  if (key == "dims") map.rank = static_cast<std::uint32_t>(parse_list(value, map.dims));
  if (key == "strides") parse_list(value, map.strides_bytes);
  if (key == "box") parse_list(value, map.box);
  if (key == "steps") parse_list(value, map.element_strides);
  if (key == "lower") parse_list(value, map.lower_corner);
  if (key == "upper") parse_list(value, map.upper_corner);
  if (key == "channels") {
    map.mode = TensorMode::kIm2col;
    map.channels_per_pixel = static_cast<std::uint32_t>(std::stoul(value));
  }
  if (key == "pixels") map.pixels_per_column = static_cast<std::uint32_t>(std::stoul(value));
}

/// `in` and `out`: addresses of the two buffers.
inline TensorMapFields parse_map(const std::string& text, std::uint64_t in, std::uint64_t out) {
  TensorMapFields map;
  map.element_strides.fill(1);
  std::istringstream stream(text);
  for (std::string word; stream >> word;) {
    const std::size_t equals = word.find('=');
    const std::string key = word.substr(0, equals), value = word.substr(equals + 1);
    if (key == "at") {
      const std::size_t plus = value.find('+');
      map.address = value.starts_with("in") ? in : out;
      if (plus != std::string::npos) map.address += std::stoull(value.substr(plus + 1));
    } else {
      set_map_field(map, key, value);
    }
  }
  return map;
}

}  // namespace tilewright::sim
