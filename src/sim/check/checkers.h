// The checkers of a launch, as the options choose them.
#pragma once

#include "sim/event/finding.h"
#include "sim/event/observer.h"
#include "sim/model/options.h"

#include <memory>
#include <vector>

namespace tilewright::sim {

class ByteShadow;
class DefinednessObserver;
class LaunchHistory;
class ObserverList;

/// What a launch needs besides the observer.
struct CheckerSet {
  CheckerSet();
  CheckerSet(CheckerSet&&) noexcept;
  ~CheckerSet();

  Observer* observer = nullptr;  ///< notifies all of them; nullptr if nothing is checked
  DefinednessObserver* definedness = nullptr;  ///< one of them, for the engine
  std::vector<std::unique_ptr<Observer>> owned;
  std::unique_ptr<ObserverList> list;
};

/// How a launch stands to those before it.
struct LaunchOrder {
  LaunchHistory* history = nullptr;  ///< nullptr: not kept
  bool is_dependent = false;         ///< Launch::is_dependent
};

/// `global` says which bytes of global memory are defined, nullptr if that is not known.
CheckerSet make_observer(const Options& options, const KernelCode& code, Findings& findings,
                         ByteShadow* global, const LaunchOrder& order = {});

}  // namespace tilewright::sim
