#include "cli/sim/launch.h"

#include "cli/sim/tensor_map.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

namespace tilewright::cli {

namespace {

sim::Dim3 parse_dim(const JsonNode& root, std::string_view key, bool is_required) {
  constexpr std::int64_t kMost = 0x7fffffff;
  sim::Dim3 dim;
  const auto node = is_required ? std::optional(root.at(key)) : root.find(key);
  if (!node) return dim;
  if (node->value().is_number()) {
    dim.x = static_cast<std::uint32_t>(node->as_int(1, kMost));
    return dim;
  }
  const auto elems = node->elems();
  if (elems.empty() || elems.size() > 3)
    node->fail("expected 1 to 3 numbers, found {}", elems.size());
  std::uint32_t* const extents[] = {&dim.x, &dim.y, &dim.z};
  for (std::size_t i = 0; i < elems.size(); ++i) {
    *extents[i] = static_cast<std::uint32_t>(elems[i].as_int(1, kMost));
  }
  return dim;
}

void refuse_unknown(const JsonNode& node, std::initializer_list<std::string_view> known) {
  for (const auto& [key, value] : node.members()) {
    if (std::ranges::find(known, key) != known.end()) continue;
    std::string names;
    for (const std::string_view name : known) names += fmt::format(" {}", name);
    value.fail("there is no such member; expected one of:{}", names);
  }
}

/// A number of any width, decimal or a string such as "0xff".
std::uint64_t whole_bits(const JsonNode& node) {
  if (node.value().is_number_unsigned()) return node.value().get<std::uint64_t>();
  if (!node.value().is_string()) return static_cast<std::uint64_t>(node.as_int());
  const std::string& text = node.as_string();
  std::uint64_t bits = 0;
  const bool is_hex = text.starts_with("0x");
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data() + (is_hex ? 2 : 0), end, bits, is_hex ? 16 : 10);
  if (parsed.ec != std::errc() || parsed.ptr != end || text.empty()) {
    node.fail("expected a whole number or \"0x...\"");
  }
  return bits;
}

std::vector<std::byte> hex_bytes(const JsonNode& node) {
  const std::string& text = node.as_string();
  std::vector<std::byte> out;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    unsigned value = 0;
    const auto parsed = std::from_chars(text.data() + i, text.data() + i + 2, value, 16);
    if (parsed.ptr != text.data() + i + 2) break;
    out.push_back(static_cast<std::byte>(value));
  }
  if (out.size() * 2 != text.size()) node.fail("expected pairs of hex digits");
  return out;
}

std::vector<std::byte> low_bytes(std::uint64_t bits, std::size_t count) {
  std::vector<std::byte> out(count);
  std::memcpy(out.data(), &bits, count);
  return out;
}

/// The value of one parameter, or of one member of a struct, and its alignment.
struct Value {
  std::vector<std::byte> bytes;
  std::size_t align = 1;
};

const PlacedBuffer& find_buffer(const JsonNode& node, const std::vector<PlacedBuffer>& buffers) {
  const std::string& name = node.as_string();
  for (const PlacedBuffer& buffer : buffers) {
    if (buffer.spec->name == name) return buffer;
  }
  std::string names;
  for (const PlacedBuffer& buffer : buffers) names += " " + buffer.spec->name;
  node.fail("there is no buffer of that name; \"buffers\" has:{}", names.empty() ? " none" : names);
}

Value parse_value(const JsonNode& node, const std::vector<PlacedBuffer>& buffers);

/// Members one after the other, each at a multiple of its alignment, as in C.
Value parse_struct(const JsonNode& node, const std::vector<PlacedBuffer>& buffers) {
  Value out;
  for (const auto& member : node.elems()) {
    const Value value = parse_value(member, buffers);
    out.align = std::max(out.align, value.align);
    out.bytes.resize((out.bytes.size() + value.align - 1) / value.align * value.align);
    out.bytes.insert(out.bytes.end(), value.bytes.begin(), value.bytes.end());
  }
  out.bytes.resize((out.bytes.size() + out.align - 1) / out.align * out.align);
  return out;
}

Value parse_scalar(const JsonNode& node) {
  const auto members = node.members();
  if (members.size() != 1) node.fail("expected one member, such as {{\"u32\": 5}}");
  const auto& [key, value] = members.front();
  const DType dtype = parse_dtype(key, node);
  const auto bytes = static_cast<std::size_t>(bits_per_elem(dtype)) / 8;
  if (bytes == 0) value.fail("a parameter has whole bytes");
  const bool is_float = std::string_view(to_string(dtype)).find('F') != std::string_view::npos;
  const std::uint64_t bits = is_float && value.value().is_number()
                                 ? encode_elem(dtype, value.as_double())
                                 : whole_bits(value);
  return {low_bytes(bits, bytes), bytes};
}

Value parse_value(const JsonNode& node, const std::vector<PlacedBuffer>& buffers) {
  if (const auto name = node.find("buffer")) {
    refuse_unknown(node, {"buffer", "offset_bytes"});
    std::uint64_t address = find_buffer(*name, buffers).address;
    if (const auto offset = node.find("offset_bytes")) {
      address += static_cast<std::uint64_t>(offset->as_int());
    }
    return {low_bytes(address, 8), 8};
  }
  if (const auto bytes = node.find("bytes")) return {hex_bytes(*bytes), 1};
  if (const auto members = node.find("struct")) return parse_struct(*members, buffers);
  if (const auto map = node.find("tensor_map")) {
    const PlacedBuffer& buffer = find_buffer(map->at("buffer"), buffers);
    constexpr std::size_t kAlign = 64;
    return {parse_tensor_map(*map, buffer.address, buffer.spec->data), kAlign};
  }
  return parse_scalar(node);
}

}  // namespace

LaunchSpec parse_launch(const JsonNode& root) {
  refuse_unknown(root, {"kernel", "grid", "block", "cluster", "dynamic_shared_bytes", "cooperative",
                        "params", "buffers"});
  LaunchSpec spec;
  if (const auto kernel = root.find("kernel")) spec.kernel = kernel->as_string();
  spec.grid = parse_dim(root, "grid", true);
  spec.block = parse_dim(root, "block", true);
  spec.cluster = parse_dim(root, "cluster", false);
  if (const auto bytes = root.find("dynamic_shared_bytes")) {
    spec.dynamic_shared_bytes = static_cast<std::uint32_t>(bytes->as_int(0, 1 << 24));
  }
  if (const auto flag = root.find("cooperative")) spec.is_cooperative = flag->as_bool();
  if (const auto buffers = root.find("buffers")) {
    for (const auto& [name, node] : buffers->members()) {
      refuse_unknown(
          node, {"dtype", "shape", "fill", "values", "seed", "start", "step", "mean", "std", "min",
                 "max", "npy", "safetensors", "tensor", "output", "expect"});
      spec.buffers.push_back(parse_buffer(name, node));
    }
  }
  return spec;
}

std::vector<std::byte> parse_params(const JsonNode& root, const sim::KernelInfo& kernel,
                                    const std::vector<PlacedBuffer>& buffers) {
  std::vector<std::byte> out(kernel.param_bytes);
  const auto params = root.find("params");
  const auto elems = params ? params->elems() : std::vector<JsonNode>();
  const JsonNode& place = params ? *params : root;
  if (elems.size() != kernel.params.size()) {
    place.fail("expected {} parameters, which is what {} takes, found {}", kernel.params.size(),
               kernel.name, elems.size());
  }
  for (std::size_t i = 0; i < elems.size(); ++i) {
    const Value value = parse_value(elems[i], buffers);
    const sim::ParamInfo& param = kernel.params[i];
    if (value.bytes.size() != param.size_bytes) {
      elems[i].fail("has {} bytes, but parameter {} of {} has {}", value.bytes.size(), i,
                    kernel.name, param.size_bytes);
    }
    std::memcpy(out.data() + param.offset_bytes, value.bytes.data(), value.bytes.size());
  }
  return out;
}

}  // namespace tilewright::cli
