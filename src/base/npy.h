// NumPy's file format for one array (.npy), versions 1.0, 2.0 and 3.0.
#pragma once

#include "base/tensor.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tilewright {

/// Longest header that is read: six times what numpy itself accepts, and far more than kMaxRank
/// dimensions need.
inline constexpr std::size_t kMaxNpyHeaderBytes = 65535;

/// What a file says about its array.
struct NpyHeader {
  DType dtype;
  std::vector<std::int64_t> shape;
  std::size_t data_begin_bytes;  ///< where in the file the elements begin, row-major
};

/// Reads and checks the header of a file that is in memory; `source` names it in errors.
/// Format   "\x93NUMPY", major and minor version, length of the header (2 bytes in version 1, else
///          4, little-endian), a Python dict literal with the keys descr, fortran_order and shape,
///          padded with spaces and ended by a newline; the elements
/// Types    b1 i1 i2 i4 i8 u1 u2 u4 u8 f2 f4 f8 c8, with the byte order '<' or '=', or '|' for one
///          byte
/// Errors   ParseError for a malformed file or one whose size does not fit its shape; Unsupported,
///          with the numpy call that helps, for big-endian ('>') elements, Fortran order (not even
///          transposed on the way in: nothing here should cost a hidden copy), structured, object,
///          string, date and raw (V, which is how numpy writes bf16 and 8-bit floats) elements
/// Source   numpy.lib.format; the literal is parsed by a parser of its own, nothing is evaluated
NpyHeader parse_npy(std::span<const std::byte> file, std::string_view source);

/// Errors   as MappedFile, parse_npy and HostTensor
HostTensor read_npy(const std::filesystem::path& path);

/// The header that numpy.save writes before such an array (version 1.0), byte for byte.
/// Errors   Unsupported for types that numpy does not have (BF16, 8-bit floats, ...): write
///          safetensors instead, or the raw bits as U8 or U16
std::string format_npy_header(DType dtype, std::span<const std::int64_t> shape);

/// Writes contiguous host memory to a file as a whole (see AtomicFile).
/// Errors   as format_npy_header and contiguous_bytes
void write_npy(const std::filesystem::path& path, const ConstTensorView& view);

}  // namespace tilewright
