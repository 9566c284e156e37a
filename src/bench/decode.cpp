#include "bench/decode.h"

#include "base/error.h"
#include "base/progress.h"
#include "bench/ladder.h"
#include "verify/decode_device.h"
#include "verify/device_facts.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace tilewright::cli {

namespace {

using nlohmann::json;

constexpr DecodeModel kModels[] = {{"small", 8, 2, 64},       {"llama-8b", 32, 8, 128},
                                   {"qwen-30b", 32, 4, 128},  {"mha-7b", 32, 32, 128},
                                   {"mqa-16", 16, 1, 128},    {"gemma-d256", 16, 8, 256},
                                   {"gpt-oss-d64", 64, 8, 64}};
constexpr double kMostBytes = 24e9;  // beyond, a problem is left out

AttentionDecodeProblem decode_problem_of(const DecodeModel& model, const std::string& kv,
                                         std::int64_t batch, std::int64_t q_len) {
  const DType dtype = kv == "f16" ? DType::kF16 : DType::kBF16;
  return {.dtype = dtype,
          .kv_dtype = decode_dtype(kv),
          .batch = batch,
          .q_len = q_len,
          .heads = model.heads,
          .kv_heads = model.kv_heads,
          .head_dim = model.head_dim,
          .has_lse = true};
}

json decode_sample(const Device& device, const DecodeModel& model, const DecodeData& data,
                   std::int64_t keys, int samples) {
  const AttentionDecodeProblem& p = data.problem;
  const AttentionDecode decode(device, p);
  DecodeOperands operands(device, data, decode_cold_sets(device, data));
  operands.prepare(decode.plan());
  operands.run(decode, 0);
  operands.synchronize();
  json log = {{"source", "tilewright"},
              {"model", model.name},
              {"problem",
               {{"batch", p.batch},
                {"q_len", p.q_len},
                {"heads", p.heads},
                {"kv_heads", p.kv_heads},
                {"head_dim", p.head_dim},
                {"keys", keys},
                {"page", p.page_size},
                {"kv", to_string(p.kv_dtype)}}},
              {"kernel", decode.plan().kernel},
              {"plan", decode.plan().to_string()},
              {"bytes", data.bytes()},
              {"flops", data.flops()},
              {"sets", operands.sets()},
              {"error", operands.check(1)}};
  if (!device.is_simulated()) operands.measure(decode, samples).write(log);
  return log;
}

}  // namespace

DType decode_dtype(const std::string& name) {
  return name == "e4m3" ? DType::kF8_E4M3 : name == "f16" ? DType::kF16 : DType::kBF16;
}

DecodeModel find_decode_model(const std::string& name) {
  for (const DecodeModel& model : kModels)
    if (name == model.name) return model;
  fail(ErrorKind::kInvalidArgument, "bench decode: model = {}; expected one of {}", name,
       fmt::join(decode_model_names(), ", "));
}

std::vector<std::string> decode_model_names() {
  std::vector<std::string> names;
  for (const DecodeModel& model : kModels) names.emplace_back(model.name);
  return names;
}

json run_decode_sweep(const Device& device, const DecodeSweep& sweep, const std::string& command) {
  json log = ladder_header(device, command);
  log["kind"] = "decode";
  log["tool"] = std::string("tilewright bench decode ") + TILEWRIGHT_VERSION;
  log["cache"] = device.is_simulated() ? "simulated: no times"
                                       : "cold: copies of the caches take turns in a graph";
  for (const char* const key : {"ceiling_tflops", "ceiling"}) log.erase(key);
  log["roofs"] = {{"read_bytes_per_s", kDecodeReadBytesPerS},
                  {"peak_bytes_per_s", kDecodePeakBytesPerS}};
  log["clocks_before"] = read_clocks(device);
  json samples = json::array();
  Progress progress(
      stderr, "bench decode",
      static_cast<std::int64_t>(sweep.models.size() * sweep.kvs.size() * sweep.batches.size() *
                                sweep.keys.size() * sweep.pages.size() * sweep.q_lens.size()),
      "problems");
  for (const DecodeModel& model : sweep.models) {
    for (const std::string& kv : sweep.kvs) {
      for (const std::int64_t batch : sweep.batches) {
        for (const std::int64_t keys : sweep.keys) {
          for (const std::int64_t page : sweep.pages) {
            for (const std::int64_t q_len : sweep.q_lens) {
              progress.add();
              auto p = decode_problem_of(model, kv, batch, q_len);
              p.kernel = sweep.kernel;
              const double bytes = 4.0 * static_cast<double>(batch * keys) *
                                   static_cast<double>(model.kv_heads * model.head_dim);
              if (bytes > kMostBytes) continue;
              const DecodeData data = draw_decode(p, keys, sweep.lengths, page);
              samples.push_back(decode_sample(device, model, data, keys, sweep.samples));
            }
          }
        }
      }
    }
  }
  progress.finish();
  log["samples"] = std::move(samples);
  log["clocks_after"] = read_clocks(device);
  return log;
}

bool is_decode_log_correct(const json& log) {
  for (const json& sample : log.at("samples"))
    if (!sample.at("error").value("ok", false)) return false;
  return !log.at("samples").empty();
}

}  // namespace tilewright::cli
