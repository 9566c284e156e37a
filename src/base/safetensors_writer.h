// Writing safetensors files, also ones that do not fit into memory.
#pragma once

#include "base/file.h"
#include "base/safetensors.h"
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

/// A tensor that is going to be written.
struct SafetensorsSpec {
  std::string name;
  DType dtype;
  std::vector<std::int64_t> shape;
};

/// Writes one file. The tensors have to be known at the start, because the header comes first;
/// their bytes can then come in pieces and the tensors in any order. The file appears under its
/// name when finish() returns, and only then (see AtomicFile).
///
///     SafetensorsWriter writer("out.safetensors", {{"a", DType::kF32, {2, 3}}});
///     writer.append("a", first_row_bytes);
///     writer.append("a", second_row_bytes);
///     writer.finish();
///
/// Layout   as the reference implementation: wide types first, then by name; the header is padded
///          so that the data begin at a multiple of 8 bytes
/// Errors   all functions: InvalidArgument naming the tensor, and those of AtomicFile
/// Thread   one at a time
class SafetensorsWriter {
 public:
  /// Errors   two tensors of one name or one named "__metadata__"; text that is not UTF-8; sizes as
  ///          checked_num_bytes; a header of more than kMaxSafetensorsHeaderBytes
  SafetensorsWriter(const std::filesystem::path& path, std::vector<SafetensorsSpec> specs,
                    const SafetensorsMetadata& metadata = {});

  /// The next bytes of a tensor, row-major and little-endian.
  /// Errors   no such tensor; more bytes than it has
  void append(std::string_view name, std::span<const std::byte> bytes);

  /// Errors   a tensor is not complete
  void finish();

 private:
  struct Slot {
    std::uint64_t next_bytes;  // where in the file the next bytes go
    std::uint64_t end_bytes;
  };

  std::string source_;
  AtomicFile file_;
  std::map<std::string, Slot, std::less<>> slots_;
};

/// Writes tensors in host memory to a file.
/// Errors   as SafetensorsWriter; Unsupported if a view is not contiguous
void write_safetensors(const std::filesystem::path& path,
                       const std::map<std::string, ConstTensorView>& tensors,
                       const SafetensorsMetadata& metadata = {});

}  // namespace tilewright
