#include "base/safetensors_writer.h"

#include "base/error.h"
#include "base/quote.h"
#include "base/similar.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

namespace tilewright {
namespace {

constexpr std::uint64_t kAlignmentBytes = 8;

/// Places the tensors one after the other, in the order of the reference implementation.
std::vector<SafetensorsEntry> place_tensors(std::vector<SafetensorsSpec> specs,
                                            std::string_view source) {
  std::ranges::sort(specs, [](const SafetensorsSpec& a, const SafetensorsSpec& b) {
    return a.dtype != b.dtype ? a.dtype > b.dtype : a.name < b.name;
  });
  std::vector<SafetensorsEntry> entries;
  std::int64_t position = 0;
  for (SafetensorsSpec& spec : specs) {
    const auto what = fmt::format("{}: tensor {}", source, quote(spec.name));
    if (spec.name == kSafetensorsMetadataName) {
      fail(ErrorKind::kInvalidArgument, "{}: the name is reserved; rename the tensor", what);
    }
    const std::int64_t begin = position;
    if (__builtin_add_overflow(begin, checked_num_bytes(spec.dtype, spec.shape, what), &position)) {
      fail(ErrorKind::kInvalidArgument, "{}: the file would exceed 2^63 bytes; split it", what);
    }
    entries.push_back({std::move(spec.name), spec.dtype, std::move(spec.shape),
                       static_cast<std::uint64_t>(begin), static_cast<std::uint64_t>(position)});
  }
  return entries;
}

/// A string in JSON's quotes.
std::string json_string(const std::string& text, std::string_view source) {
  try {
    return nlohmann::json(text).dump();
  } catch (const nlohmann::json::exception&) {
    fail(ErrorKind::kInvalidArgument, "{}: {} is not UTF-8; names and metadata have to be", source,
         quote(text));
  }
}

/// The header as it stands in the file: length, JSON text, padding. Written by hand because the
/// text keeps the order of the data, which nlohmann::json does not.
std::string format_header(const std::vector<SafetensorsEntry>& entries,
                          const SafetensorsMetadata& metadata, std::string_view source) {
  std::vector<std::string> members;
  for (const auto& [key, value] : metadata) {
    members.push_back(json_string(key, source) + ":" + json_string(value, source));
  }
  if (!metadata.empty()) {
    members = {fmt::format("\"{}\":{{{}}}", kSafetensorsMetadataName, fmt::join(members, ","))};
  }
  for (const SafetensorsEntry& entry : entries) {
    members.push_back(fmt::format(R"({}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                                  json_string(entry.name, source), to_string(entry.dtype),
                                  fmt::join(entry.shape, ","), entry.begin_bytes, entry.end_bytes));
  }
  std::string text = fmt::format("{{{}}}", fmt::join(members, ","));
  text.resize((text.size() + kAlignmentBytes - 1) / kAlignmentBytes * kAlignmentBytes, ' ');
  require(text.size() <= kMaxSafetensorsHeaderBytes, ErrorKind::kInvalidArgument,
          "{}: the header takes {} bytes; at most {} are allowed. Split the file", source,
          text.size(), kMaxSafetensorsHeaderBytes);
  std::string length(kAlignmentBytes, '\0');
  for (std::size_t i = 0; i < length.size(); ++i) {
    length[i] = static_cast<char>(text.size() >> 8 * i);
  }
  return length + text;
}

}  // namespace

SafetensorsWriter::SafetensorsWriter(const std::filesystem::path& path,
                                     std::vector<SafetensorsSpec> specs,
                                     const SafetensorsMetadata& metadata)
    : source_(path.string()), file_(path) {
  const auto entries = place_tensors(std::move(specs), source_);
  const std::string header = format_header(entries, metadata, source_);
  file_.write_at(0, std::as_bytes(std::span(header)));
  for (const SafetensorsEntry& entry : entries) {
    const Slot slot{header.size() + entry.begin_bytes, header.size() + entry.end_bytes};
    if (!slots_.emplace(entry.name, slot).second) {
      fail(ErrorKind::kInvalidArgument, "{}: two tensors are named {}; rename one", source_,
           quote(entry.name));
    }
  }
}

void SafetensorsWriter::append(std::string_view name, std::span<const std::byte> bytes) {
  const auto found = slots_.find(name);
  if (found == slots_.end()) {
    std::vector<std::string_view> names;
    for (const auto& [key, slot] : slots_) names.push_back(key);
    fail(ErrorKind::kInvalidArgument, "{}: there is no tensor {}; {}", source_, quote(name),
         similar_names(name, std::move(names)));
  }
  Slot& slot = found->second;
  if (bytes.size() > slot.end_bytes - slot.next_bytes) {
    fail(ErrorKind::kInvalidArgument, "{}: tensor {} takes {} more bytes, but {} were given",
         source_, quote(name), slot.end_bytes - slot.next_bytes, bytes.size());
  }
  file_.write_at(slot.next_bytes, bytes);
  slot.next_bytes += bytes.size();
}

void SafetensorsWriter::finish() {
  for (const auto& [name, slot] : slots_) {
    if (slot.next_bytes == slot.end_bytes) continue;
    fail(ErrorKind::kInvalidArgument, "{}: tensor {} lacks {} bytes; append them before finish()",
         source_, quote(name), slot.end_bytes - slot.next_bytes);
  }
  file_.commit();
}

void write_safetensors(const std::filesystem::path& path,
                       const std::map<std::string, ConstTensorView>& tensors,
                       const SafetensorsMetadata& metadata) {
  std::vector<SafetensorsSpec> specs;
  for (const auto& [name, view] : tensors) specs.push_back({name, view.dtype, view.shape});
  SafetensorsWriter writer(path, std::move(specs), metadata);
  for (const auto& [name, view] : tensors) {
    writer.append(name,
                  contiguous_bytes(view, fmt::format("{}: tensor {}", path.string(), quote(name))));
  }
  writer.finish();
}

}  // namespace tilewright
