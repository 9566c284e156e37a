#include "sim/model/options.h"

#include "base/env.h"
#include "base/error.h"
#include "base/quote.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <utility>

#include <unistd.h>

namespace tilewright::sim {

namespace {

struct Word {
  std::string_view name;
  bool Checks::*member;
};

constexpr std::array<Word, 8> kWords = {{{"mem", &Checks::mem},
                                         {"init", &Checks::init},
                                         {"sync", &Checks::sync},
                                         {"race", &Checks::race},
                                         {"proxy", &Checks::proxy},
                                         {"mma", &Checks::mma},
                                         {"tmem", &Checks::tmem},
                                         {"strict", &Checks::strict}}};

struct NamedTiming {
  std::string_view name;
  AsyncTiming timing;
};

constexpr std::array<NamedTiming, 3> kTimings = {{{"eager", AsyncTiming::kEager},
                                                  {"late", AsyncTiming::kLate},
                                                  {"random", AsyncTiming::kRandom}}};

constexpr std::uint32_t kMostSms = 1024;

Checks none() {
  Checks checks;
  for (const Word& word : kWords) checks.*word.member = false;
  return checks;
}

/// What a word stands for; strict demands more than the hardware does and is only taken by name.
Checks checks_of(std::string_view name, std::string_view list) {
  Checks checks = none();
  if (name == "none") return checks;
  if (name == "default") return {};
  for (const Word& word : kWords) {
    if (name == word.name || (name == "all" && word.name != "strict")) checks.*word.member = true;
  }
  require(checks != none(), ErrorKind::kInvalidArgument,
          "checks {}: there is no check {}; expected mem, init, sync, race, proxy, mma, tmem, "
          "strict, all, default or none, each with a leading - to take it away",
          quote(list), quote(name));
  return checks;
}

std::string_view trim(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

template <class Number>
void read_number(const char* name, Number& number) {
  const std::string text = env_text(name);
  if (text.empty()) return;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  require(error == std::errc() && end == text.data() + text.size(), ErrorKind::kInvalidArgument,
          "{} = {}; expected a whole number, 0 or more", name, quote(text));
}

void read_switch(const char* name, bool& value) {
  const std::string text = env_text(name);
  if (text.empty()) return;
  require(text == "0" || text == "1", ErrorKind::kInvalidArgument, "{} = {}; expected 0 or 1", name,
          quote(text));
  value = text == "1";
}

/// What a function makes of the variable's text. Errors   as the function, with the variable's name
template <class Value>
void read_word(const char* name, Value (*parse)(const std::string&), Value& value) {
  const std::string text = env_text(name);
  if (text.empty()) return;
  try {
    value = parse(text);
  } catch (const Error& error) {
    fail(error.kind(), "{}: {}", name, error.what());
  }
}

void read_replacements(const char* name, std::vector<Replacement>& replacements) {
  const std::string text = env_text(name);
  try {
    replacements = parse_replacements(text);
  } catch (const Error& error) {
    fail(error.kind(), "{} = {}: {}", name, text, error.what());
  }
}

void read_time(Options& options) {
  read_switch("TILEWRIGHT_SIM_TIME", options.has_time);
  read_number("TILEWRIGHT_SIM_TIME_SAMPLE", options.time_sample);
  options.ideal_units = env_text("TILEWRIGHT_SIM_TIME_IDEAL");
  options.timeline_path = env_text("TILEWRIGHT_SIM_TIME_LINE");
}

}  // namespace

Checks parse_checks(const std::string& list) {
  Checks checks = none();
  bool is_first = true;
  std::string_view rest = list;
  while (is_first || !rest.empty()) {
    const std::size_t comma = rest.find(',');
    std::string_view name = trim(rest.substr(0, comma));
    rest = comma == std::string_view::npos ? "" : rest.substr(comma + 1);
    const bool is_removal = name.starts_with('-');
    if (is_removal) name.remove_prefix(1);
    // "-init" alone means: the default but that.
    if (is_first && (is_removal || name.empty())) checks = {};
    is_first = false;
    if (name.empty() && !is_removal) continue;
    const Checks named = checks_of(name, list);
    for (const Word& word : kWords) {
      if (named.*word.member) checks.*word.member = !is_removal;
    }
  }
  return checks;
}

std::string to_string(const Checks& checks) {
  std::string list;
  for (const Word& word : kWords) {
    if (!(checks.*word.member)) continue;
    if (!list.empty()) list += ',';
    list += word.name;
  }
  return list.empty() ? "none" : list;
}

AsyncTiming parse_async_timing(const std::string& name) {
  const auto* const found = std::ranges::find(kTimings, name, &NamedTiming::name);
  require(found != std::end(kTimings), ErrorKind::kInvalidArgument,
          "{}; expected eager, late or random", quote(name));
  return found->timing;
}

std::string to_string(AsyncTiming timing) {
  return std::string(std::ranges::find(kTimings, timing, &NamedTiming::timing)->name);
}

std::vector<Replacement> parse_replacements(std::string_view list) {
  std::vector<Replacement> replacements;
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    const std::string_view word = trim(list.substr(0, comma));
    list.remove_prefix(std::min(comma + 1, list.size()));
    const std::size_t equals = word.find('=');
    require(equals != 0 && equals < word.size() - 1, ErrorKind::kInvalidArgument,
            "{}; expected ENTRY=FILE: the name of a kernel, and the PTX text that its module is to "
            "become",
            quote(word));
    replacements.push_back(
        {std::string(word.substr(0, equals)), std::string(word.substr(equals + 1))});
  }
  return replacements;
}

Options Options::from_environment() {
  Options options;
  read_word("TILEWRIGHT_SIM_CHECK", parse_checks, options.checks);
  options.report_path = env_text("TILEWRIGHT_SIM_REPORT");
  options.dump_folder = env_text("TILEWRIGHT_SIM_DUMP");
  read_switch("TILEWRIGHT_SIM_REPORT_ONLY", options.report_only);
  read_number("TILEWRIGHT_SIM_SEED", options.seed);
  read_word("TILEWRIGHT_SIM_ASYNC", parse_async_timing, options.async_timing);
  read_switch("TILEWRIGHT_SIM_EXACT_MMA", options.is_exact_mma);
  read_switch("TILEWRIGHT_SIM_CONTRACT", options.fuse_mul_add);
  read_number("TILEWRIGHT_SIM_THREADS", options.num_threads);
  read_number("TILEWRIGHT_SIM_TMEM_BASE", options.tensor_memory_base);
  require(options.tensor_memory_base < 512 && options.tensor_memory_base % 32 == 0,
          ErrorKind::kInvalidArgument,
          "TILEWRIGHT_SIM_TMEM_BASE = {}; expected a multiple of 32 below 512",
          options.tensor_memory_base);
  read_number("TILEWRIGHT_SIM_SMS", options.num_sms);
  require(options.num_sms <= kMostSms, ErrorKind::kInvalidArgument,
          "TILEWRIGHT_SIM_SMS = {}; expected at most {}, or 0 for as many as the device has",
          options.num_sms, kMostSms);
  read_switch("TILEWRIGHT_SIM_TIMES", options.has_times);
  read_time(options);
  options.has_progress = ::isatty(STDERR_FILENO) != 0;
  read_switch("TILEWRIGHT_SIM_PROGRESS", options.has_progress);
  read_replacements("TILEWRIGHT_SIM_REPLACE", options.replacements);
  return options;
}

}  // namespace tilewright::sim
