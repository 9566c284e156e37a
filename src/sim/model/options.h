// How a simulation runs: what is checked, in what order things happen, what is written down.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tilewright::sim {

/// When asynchronous work (bulk copies, wgmma) takes effect.
enum class AsyncTiming : std::uint8_t { kEager, kLate, kRandom };

struct Checks {
  bool mem = true, init = true, sync = true;
  bool race = false, proxy = false, mma = false, tmem = false, strict = false;

  bool operator==(const Checks&) const = default;
};

/// "mem,init", "all", "none", "default", "all,strict"; a leading - takes one away: "all,-race".
/// Errors   InvalidArgument that names the word and what there is
Checks parse_checks(const std::string& list);

/// "mem,init,sync"
std::string to_string(const Checks& checks);

/// "eager", "late", "random".
/// Errors   InvalidArgument that lists them
AsyncTiming parse_async_timing(const std::string& name);
std::string to_string(AsyncTiming timing);

/// The module of a program that has this entry becomes the PTX text of a file.
struct Replacement {
  std::string entry, path;

  bool operator==(const Replacement&) const = default;
};

/// "attention_k5_bf16_d64=edited.ptx", several with commas between.
/// Errors   InvalidArgument with the word that is none
std::vector<Replacement> parse_replacements(std::string_view list);

struct Options {
  Checks checks;
  bool report_only = false;  ///< findings do not fail the launch
  std::string dump_folder;   ///< the text of each module is written there; "" = nowhere
  std::string report_path;   ///< JSON at exit; "" = none, "-" = a table on standard error
  std::uint64_t seed = 0;    ///< 0: warps and CTAs in a fixed order
  AsyncTiming async_timing = AsyncTiming::kEager;
  bool is_exact_mma = false;      ///< exact accumulation instead of the hardware's
  bool fuse_mul_add = true;       ///< contract mul + add / sub as ptxas does
  std::uint32_t num_threads = 0;  ///< host threads; 0 = as many as there are cores
  std::uint32_t max_findings = 16;
  bool has_times = false;  ///< at the end, what each kernel took the simulator
  bool has_time = false;   ///< predict how long each kernel takes on the device
  /// Only so many clusters of a launch run, where they do not depend on each other: its time is
  /// wanted, its results are not. 0: all
  std::uint32_t time_sample = 0;
  /// Of these only launches that multiply on tensor cores: what prepares and routes runs whole, so
  /// that those find what they would
  bool samples_products_alone = false;
  std::string ideal_units;    ///< are infinitely fast in predictions: "tensor,mufu"
  std::string timeline_path;  ///< the timeline of the last launch is written there; "" = nowhere
  bool has_progress = false;  ///< now and then, how often a kernel was launched
  /// Column at which tcgen05.alloc begins to look: kernels that take 0 for granted then fail
  std::uint32_t tensor_memory_base = 0;
  std::uint32_t num_sms = 0;  ///< of the device; 0 = as the model has
  std::vector<Replacement> replacements;

  /// From TILEWRIGHT_SIM_CHECK, _REPORT, _REPORT_ONLY, _SEED, _ASYNC, _EXACT_MMA, _CONTRACT,
  /// _THREADS, _TMEM_BASE, _SMS, _REPLACE, _DUMP, _TIMES, _TIME, _TIME_SAMPLE, _TIME_IDEAL,
  /// _TIME_LINE, and _PROGRESS, without which it counts whether standard error is a terminal.
  /// Errors   InvalidArgument that names the variable
  static Options from_environment();
};

}  // namespace tilewright::sim
