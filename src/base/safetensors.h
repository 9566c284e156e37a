// Reading safetensors files: one file, mapped, checked as a whole before any tensor is handed out.
#pragma once

#include "base/file.h"
#include "base/tensor.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tilewright {

/// Longest header that is read or written; the limit of the reference implementation.
inline constexpr std::uint64_t kMaxSafetensorsHeaderBytes = 100'000'000;

/// The one name in a header that is not a tensor's.
inline constexpr std::string_view kSafetensorsMetadataName = "__metadata__";

/// The free text of a file, key to value.
using SafetensorsMetadata = std::map<std::string, std::string>;

/// One tensor of a file. Its bytes are [begin_bytes, end_bytes) of the data that follow the header.
struct SafetensorsEntry {
  std::string name;
  DType dtype;
  std::vector<std::int64_t> shape;  ///< counts elements, also for types of fewer than 8 bits
  std::uint64_t begin_bytes;
  std::uint64_t end_bytes;
};

/// What the header of a file says, and it is true: the tensors fill the data without gap or
/// overlap.
struct SafetensorsHeader {
  SafetensorsMetadata metadata;
  std::vector<SafetensorsEntry> entries;  ///< in the order of the data; by name where that ties
  std::uint64_t data_begin_bytes;         ///< where in the file the data begin
};

/// Reads and checks the header of a file that is in memory; `source` names it in errors.
/// Format   8 bytes: length of the header, little-endian; the header: a JSON object that maps a
///          name to {"dtype", "shape", "data_offsets": [begin, end]} and, if it likes,
///          "__metadata__" to an object of strings, padded with spaces; the data, row-major and
///          little-endian
/// Errors   ParseError: lengths or offsets outside the file, gaps, overlaps, bytes of no tensor,
///          sizes that are not those of shape and type, unknown types, members of the same name,
///          more than kMaxRank dimensions, products of dimensions that are not representable
/// Source   safetensors format description, README of huggingface/safetensors
SafetensorsHeader parse_safetensors(std::span<const std::byte> file, std::string_view source);

/// A mapped file; tensors are views into it, nothing is copied.
class SafetensorsFile {
 public:
  /// Errors   as MappedFile and parse_safetensors
  explicit SafetensorsFile(const std::filesystem::path& path);

  const SafetensorsMetadata& metadata() const noexcept { return header_.metadata; }
  const std::vector<SafetensorsEntry>& entries() const noexcept { return header_.entries; }
  bool contains(std::string_view name) const { return index_.contains(name); }

  /// A view that is valid as long as this object.
  /// Note: the format aligns nothing. A HostTensor made of the view is aligned.
  /// Errors   InvalidArgument if there is no such tensor; the message lists similar names
  ConstTensorView tensor(std::string_view name) const;

 private:
  std::string source_;
  MappedFile file_;
  SafetensorsHeader header_;
  std::map<std::string_view, std::size_t, std::less<>> index_;  // name -> entry
};

}  // namespace tilewright
