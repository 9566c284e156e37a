#include "sim/check/checkers.h"

#include "sim/check/init/init_checker.h"
#include "sim/check/order/dependent_launch.h"
#include "sim/check/order/lane_checker.h"
#include "sim/check/order/open_copies.h"
#include "sim/check/order/order_checker.h"
#include "sim/check/sync/commit_checker.h"
#include "sim/check/sync/phase_checker.h"
#include "sim/check/sync/register_checker.h"
#include "sim/check/sync/sync_checker.h"
#include "sim/check/sync/visit_checker.h"
#include "sim/check/tensor/mma_checker.h"
#include "sim/check/tensor/operand_checker.h"
#include "sim/check/tensor/tmem_checker.h"
#include "sim/event/observer_list.h"
#include "sim/state/code.h"
#include "sim/state/definedness.h"

#include <algorithm>
#include <vector>

namespace tilewright::sim {

CheckerSet make_observer(const Options& options, const KernelCode& code, Findings& findings,
                         ByteShadow* global, const LaunchOrder& order_of_launches) {
  const Checks& checks = options.checks;
  CheckerSet out;
  const auto add = [&](std::unique_ptr<Observer> checker) {
    out.owned.push_back(std::move(checker));
    out.list->add(out.owned.back().get());
  };
  const bool has_wgmma = std::ranges::count(code.spread, std::uint8_t(SpreadRule::kWgmma)) != 0;
  const auto has = [&](std::string_view opcode) {
    return std::ranges::any_of(code.places, [&](const CodePlace& place) {
      return place.syntax != nullptr && place.syntax->opcode == opcode;
    });
  };
  const bool checks_tmem = checks.tmem && has("tcgen05");
  out.list = std::make_unique<ObserverList>();
  if (checks.init) {
    auto init = std::make_unique<InitChecker>(findings, global, checks.strict);
    out.definedness = init.get();
    add(std::move(init));
  }
  if (checks.sync) {
    add(std::make_unique<SyncChecker>(findings, checks.strict));
    add(std::make_unique<VisitChecker>(findings));
    if (has("tcgen05")) add(std::make_unique<CommitChecker>(findings, checks.strict));
    if (has("setmaxnreg")) add(std::make_unique<RegisterChecker>(findings, checks.strict));
    if (has("cp")) add(std::make_unique<OpenCopies>(findings, checks.strict));
  }
  const bool is_in_chain = order_of_launches.history != nullptr;
  PhaseChecker* phases = nullptr;
  if ((checks.sync && has("mbarrier")) || (is_in_chain && has("griddepcontrol"))) {
    auto checker = std::make_unique<PhaseChecker>(findings, checks.sync);
    phases = checker.get();
    add(std::move(checker));
  }
  if (is_in_chain) {
    add(std::make_unique<LaunchChecker>(findings, *order_of_launches.history, phases,
                                        order_of_launches.is_dependent));
  }
  if (checks.race) add(std::make_unique<LaneChecker>(findings, checks.strict));
  OrderChecker* order = nullptr;
  if (checks.race || checks.proxy || (checks.mma && has_wgmma) || checks_tmem) {
    auto checker = std::make_unique<OrderChecker>(findings, checks);
    order = checker.get();
    add(std::move(checker));
  }
  if (checks.mma && has_wgmma) add(std::make_unique<MmaChecker>(findings, checks.strict));
  if (checks_tmem) add(std::make_unique<TmemChecker>(findings, *order, checks.strict));
  const bool checks_wgmma = checks.mma && has_wgmma;
  if (checks_wgmma || checks_tmem) {
    add(std::make_unique<OperandChecker>(findings, checks_wgmma, checks_tmem));
  }
  out.observer = out.list->get();
  return out;
}

CheckerSet::CheckerSet() = default;
CheckerSet::CheckerSet(CheckerSet&&) noexcept = default;
CheckerSet::~CheckerSet() = default;

}  // namespace tilewright::sim
