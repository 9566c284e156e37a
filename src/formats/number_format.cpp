#include "tilewright/format.h"

#include "base/error.h"

namespace tilewright {

const char* to_string(NumberFormat format) noexcept {
  switch (format) {
    case NumberFormat::kBf16:
      return "bf16";
    case NumberFormat::kFp8:
      return "fp8";
    case NumberFormat::kMxfp4:
      return "mxfp4";
    case NumberFormat::kNvfp4:
      return "nvfp4";
  }
  return "?";
}

std::optional<NumberFormat> number_format_from_string(std::string_view name) noexcept {
  for (const NumberFormat format :
       {NumberFormat::kBf16, NumberFormat::kFp8, NumberFormat::kMxfp4, NumberFormat::kNvfp4}) {
    if (name == to_string(format)) return format;
  }
  return std::nullopt;
}

NumberFormat parse_number_format(std::string_view name) {
  const std::optional<NumberFormat> format = number_format_from_string(name);
  require(format.has_value(), ErrorKind::kInvalidArgument,
          "there is no number format \"{}\"; expected bf16, fp8, mxfp4 or nvfp4", name);
  return *format;
}

const char* to_string(ScaleSharing sharing) noexcept {
  switch (sharing) {
    case ScaleSharing::kAuto:
      return "auto";
    case ScaleSharing::kNone:
      return "none";
    case ScaleSharing::kTensor:
      return "tensor";
    case ScaleSharing::kHead:
      return "head";
    case ScaleSharing::kRow:
      return "row";
    case ScaleSharing::kBlock:
      return "block";
  }
  return "?";
}

}  // namespace tilewright
