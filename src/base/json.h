// JSON text to values and back: bounded, strict, with errors that show the place.
#pragma once

#include <cstddef>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace tilewright {

/// What a JSON text may ask for. Together they bound the memory that parsing takes to about 100
/// bytes per value plus a small multiple of the text.
struct JsonLimits {
  std::size_t max_bytes = 100'000'000;
  std::size_t max_depth = 100;  ///< arrays and objects inside each other
  std::size_t max_values = 5'000'000;
};

/// The value of a JSON text (RFC 8259, UTF-8). Stricter than nlohmann::json::parse: an object may
/// not have two members of one name, and the limits hold.
/// Errors   ParseError of the form "source:line:column: error: ...", followed by the line and a
///          caret; columns count bytes
nlohmann::json parse_json(std::string_view text, std::string_view source,
                          const JsonLimits& limits = {});

/// parse_json of a file. Errors also as MappedFile.
nlohmann::json read_json(const std::filesystem::path& path, const JsonLimits& limits = {});

/// What becomes of bytes that are not UTF-8. Names of files may have any bytes, JSON may not.
enum class JsonStrings {
  kRefuseInvalid,
  kReplaceInvalid,  ///< U+FFFD for each; for what people read
};

/// The text that read_json reads back to the same value: members by name, indented by two spaces,
/// numbers as short as they can be, one newline at the end. Equal values give equal text.
/// Errors   InvalidArgument for what JSON cannot say (NaN, infinity, strings that are not UTF-8)
///          and for values nested more than 100 deep
std::string format_json(const nlohmann::json& value,
                        JsonStrings strings = JsonStrings::kRefuseInvalid);

/// Writes format_json to a file as a whole (see AtomicFile).
void write_json(const std::filesystem::path& path, const nlohmann::json& value);

}  // namespace tilewright
