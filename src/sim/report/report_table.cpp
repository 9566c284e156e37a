// The report as text.
#include "sim/report/access_cost.h"
#include "sim/report/prediction_text.h"
#include "sim/report/report.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace tilewright::sim {

namespace {

constexpr std::size_t kMostLines = 12;
constexpr std::size_t kTextChars = 54;

/// "1.23 M"; below ten thousand as it is.
std::string amount(double value) {
  constexpr const char* kUnits[] = {"", " k", " M", " G", " T", " P"};
  if (value < 10000) return fmt::format("{:g}", value);
  int unit = 0;
  while (value >= 1000 && unit < 5) {
    value /= 1000;
    ++unit;
  }
  return fmt::format("{:.3g}{}", value, kUnits[unit]);
}

std::string amount(std::uint64_t value) {
  return amount(static_cast<double>(value));
}

std::string duration(double seconds) {
  if (seconds >= 1) return fmt::format("{:.3g} s", seconds);
  if (seconds >= 1e-3) return fmt::format("{:.3g} ms", seconds * 1e3);
  if (seconds >= 1e-6) return fmt::format("{:.3g} us", seconds * 1e6);
  return fmt::format("{:.3g} ns", seconds * 1e9);
}

double percent(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

std::string dim(const Dim3& d) {
  return fmt::format("({},{},{})", d.x, d.y, d.z);
}

std::string launch_text(const KernelUsage& kernel) {
  std::string out =
      fmt::format("kernel {} of {}: {} launch{}, grid {} block {}", kernel.kernel, kernel.module,
                  kernel.num_launches, kernel.num_launches == 1 ? "" : "es", dim(kernel.grid),
                  dim(kernel.block));
  if (kernel.cluster.count() > 1) out += " cluster " + dim(kernel.cluster);
  const Occupancy& occupancy = kernel.occupancy;
  out += fmt::format(
      "\n  resources     {} registers a thread (estimate), {} + {} bytes of shared memory (static "
      "+ "
      "dynamic)\n  occupancy     {} CTAs an SM, {} of {} warps, limited by {}\n",
      kernel.num_registers, kernel.static_shared_bytes, kernel.dynamic_shared_bytes,
      occupancy.ctas_per_sm, occupancy.warps_per_sm, occupancy.max_warps_per_sm,
      occupancy.limited_by);
  return out;
}

std::string instructions_text(const KernelUsage& kernel) {
  const Usage& total = kernel.total;
  std::string out =
      fmt::format("  instructions  {} of warps, {} of threads: {:.1f} % of the lanes active\n",
                  amount(total.warp_instructions), amount(total.thread_instructions),
                  percent(total.thread_instructions, 32 * total.warp_instructions));
  std::vector<std::pair<std::uint64_t, std::string_view>> classes;
  for (std::size_t i = 0; i < kernel.by_class.size(); ++i) {
    const std::uint64_t count = kernel.by_class[i].warp_instructions;
    if (count != 0) classes.emplace_back(count, name_of(static_cast<InsnClass>(i)));
  }
  std::ranges::stable_sort(classes, std::greater<>(), &decltype(classes)::value_type::first);
  std::string line = "               ";
  for (const auto& [count, name] : classes) {
    const std::string word =
        fmt::format(" {} {:.1f} %,", name, percent(count, total.warp_instructions));
    if (line.size() + word.size() > 98) {
      out += line + "\n";
      line = "               ";
    }
    line += word;
  }
  if (!classes.empty()) line.pop_back();
  return out + line + "\n";
}

std::string memory_text(const KernelUsage& kernel) {
  const Usage& total = kernel.total;
  std::string out;
  for (const auto& [type, flop] : kernel.tensor_flop) {
    out += fmt::format("  tensor        {}FLOP in {}\n", amount(flop) + (flop < 10000 ? " " : ""),
                       type);
  }
  if (total.shared_accesses + total.shared_async_bytes != 0) {
    out += fmt::format(
        "  shared        {} accesses of warps in {} wavefronts, {} of them bank conflicts;\n"
        "                {} bytes by bulk copies and wgmma\n",
        amount(total.shared_accesses), amount(total.shared_wavefronts),
        amount(total.shared_wavefronts - total.shared_ideal_wavefronts),
        amount(total.shared_async_bytes));
  }
  if (total.global_accesses != 0) {
    out +=
        fmt::format("  global        {} accesses of warps, {} sectors of 32 bytes, {:.1f} % used\n",
                    amount(total.global_accesses), amount(total.global_sectors),
                    percent(total.global_used_bytes, total.global_sectors * kSectorBytes));
  }
  if (total.bulk_bytes != 0) {
    out += fmt::format(
        "  bulk copies   {} bytes{}\n", amount(total.bulk_bytes),
        total.bulk_delivered_bytes == total.bulk_bytes
            ? std::string()
            : fmt::format(", by multicast delivered as {}", amount(total.bulk_delivered_bytes)));
  }
  if (total.local_bytes != 0) {
    out += fmt::format("  local         {} bytes\n", amount(total.local_bytes));
  }
  if (total.atomics != 0)
    out += fmt::format("  atomics       {} of lanes\n", amount(total.atomics));
  if (total.barrier_waits + total.failed_polls != 0) {
    out += fmt::format("  barriers      {} waits of warps, {} polls in vain\n",
                       amount(total.barrier_waits), amount(total.failed_polls));
  }
  return out;
}

std::string bounds_text(const KernelUsage& kernel) {
  std::string out = "  bounds        not times: what each unit needs at its peak, all else free\n";
  bool is_first = true;
  for (const Bound& bound : kernel.bounds) {
    if (bound.seconds == 0) continue;
    out += fmt::format("                {:<18}{:>10}{}\n", bound.unit, duration(bound.seconds),
                       is_first ? "   the largest" : "");
    is_first = false;
  }
  return out;
}

std::string line_text(std::uint32_t number, const LineUsage& line) {
  const Usage& usage = line.usage;
  std::string notes;
  if (usage.shared_wavefronts > usage.shared_ideal_wavefronts) {
    notes +=
        fmt::format("  {:.1f} wavefronts each",
                    static_cast<double>(usage.shared_wavefronts) /
                        static_cast<double>(std::max<std::uint64_t>(1, usage.shared_accesses)));
  }
  const double used = percent(usage.global_used_bytes, usage.global_sectors * kSectorBytes);
  if (usage.global_sectors != 0 && used < 100) {
    notes += fmt::format("  {:.0f} % of sectors used", used);
  }
  if (!line.source.empty()) notes += "  " + line.source.substr(line.source.rfind('/') + 1);
  std::string text = line.text;
  if (text.size() > kTextChars) text = text.substr(0, kTextChars - 3) + "...";
  std::string out =
      fmt::format("  {:>8}{:>12}{:>8.1f}  {}{}\n", number, amount(usage.warp_instructions),
                  percent(usage.thread_instructions, 32 * usage.warp_instructions), text, notes);
  return out;
}

std::string lines_text(const KernelUsage& kernel) {
  using Entry = std::pair<std::uint32_t, const LineUsage*>;
  std::vector<Entry> busiest;
  for (const auto& [number, line] : kernel.lines) busiest.emplace_back(number, &line);
  std::ranges::stable_sort(busiest, [](const Entry& a, const Entry& b) {
    return a.second->usage.warp_instructions > b.second->usage.warp_instructions;
  });
  const std::size_t shown = std::min(busiest.size(), kMostLines);
  std::string out = fmt::format("\n  {:>8}{:>12}{:>8}  the {} busiest of {} lines\n", "PTX line",
                                "warp insns", "lanes %", shown, busiest.size());
  for (std::size_t i = 0; i < shown; ++i) out += line_text(busiest[i].first, *busiest[i].second);
  return out;
}

/// The two largest causes: "mbarrier 81 %, own 12 %".
std::string causes_text(const std::array<double, kNumWaitCauses>& causes, double sum) {
  std::vector<std::pair<double, std::string_view>> sorted;
  for (std::size_t i = 0; i < causes.size(); ++i) {
    if (causes[i] > 0.05 * sum) sorted.emplace_back(causes[i], name_of(static_cast<WaitCause>(i)));
  }
  std::ranges::stable_sort(sorted, std::greater<>(), &decltype(sorted)::value_type::first);
  if (sorted.size() > 2) sorted.resize(2);
  std::string out;
  for (const auto& [seconds, name] : sorted) {
    out += fmt::format("{}{} {:.0f} %", out.empty() ? "" : ", ", name, 100 * seconds / sum);
  }
  return out;
}

/// Where warps wait longest, and for what.
std::string waits_text(const KernelUsage& kernel) {
  if (!kernel.prediction || kernel.prediction->lines.empty()) return {};
  std::vector<std::pair<double, std::uint32_t>> longest;
  for (const auto& [number, causes] : kernel.prediction->lines) {
    longest.emplace_back(std::accumulate(causes.begin(), causes.end(), 0.0), number);
  }
  std::ranges::stable_sort(longest, std::greater<>(), &decltype(longest)::value_type::first);
  double all = 0;
  for (const auto& [seconds, number] : longest) all += seconds;
  const std::size_t shown = std::min(longest.size(), kMostLines);
  std::string out = fmt::format("\n  {:>8}{:>12}  of the warps' waits, at the {} lines with most\n",
                                "PTX line", "predicted", shown);
  for (std::size_t i = 0; i < shown; ++i) {
    const auto [seconds, number] = longest[i];
    const auto line = kernel.lines.find(number);
    std::string text = line == kernel.lines.end() ? "" : line->second.text;
    if (text.size() > kTextChars) text = text.substr(0, kTextChars - 3) + "...";
    if (line != kernel.lines.end() && !line->second.source.empty()) {
      text += "  " + line->second.source.substr(line->second.source.rfind('/') + 1);
    }
    out += fmt::format("  {:>8}{:>10.1f} %  {}: {}\n", number, 100 * seconds / std::max(all, 1e-30),
                       causes_text(kernel.prediction->lines.at(number), seconds), text);
  }
  return out;
}

}  // namespace

std::string report_table(const Report& report, const DeviceModel& model) {
  std::string out = fmt::format("simulator report for {}\n", model.name);
  if (report.kernels().empty()) out += "no kernel was launched\n";
  for (const KernelUsage& kernel : report.kernels()) {
    out += "\n" + launch_text(kernel) + instructions_text(kernel) + memory_text(kernel) +
           bounds_text(kernel) +
           (kernel.prediction ? prediction_text(*kernel.prediction) : std::string()) +
           waits_text(kernel) + lines_text(kernel);
    for (const std::string& fault : kernel.faults) out += "\n  stopped: " + fault + "\n";
  }
  return out;
}

}  // namespace tilewright::sim
