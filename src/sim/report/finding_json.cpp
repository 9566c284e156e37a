#include "sim/report/finding_json.h"

#include "sim/state/warp.h"

#include <bit>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

namespace tilewright::sim {

namespace {

using nlohmann::json;

/// "gemm.cu:41" -> {"file": "gemm.cu", "line": 41}; null for "".
json line_json(std::string_view place) {
  const std::size_t colon = place.rfind(':');
  if (colon == std::string_view::npos) return nullptr;
  const std::string line(place.substr(colon + 1));
  return {{"file", place.substr(0, colon)}, {"line", std::strtoull(line.c_str(), nullptr, 10)}};
}

json threads_json(const FindingThreads& threads) {
  if (threads.warps.empty()) return nullptr;
  json lanes = json::array();
  for (int lane = 0; lane < kLanes; ++lane) {
    if ((threads.lanes >> lane & 1) != 0) lanes.push_back(lane);
  }
  const auto first_lane = static_cast<std::uint32_t>(std::countr_zero(threads.lanes));
  return {{"cta", {threads.cta.x, threads.cta.y, threads.cta.z}},
          {"warps", threads.warps},
          {"lanes", lanes},
          {"thread", threads.warps.front() * kLanes + first_lane % kLanes}};
}

json place_json(const FindingPlace& place) {
  return {{"role", place.role},
          {"instruction", place.text},
          {"ptx", line_json(place.ptx)},
          {"source", line_json(place.source)},
          {"threads", threads_json(place.who)}};
}

json finding_json(const Finding& finding) {
  json places = json::array();
  for (const FindingPlace& place : finding.places) places.push_back(place_json(place));
  return {{"check", finding.check},   {"kernel", finding.kernel}, {"what", finding.what},
          {"places", places},         {"notes", finding.notes},   {"missing", finding.missing},
          {"others", finding.others}, {"count", finding.count},   {"text", to_string(finding)}};
}

}  // namespace

json findings_json(const std::vector<Finding>& findings) {
  json out = json::array();
  for (const Finding& finding : findings) out.push_back(finding_json(finding));
  return out;
}

}  // namespace tilewright::sim
