#include "cli/tool/time_sample.h"

#include "base/env.h"
#include "base/error.h"
#include "cli/tool/command.h"

#include <cstdlib>
#include <nlohmann/json.hpp>

namespace tilewright::cli {

namespace {

constexpr const char* kVariable = "TILEWRIGHT_SIM_TIME_SAMPLE";
constexpr int kSample = 12, kMostSample = 1024;
constexpr double kManyFlops = 1e11, kManyBytes = 1e9;

bool is_sample_named() {
  const std::string text = env_text(kVariable);
  return !text.empty() && text != "0" && env_text("TILEWRIGHT_SIM_TIME") == "1";
}

}  // namespace

void add_time_sample_option(CLI::App& app) {
  const auto words = [](std::string& text) {
    const bool is_number =
        !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
    const int number = is_number && text.size() < 6 ? std::atoi(text.c_str()) : 0;
    if (text == "all" || (number >= 1 && number <= kMostSample)) return std::string();
    return fmt::format("{}; expected all, or 1 to {} clusters of CTAs", text, kMostSample);
  };
  app.add_option("--time-sample",
                 "of --time: only so many clusters of CTAs of a launch run, and results are not "
                 "computed; all: the whole launch. Default: all, of large problems 12")
      ->type_name("N|all")
      ->check(CLI::Validator(words, ""))
      ->each([](const std::string& text) {
        ::setenv("TILEWRIGHT_SIM_TIME", "1", 1);
        ::setenv(kVariable, text == "all" ? "0" : text.c_str(), 1);
      });
}

void sample_if_large(const Device& device, const nlohmann::json& plan,
                     const std::string& needs_results) {
  if (!needs_results.empty()) {
    refuse_time_sample(fmt::format("{} needs the results of all CTAs", needs_results));
    return;
  }
  const bool is_large =
      plan["flops"].get<double>() > kManyFlops || plan["bytes"].get<double>() > kManyBytes;
  const bool is_timed = env_text("TILEWRIGHT_SIM_TIME") == "1";
  if (!device.is_simulated() || !is_timed || !is_large || !env_text(kVariable).empty()) return;
  using Configure = const char* (*)(int, const char*);
  const auto configure =
      reinterpret_cast<Configure>(device.driver_function("tilewright_simulator_configure"));
  if (configure == nullptr) return;
  const nlohmann::json settings = {{"time_sample", kSample}, {"samples_products_alone", true}};
  configure(device.ordinal(), settings.dump().c_str());
}

void refuse_time_sample(const std::string& why) {
  require(!is_sample_named(), ErrorKind::kInvalidArgument,
          "--time-sample {}: {}, and a sample computes none; leave one of the two out, or give "
          "--time-sample all",
          env_text(kVariable), why);
}

}  // namespace tilewright::cli
