// What the checkers report.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace tilewright::sim {

struct KernelCode;
struct Insn;
struct Warp;

/// One place of a finding: an instruction and who ran it.
struct FindingPlace {
  std::string role;    ///< "wrote", "read", "waits", "issued"
  std::string ptx;     ///< "gemm.ptx:88"
  std::string source;  ///< "gemm.cu:41", "" if unknown
  std::string text;    ///< the instruction
  std::string who;     ///< "CTA (0,0,0) warp 2 lanes 0-15"
};

struct Finding {
  std::string check;  ///< "mem", "init", "race", "proxy", "mma", "sync", "strict"
  std::string kernel;
  std::string what;                  ///< one line: "race on shared[0x480..0x48f]"
  std::vector<FindingPlace> places;  ///< the instruction at fault first
  std::string missing;      ///< "no barrier orders them; last common barrier: ...", with a remedy
  std::uint64_t count = 1;  ///< how often, with other lanes, CTAs and addresses
};

/// The findings of a machine, without repetitions: two are the same if check, kernel and the
/// instructions of all places are.
/// Thread    safe
class Findings {
 public:
  /// Whether it is new and was kept; at most `limit` are.
  bool add(Finding finding);
  std::vector<Finding> take_all() const;
  std::uint64_t total() const;
  void clear();
  void set_limit(std::uint32_t limit);

 private:
  mutable std::mutex mutex_;
  std::vector<Finding> findings_;
  std::uint64_t total_ = 0;
  std::uint32_t limit_ = 16;
};

/// A place with role, text and positions filled in.
FindingPlace place_of(const Warp& warp, const Insn& insn, std::uint32_t lanes, std::string role);

/// The same for an instruction that ran in a warp which has ended since.
FindingPlace place_of(const KernelCode& code, const Insn& insn, std::string role, std::string who);

/// As it is printed, several lines, each after the first indented by five blanks.
std::string to_string(const Finding& finding);

}  // namespace tilewright::sim
