#include "base/safetensors.h"

#include "base/error.h"
#include "base/json.h"
#include "base/json_node.h"
#include "base/quote.h"
#include "base/similar.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

namespace tilewright {
namespace {

constexpr std::uint64_t kLengthBytes = 8;
static_assert(JsonLimits{}.max_bytes >= kMaxSafetensorsHeaderBytes);

// What to do about a header that contradicts itself.
constexpr const char* kRemedy =
    "The file is damaged or was written wrongly; fetch or write it again";

std::uint64_t load_u64_le(std::span<const std::byte> bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 8; i-- > 0;) value = value << 8 | std::to_integer<std::uint64_t>(bytes[i]);
  return value;
}

/// The JSON text of the header, once its length is known to be sane.
std::string_view header_text(std::span<const std::byte> file, std::string_view source) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  require(!text.starts_with("version https://git-lfs"), ErrorKind::kParseError,
          "{}: this is a Git LFS pointer, not the file it stands for; run `git lfs pull`", source);
  require(file.size() >= kLengthBytes, ErrorKind::kParseError,
          "{}: the file has {} bytes; a safetensors file begins with {} bytes of header length",
          source, file.size(), kLengthBytes);
  const std::uint64_t length = load_u64_le(file);
  require(length <= kMaxSafetensorsHeaderBytes, ErrorKind::kParseError,
          "{}: the header length is {} bytes; at most {} are allowed. The file is damaged or not a "
          "safetensors file",
          source, length, kMaxSafetensorsHeaderBytes);
  require(length <= file.size() - kLengthBytes, ErrorKind::kParseError,
          "{}: the header length is {} bytes, but only {} follow; the file is cut off. Fetch it "
          "again",
          source, length, file.size() - kLengthBytes);
  const std::string_view header = text.substr(kLengthBytes, length);
  require(header.starts_with('{'), ErrorKind::kParseError,
          "{}: the header begins with {}; expected a JSON object. The file is damaged or not a "
          "safetensors file",
          source, quote(header.substr(0, 1)));
  return header;
}

SafetensorsMetadata parse_metadata(const JsonNode& node) {
  SafetensorsMetadata metadata;
  for (const auto& [key, value] : node.members()) metadata.emplace(key, value.as_string());
  return metadata;
}

std::vector<std::int64_t> parse_shape(const JsonNode& node) {
  if (node.value().size() > kMaxRank) {
    node.fail("{} dimensions; at most {} are read", node.value().size(), kMaxRank);
  }
  std::vector<std::int64_t> shape;
  for (const JsonNode& dim : node.elems()) shape.push_back(dim.as_int(0));
  return shape;
}

SafetensorsEntry parse_entry(const std::string& name, const JsonNode& node) {
  const JsonNode dtype_node = node.at("dtype");
  const auto dtype = dtype_from_string(dtype_node.as_string());
  if (!dtype) {
    dtype_node.fail("unknown element type {}; expected F32, BF16, F8_E4M3, ...",
                    quote(dtype_node.as_string()));
  }
  auto shape = parse_shape(node.at("shape"));
  const JsonNode offsets = node.at("data_offsets");
  if (offsets.value().size() != 2) offsets.fail("expected [begin, end]");
  const auto begin = static_cast<std::uint64_t>(offsets.elems()[0].as_int(0));
  const auto end = static_cast<std::uint64_t>(offsets.elems()[1].as_int(0));
  if (begin > end) offsets.fail("the tensor begins at {}, behind its end {}", begin, end);
  return {name, *dtype, std::move(shape), begin, end};
}

void check_size(const SafetensorsEntry& entry, std::string_view source) {
  const auto what = fmt::format("{}: tensor {}", source, quote(entry.name));
  const std::int64_t num_bytes =
      checked_num_bytes(entry.dtype, entry.shape, what, ErrorKind::kParseError);
  const std::uint64_t span_bytes = entry.end_bytes - entry.begin_bytes;
  if (span_bytes == static_cast<std::uint64_t>(num_bytes)) return;
  fail(ErrorKind::kParseError,
       "{}: data_offsets [{}, {}] span {} bytes, but shape {} of {} takes {}. {}", what,
       entry.begin_bytes, entry.end_bytes, span_bytes, shape_text(entry.shape),
       to_string(entry.dtype), num_bytes, kRemedy);
}

/// The entries in order have to fill the data exactly.
void check_coverage(const std::vector<SafetensorsEntry>& entries, std::uint64_t data_bytes,
                    std::string_view source) {
  std::uint64_t position = 0;
  for (const SafetensorsEntry& entry : entries) {
    if (entry.begin_bytes < position) {
      fail(ErrorKind::kParseError,
           "{}: tensor {} begins at byte {} of the data and overlaps the one before, which ends at "
           "{}. {}",
           source, quote(entry.name), entry.begin_bytes, position, kRemedy);
    }
    if (entry.begin_bytes > position) {
      fail(ErrorKind::kParseError,
           "{}: bytes {} to {} of the data, before tensor {}, belong to no tensor. {}", source,
           position, entry.begin_bytes, quote(entry.name), kRemedy);
    }
    position = entry.end_bytes;
  }
  require(position <= data_bytes, ErrorKind::kParseError,
          "{}: the tensors take {} bytes, but only {} follow the header; the file is cut off. "
          "Fetch it again",
          source, position, data_bytes);
  require(position >= data_bytes, ErrorKind::kParseError,
          "{}: the tensors take {} bytes, but {} follow the header; the bytes at the end belong to "
          "no tensor. {}",
          source, position, data_bytes, kRemedy);
}

}  // namespace

SafetensorsHeader parse_safetensors(std::span<const std::byte> file, std::string_view source) {
  const std::string_view text = header_text(file, source);
  const auto header_source = fmt::format("{}: header", source);
  const nlohmann::json json = parse_json(text, header_source);
  SafetensorsHeader header;
  header.data_begin_bytes = kLengthBytes + text.size();
  for (const auto& [name, node] : JsonNode(json, header_source).members()) {
    if (name == kSafetensorsMetadataName) {
      header.metadata = parse_metadata(node);
    } else {
      header.entries.push_back(parse_entry(name, node));
      check_size(header.entries.back(), source);
    }
  }
  // Names are in order already. A tensor without bytes sorts before the one that begins with it.
  std::ranges::stable_sort(header.entries, {}, [](const SafetensorsEntry& entry) {
    return std::pair(entry.begin_bytes, entry.end_bytes);
  });
  check_coverage(header.entries, file.size() - header.data_begin_bytes, source);
  return header;
}

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path)
    : source_(path.string()), file_(path), header_(parse_safetensors(file_.bytes(), source_)) {
  for (std::size_t i = 0; i < header_.entries.size(); ++i) {
    index_.emplace(header_.entries[i].name, i);
  }
}

ConstTensorView SafetensorsFile::tensor(std::string_view name) const {
  const auto found = index_.find(name);
  if (found == index_.end()) {
    std::vector<std::string_view> names;
    for (const auto& [key, index] : index_) names.push_back(key);
    fail(ErrorKind::kInvalidArgument, "{}: there is no tensor {}; {}", source_, quote(name),
         similar_names(name, std::move(names)));
  }
  const SafetensorsEntry& entry = header_.entries[found->second];
  const void* data = file_.bytes().data() + header_.data_begin_bytes + entry.begin_bytes;
  return contiguous_view(data, entry.dtype, entry.shape);
}

}  // namespace tilewright
