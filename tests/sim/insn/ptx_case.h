// Reads the test programs of tests/ptx. A file is PTX whose comments say what goes in and out:
//
//     // test: add_s32
//     // in: 0x1 0x7fffffff
//     // in: 0x2 0x1
//     // out: 0x3 0x80000000
//     .visible .entry add_s32(.param .u64 in, .param .u64 out) ...
//
// A kernel runs with 32 threads. Operand k of lane l is the 64-bit word k * 32 + l of `in`, result
// k likewise of `out`, which is zero before. A list shorter than 32 is repeated. After `// test:`
// may come
//
//     // threads: 128
//     // cluster: 2            as many CTAs, one cluster
//     // grid: 8               as many CTAs, of clusters of 1 or as many as said
//     // map: element=u16 at=in+256 dims=64,32 strides=128 box=8,4 ...     (ptx_map.h)
//
// Each map is one more parameter, `.param .align 64 .b8 mapN[128]`. A line `// machine: exact_mma`
// or `// machine: separate_mul_add` at the head of a file chooses arithmetic that no device has;
// such a file is not for a device.
#pragma once

#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

namespace tilewright::sim {

inline constexpr std::size_t kPtxLanes = 32;

struct PtxCase {
  std::string kernel;
  std::vector<std::vector<std::uint64_t>> inputs, outputs;
  std::uint32_t num_threads = kPtxLanes;
  std::uint32_t cluster = 1;
  std::uint32_t grid = 0;  ///< 0: one cluster
  std::vector<std::string> maps;
};

inline std::vector<std::uint64_t> parse_words(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::uint64_t> words;
  for (std::string word; stream >> word;) words.push_back(std::stoull(word, nullptr, 0));
  return words;
}

inline std::vector<PtxCase> parse_ptx_cases(const std::string& text) {
  std::vector<PtxCase> cases;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    const auto rest = [&line](std::string_view prefix) { return line.substr(prefix.size()); };
    if (line.starts_with("// test: ")) cases.emplace_back().kernel = rest("// test: ");
    if (cases.empty()) continue;
    if (line.starts_with("// map: ")) cases.back().maps.push_back(rest("// map: "));
    if (line.starts_with("// threads: ")) {
      cases.back().num_threads = static_cast<std::uint32_t>(std::stoul(rest("// threads: ")));
    }
    if (line.starts_with("// cluster: ")) {
      cases.back().cluster = static_cast<std::uint32_t>(std::stoul(rest("// cluster: ")));
    }
    if (line.starts_with("// grid: ")) {
      cases.back().grid = static_cast<std::uint32_t>(std::stoul(rest("// grid: ")));
    }
    if (line.starts_with("// in: ")) cases.back().inputs.push_back(parse_words(rest("// in: ")));
    if (line.starts_with("// out: ")) {
      cases.back().outputs.push_back(parse_words(rest("// out: ")));
    }
  }
  return cases;
}

/// The lists as they lie in memory, 32 words each.
inline std::vector<std::uint64_t> spread(const std::vector<std::vector<std::uint64_t>>& lists) {
  std::vector<std::uint64_t> words;
  for (const auto& list : lists) {
    for (std::size_t lane = 0; lane < kPtxLanes; ++lane) words.push_back(list[lane % list.size()]);
  }
  return words;
}

}  // namespace tilewright::sim
