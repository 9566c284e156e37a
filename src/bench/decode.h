// The sweep over lengths of decode attention: running it, its log, and what is made of the log.
#pragma once

#include "report/terminal.h"
#include "verify/decode_data.h"

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace tilewright::cli {

/// A model's attention: "llama-8b" and others as the message of the error lists them.
struct DecodeModel {
  const char* name;
  std::int64_t heads, kv_heads, head_dim;
};
/// Errors   InvalidArgument
DecodeModel find_decode_model(const std::string& name);
std::vector<std::string> decode_model_names();

/// "bf16", "f16", "e4m3".
DType decode_dtype(const std::string& name);

struct DecodeSweep {
  std::vector<DecodeModel> models = {};
  std::vector<std::string> kvs;
  std::vector<std::int64_t> batches, keys, pages, q_lens;
  std::string kernel = "auto";
  DecodeLengths lengths = DecodeLengths::kFull;
  int samples = 15;
};

/// What the roofs go by: what an H200 reads (a copy kernel that only reads: 4.53 TB/s at best; the
/// figure that caches of any place give), and its data sheet.
inline constexpr double kDecodeReadBytesPerS = 4.2e12, kDecodePeakBytesPerS = 4.8e12;

/// Runs all; the result is the log: docs/05-benchmarks.md describes it.
nlohmann::json run_decode_sweep(const Device& device, const DecodeSweep& sweep,
                                const std::string& command);

bool is_decode_log_correct(const nlohmann::json& log);
std::string decode_table(const nlohmann::json& log, const Style& style);
/// A page that needs nothing else.
std::string decode_report(const nlohmann::json& log);
/// Plots and tables of that page, for another one that has the ladder's style.
std::string decode_figures(const nlohmann::json& log);
std::string decode_color_css();

}  // namespace tilewright::cli
