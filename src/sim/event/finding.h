// What the checkers report.
#pragma once

#include "sim/state/launch.h"

#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace tilewright::sim {

struct Cta;
struct KernelCode;
struct Insn;
struct Warp;

/// Threads of one CTA: the same lanes of one warp or more.
struct FindingThreads {
  Dim3 cta;
  std::vector<std::uint32_t> warps;
  std::uint32_t lanes = 0;
};

/// "CTA (0,0,0) warps 2 and 3 lanes 0-15"
std::string describe(const FindingThreads& threads);

/// One place of a finding: an instruction and the threads that ran it.
struct FindingPlace {
  std::string role;    ///< "wrote", "read", "waits", "issued"
  std::string ptx;     ///< "gemm.ptx:88"
  std::string source;  ///< "gemm.cu:41", "" if unknown
  std::string text;    ///< the instruction
  FindingThreads who;
  /// Of the CTA in the grid: findings are told in this order, whichever host thread was first
  std::uint64_t order = ~std::uint64_t{0};
};

/// An instruction that a warp ran. Checkers keep it for what may matter later; its place, for
/// which the text of the module is searched, is made only if it does.
struct Execution {
  const KernelCode* code = nullptr;
  const Insn* insn = nullptr;
  Dim3 cta;
  std::uint64_t cta_order = 0;  ///< linear index in the grid
  std::uint32_t warp = 0, lanes = 0;
};

struct Finding {
  std::string check;  ///< "mem", "init", "race", "proxy", "mma", "sync", "strict"
  std::string kernel;
  std::string what;                  ///< one line: "race on shared[0x480..0x48f]"
  std::vector<FindingPlace> places;  ///< the instruction at fault first
  std::vector<std::string> notes;    ///< lines with more of what is known
  std::string missing;               ///< what is missing, with a remedy
  /// What tells findings of one kernel and check apart; "" stands for their places and `missing`.
  /// Two that are the same with other places are one: the lines of the others are listed.
  std::string cause;
  std::vector<std::string> others;  ///< "89 and 132": lines of the same cause
  std::uint64_t count = 1;          ///< how often, with other lanes, CTAs and addresses
};

/// The findings of a machine, without repetitions: one for each cause.
/// Thread    safe
class Findings {
 public:
  using Handle = std::size_t;
  static constexpr Handle kNone = ~Handle{0};

  /// Whether it is new and was kept; at most `limit` are. `handle` names what it was counted as.
  bool add(Finding finding, Handle* handle = nullptr);
  /// Counts one more of the same, or replaces its text if it only was more than known at first.
  void add_again(Handle handle, std::string what = {});
  std::vector<Finding> take_all() const;
  /// Those from a number on in the order of the grid; for as many as there are when it has ended.
  std::vector<Finding> take_from(std::size_t first) const;
  std::size_t size() const;
  /// How often anything was found.
  std::uint64_t total() const;
  /// Causes beyond the limit, as far as they can be told apart.
  std::uint64_t num_left_out() const;
  /// From here on everything is new.
  void clear();
  void set_limit(std::uint32_t limit);

 private:
  mutable std::mutex mutex_;
  std::vector<Finding> findings_;
  std::set<std::string> left_out_;
  std::uint64_t total_ = 0;
  std::uint32_t limit_ = 16;
};

Execution execution_of(const Warp& warp, const Insn& insn, std::uint32_t lanes);

/// A place with role, text and positions filled in.
FindingPlace place_of(const Execution& execution, std::string role);
FindingPlace place_of(const Warp& warp, const Insn& insn, std::uint32_t lanes, std::string role);

/// The same for an instruction that ran in a warp which has ended since.
FindingPlace place_of(const KernelCode& code, const Insn& insn, std::string role,
                      FindingThreads who);

/// "CTA (0,1,0) warp 2 lanes 0-15"
std::string describe(const Execution& execution);
/// "CTA (0,1,0)"
std::string describe_cta(const Cta& cta);
/// "CTA (0,1,0) warp 2"
std::string describe_warp(const Warp& warp);

/// The name of a kernel as people write it: without the compiler's encoding, the result and the
/// parameters, and at most 80 columns of it ("cutlass::device_kernel<cutlass::gemm::..."). What is
/// no encoded name stays, cut as well.
std::string readable_name(std::string_view kernel);

/// "1st", "12th"
std::string ordinal(std::uint64_t number);

/// As it is printed, several lines, each after the first indented by five blanks.
std::string to_string(const Finding& finding);

}  // namespace tilewright::sim
