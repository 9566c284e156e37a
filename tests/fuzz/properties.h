// What holds for whatever bytes a parser is given. The seeded mutation tests of tests/base and the
// libFuzzer targets check the same; a breach is a std::logic_error.
#pragma once

#include "base/error.h"
#include "base/json.h"
#include "base/npy.h"
#include "base/safetensors.h"
#include "base/safetensors_model.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace tilewright::fuzz {

inline void check(bool holds, const char* what) {
  if (!holds) throw std::logic_error(what);
}

/// What parse() returns, or the message with which it refuses. It may do so only for reasons that
/// lie in the text, and with a message of bounded length.
template <class Parse>
auto parse_or_message(Parse&& parse, std::string& message) -> std::optional<decltype(parse())> {
  constexpr std::size_t kMaxMessageBytes = 2000;
  try {
    return parse();
  } catch (const Error& error) {
    message = error.what();
    check(error.kind() == ErrorKind::kParseError || error.kind() == ErrorKind::kUnsupported,
          "refused with a kind that blames somebody else than the file");
    check(message.starts_with("input"), "the message does not begin with the name of the input");
    check(message.size() <= kMaxMessageBytes, "the message is as long as the attacker likes");
    return std::nullopt;
  }
}

inline std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Each of the following returns whether the input was accepted.

/// We accept what nlohmann accepts, with the same value, but for the rules of our own.
inline bool check_json(std::span<const std::byte> bytes) {
  const std::string_view text = text_of(bytes);
  std::string message;
  const auto json = parse_or_message([&] { return parse_json(text, "input"); }, message);
  if (!json) {
    const bool is_own_rule = std::ranges::any_of(
        std::initializer_list<const char*>{"two members", "nested more", "values; split",
                                           "zero byte", "bytes of JSON"},
        [&](const char* rule) { return message.find(rule) != message.npos; });
    check(is_own_rule || !nlohmann::json::accept(text), "refused without a reason");
    return false;
  }
  check(*json == nlohmann::json::parse(text), "nlohmann reads another value");
  check(*json == parse_json(format_json(*json), "input"), "formatting changes the value");
  return true;
}

/// The tensors fill the data, are of the size they say, and are those that the JSON text lists.
inline bool check_safetensors(std::span<const std::byte> file) {
  std::string message;
  const auto header = parse_or_message([&] { return parse_safetensors(file, "input"); }, message);
  if (!header) return false;
  const std::string_view text = text_of(file).substr(8, header->data_begin_bytes - 8);
  const nlohmann::json json = nlohmann::json::parse(text);
  check(json.size() == header->entries.size() + json.count("__metadata__"), "tensors were lost");
  std::uint64_t position = 0;
  for (const SafetensorsEntry& entry : header->entries) {
    check(entry.begin_bytes == position, "a gap or an overlap");
    position = entry.end_bytes;
    const auto num_bytes = checked_num_bytes(entry.dtype, entry.shape, "input");
    check(entry.end_bytes - entry.begin_bytes == static_cast<std::uint64_t>(num_bytes),
          "a size that is not that of shape and type");
    const nlohmann::json& member = json.at(entry.name);
    check(member.at("dtype") == to_string(entry.dtype) && member.at("shape") == entry.shape &&
              member.at("data_offsets").at(0) == entry.begin_bytes,
          "an entry that is not that of the text");
  }
  check(header->data_begin_bytes + position == file.size(), "the tensors do not fill the file");
  return true;
}

/// The array fills the file, and its header can be written again.
inline bool check_npy(std::span<const std::byte> file) {
  std::string message;
  const auto header = parse_or_message([&] { return parse_npy(file, "input"); }, message);
  if (!header) return false;
  const auto num_bytes = checked_num_bytes(header->dtype, header->shape, "input");
  check(header->data_begin_bytes + static_cast<std::size_t>(num_bytes) == file.size(),
        "the array does not fill the file");
  std::string again = format_npy_header(header->dtype, header->shape);
  again += text_of(file).substr(header->data_begin_bytes);
  const NpyHeader reread = parse_npy(std::as_bytes(std::span(again)), "input");
  check(reread.dtype == header->dtype && reread.shape == header->shape,
        "the header changes when it is written");
  return true;
}

/// No file outside the folder is named.
inline bool check_safetensors_index(std::span<const std::byte> bytes) {
  std::string message;
  const auto index =
      parse_or_message([&] { return parse_safetensors_index(text_of(bytes), "input"); }, message);
  if (!index) return false;
  for (const auto& [name, file] : *index) {
    check(!file.empty() && file != "." && file != ".." && file.find('/') == file.npos &&
              std::strlen(file.c_str()) == file.size(),
          "a file outside the folder");
  }
  return true;
}

}  // namespace tilewright::fuzz
