// The tmem check: Tensor Memory, by allocation, by order and by layout.
//
// Order is kept for each column and 16 lanes (half a warp's), with what the order check knows: the
// pipe of a warp, its loads and its stores are agents whose moments others learn through commits,
// waits and barriers. A load is done when it was waited for. Its registers may be used before that,
// but the manual does not promise that the read then comes before a later write. CUTLASS's
// attention relies on it, and has no tcgen05.fence either: so a use counts as the end of a load
// where the warp hands its columns on without such a fence. Who fences hands them on by the book.
// Giving columns back is a write of all of them.
//
// Layout is kept for each byte: a cell that tcgen05.mma wrote is an element of its accumulator, and
// a register that was loaded from there, or made of such registers, still is (register_tags.h).
// When such a value is stored and read by another tcgen05.mma, its row and column must lie there as
// they did in the accumulator, but for a constant distance.
#pragma once

#include "sim/check/order/order_checker.h"
#include "sim/check/tensor/register_tags.h"
#include "sim/host/reused_memory.h"

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tilewright::sim {

class TmemChecker final : public Observer {
 public:
  /// `order` sees everything before this checker does.
  TmemChecker(Findings& findings, OrderChecker& order, bool is_strict)
      : findings_(findings), order_(order), is_strict_(is_strict) {}

  void launch_started(Grid& grid) override;
  void cta_started(Cta& cta) override;
  void cta_ended(Cta& cta) override;
  void executing(Warp& warp, const Insn& insn, std::uint32_t active) override;
  void fence(Warp& warp, const Insn& insn, std::uint32_t lanes, const FenceEvent& event) override;
  void tensor_allocated(Warp& warp, const Insn& insn, const TensorAllocEvent& event) override;
  void tensor_access(Warp& warp, const Insn& insn, const TensorAccess& access) override;
  void tensor_issued(Warp& warp, const Insn& insn, const TensorOperation& operation) override;
  void tensor_committed(Warp& warp, const Insn& insn, const TensorCommit& commit) override;

 private:
  static constexpr std::uint32_t kHalves = 8;  ///< of 16 lanes
  static constexpr std::uint32_t kHalfLanes = 16;
  static constexpr std::uint32_t kGenerations = 4;

  enum class By : std::uint8_t { kNobody, kLoad, kStore, kPipe, kFree };
  /// One access.
  struct Record {
    By by = By::kNobody;
    Agent agent = 0, issuer = 0;
    std::uint32_t time = 0, issue_time = 0;
    const Insn* insn = nullptr;
    const Warp* warp = nullptr;
    std::uint32_t lanes = ~std::uint32_t{0};
    TensorKind kind = TensorKind::kMma;  ///< of kPipe
  };
  /// What a cell's value is.
  enum class Origin : std::uint8_t { kUnknown, kAccumulator, kStored };
  struct Unit {
    Record write, load, pipe_read;
    Origin origin = Origin::kUnknown;
    std::uint16_t tile = 0;
    /// What follows this need only be ordered after it, not after what it was ordered after.
    void overwrite(const Record& now, Origin what) {
      write = now;
      origin = what;
      load.by = pipe_read.by = By::kNobody;
    }
  };
  /// The accumulator of some tcgen05.mma: where it lies and how.
  struct Tile {
    TensorRegion region;
    std::uint32_t cta_group = 1;
    const Insn* insn = nullptr;  ///< the first one
  };
  /// tcgen05.fence::before_thread_sync
  struct ThreadFence {
    std::uint32_t time = 0;   ///< in the warp's count
    std::uint32_t loads = 0;  ///< the first load that comes after it
  };
  struct WarpState {
    std::unique_ptr<RegisterTags> tags;
    std::vector<std::uint32_t> load_of;  ///< by 64 bytes of registers: the load that fills them
    bool has_loads = false;
    Clock fenced;  ///< what it knew at its last after_thread_sync
    std::vector<ThreadFence> fences;
  };
  using TagMap = std::vector<Tag, Reused<Tag>>;
  struct CtaState {
    std::vector<WarpState> warps;
    std::vector<Unit, Reused<Unit>> units;  ///< column * kHalves + half
    std::vector<std::uint8_t> generations;  ///< by tile: how often it was begun anew, modulo 4
    TagMap cell_tags;  ///< (lane * 512 + column) * 4 + byte; empty until needed
    const Insn* alloc = nullptr;
    const Warp* alloc_warp = nullptr;
    std::uint32_t last_alloc_columns = kTensorColumns;
    std::vector<Record> freed;  ///< by column: the release of it; empty until there is one
  };

  enum class Hazard : std::uint8_t {
    kOutside,
    kFreed,
    kOwner,
    kReadEarly,
    kWriteEarly,
    kOperand,
    kStoreWait,
    kStoreOrder,
    kKeptOrder,
    kPending,
    kLoadWait,
    kLoadOrder,
    kKeptLoad,
    kPipes,
    kPipeOrder,
    kUnwritten,
    kUnwrittenLanes,
    kHalfFence,
    kNoAfterFence,
    kNoBeforeFence,
    kScales,
    kGroups,
    kAllocOrder,
    kFreeOrder,
    kLayout,
    kLeak,
  };
  /// The cells of one access that meet the same hazard with the same other one.
  struct Conflict {
    Hazard hazard = Hazard::kOutside;
    By by = By::kNobody;  ///< the access
    Record other;
    std::uint32_t from = 0, to = 0;  ///< columns
    TensorLanes lanes{};
    std::uint32_t rank = 0;
  };
  struct Words {
    std::string_view what;     ///< before " in columns ..."
    std::string_view role;     ///< of the other instruction
    std::string_view missing;  ///< with a remedy
    bool is_strict;
  };
  static const std::map<Hazard, Words> kWords;
  using Conflicts = std::vector<Conflict>;
  /// Units of one access.
  struct Units {
    Cta* cta = nullptr;
    CtaState* state = nullptr;
    std::uint32_t column = 0, num_columns = 0, halves = 0;
    TensorLanes lanes{};
  };
  /// How far a tagged value lies from its place in the accumulator, by tile.
  struct Distance {
    std::int32_t row = 0, column = 0;
    bool operator==(const Distance&) const = default;
  };
  /// A tagged element where an operand reads it.
  struct Reading {
    Tag tag = 0;
    std::uint32_t lane = 0, column = 0, byte = 0;
    std::uint32_t row = 0, index = 0;  ///< that it is read as: (m, n) or (m, k)
    Distance distance;
    bool is_too_wide = false;  ///< one value of 32 bits where there should be several
    bool is_left = false;      ///< ... that no tcgen05.st has put there
  };
  /// A distance and how many elements of a tile have it.
  struct Place {
    std::uint32_t tile = 0;
    Distance distance;
    std::uint32_t count = 0;
  };
  struct Mismatch {
    Reading read;
    Distance expected;
  };

  CtaState& state_of(const Cta& cta) { return *ctas_.at(&cta); }
  WarpState& state_of(const Warp& warp) { return state_of(*warp.cta).warps[warp.index]; }
  Record record_of(const Warp& warp, const Insn& insn, By by);
  bool is_done(const Warp& warp, const Record& old) const;
  bool is_over_at_free(const Warp& warp, const Record& now, const Record& old) const;
  bool is_issue_known(const Warp& warp, const Record& old) const;
  /// Whether the warp may take a load for done that was not waited for.
  bool is_load_used(const Warp& warp, const Record& load) const;

  Units units_of(const Warp& warp, const TensorRegion& region);
  std::vector<Units> units_of(const Warp& warp, const TensorAccess& access);
  void check_unit(const Warp& warp, const Record& now, const Unit& unit, bool reads, bool writes,
                  const Units& units, std::uint32_t column, std::uint32_t half, Conflicts& out);
  /// The parts of it: against what was written, against what is read.
  void check_last_write(const Warp& warp, const Record& now, const Unit& unit, bool reads,
                        bool writes, const Units& units, std::uint32_t column, std::uint32_t half,
                        Conflicts& out);
  void check_load(const Warp& warp, const Record& now, const Record& load, const Units& units,
                  std::uint32_t column, std::uint32_t half, Conflicts& out);
  void check_pipes(const Warp& warp, const Record& now, const Record& old, const Units& units,
                   std::uint32_t column, std::uint32_t half, Conflicts& out);
  static bool is_pipelined(const Record& old, const Record& now);
  void check_written(const Units& units, const Record& now, Conflicts& out) const;
  void free_columns(Warp& warp, const Insn& insn, const TensorAllocEvent& event);
  void check_inside(const Units& units, const Record& now, Conflicts& out) const;
  void check_fences(const Warp& warp, const Record& now, const Record& old, const Units& units,
                    std::uint32_t column, std::uint32_t half, Conflicts& out);
  bool has_fence_before(const Warp& warp, const Record& old) const;
  static void add(Conflicts& out, Hazard hazard, const Record& now, const Record& other,
                  const Units& units, std::uint32_t column, std::uint32_t half);
  void check_group(const Warp& warp, const Insn& insn, std::uint32_t cta_group);
  void check_alloc_order(const Warp& warp, const Insn& insn, std::uint32_t num_columns);
  void check_scales(const Warp& warp, const Insn& insn, const TensorRegion& region,
                    const TensorOperation& operation);

  /// A number for the values that the accumulator holds now: of its place, and which of the last
  /// four that stood there. 0 if there are too many.
  std::uint16_t tile_of(CtaState& state, const TensorRegion& region, std::uint32_t cta_group,
                        const Insn& insn);
  const Tile& tile_at(std::uint32_t number) const { return tiles_[number / kGenerations]; }
  TagMap& cell_tags(CtaState& state);
  Tag accumulator_tag(std::uint16_t tile, std::uint32_t cta, std::uint32_t lane,
                      std::uint32_t column) const;
  void load_tags(Warp& warp, const TensorAccess& access);
  void store_tags(Warp& warp, const TensorAccess& access);
  /// The tag of the bytes of a cell that an operand reads as one element.
  Tag tag_of_element(const CtaState& state, const TensorRegion& region, std::uint32_t lane,
                     std::uint32_t column, std::uint32_t byte, std::uint32_t bytes) const;
  static bool has_stored_cells(const CtaState& state, const TensorRegion& region);
  void read_lane(const CtaState& state, const TensorRegion& region, std::uint32_t cta_group,
                 std::uint32_t lane, std::vector<Reading>& out) const;
  std::optional<Mismatch> find_mismatch(const CtaState& state, const TensorRegion& region,
                                        std::uint32_t cta_group) const;
  bool is_same_accumulator(const CtaState& state, const TensorRegion& region,
                           std::uint32_t cta_group) const;
  void check_layout(const Warp& warp, const Insn& insn, const TensorRegion& region,
                    const TensorOperation& operation);

  void report(const Warp& warp, const Insn& insn, std::uint32_t lanes, const Conflict& conflict);
  void report(const Warp& warp, const Insn& insn, std::uint32_t lanes, Hazard hazard,
              const Record* other, const char* role, std::string what, std::string missing,
              std::vector<std::string> notes, bool is_strict);

  Findings& findings_;
  OrderChecker& order_;
  bool is_strict_;
  std::vector<Lineage> lineage_;
  std::vector<std::uint32_t> stretches_;
  std::unordered_map<const Cta*, std::unique_ptr<CtaState>> ctas_;
  std::vector<Tile> tiles_{1};
  std::set<std::tuple<Hazard, const Insn*, const Insn*>> said_;
  std::uint32_t cta_group_ = 0;  ///< of the first instruction that names one
  const Insn* group_insn_ = nullptr;
};

}  // namespace tilewright::sim
