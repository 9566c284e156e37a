// The files of tests/golden/io and what is in them, as numpy and safetensors said when they made
// them (tools/golden/make_io_golden.py).
#pragma once

#include "tilewright/tensor.h"

#include "base/file.h"
#include "base/json.h"
#include "base/json_node.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

namespace tilewright {

struct GoldenTensor {
  DType dtype;
  std::vector<std::int64_t> shape;
  std::vector<std::byte> bytes;
};

inline std::filesystem::path golden_io_path(const std::string& name) {
  return std::filesystem::path(TILEWRIGHT_TEST_DATA) / "io" / name;
}

inline std::vector<std::byte> bytes_of_file(const std::filesystem::path& path) {
  const MappedFile file(path);
  return {file.bytes().begin(), file.bytes().end()};
}

inline GoldenTensor parse_golden_tensor(const JsonNode& node) {
  GoldenTensor tensor;
  tensor.dtype = dtype_from_string(node.at("dtype").as_string()).value();
  for (const JsonNode& dim : node.at("shape").elems()) tensor.shape.push_back(dim.as_int());
  const std::string& hex = node.at("bytes").as_string();
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    tensor.bytes.push_back(static_cast<std::byte>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  }
  return tensor;
}

/// File name to its array.
inline std::map<std::string, GoldenTensor> golden_npy() {
  const nlohmann::json json = read_json(golden_io_path("expected.json"));
  std::map<std::string, GoldenTensor> arrays;
  for (const auto& [name, node] : JsonNode(json, "expected.json").at("npy").members()) {
    arrays.emplace(name, parse_golden_tensor(node));
  }
  return arrays;
}

/// Tensor name to tensor, of a safetensors file or of the folder "model".
inline std::map<std::string, GoldenTensor> golden_safetensors(const std::string& file) {
  const nlohmann::json json = read_json(golden_io_path("expected.json"));
  std::map<std::string, GoldenTensor> tensors;
  const JsonNode root(json, "expected.json");
  for (const auto& [name, node] : root.at("safetensors").at(file).members()) {
    tensors.emplace(name, parse_golden_tensor(node));
  }
  return tensors;
}

}  // namespace tilewright
