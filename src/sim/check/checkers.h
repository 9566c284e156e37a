// The checkers of a launch, as the options choose them.
#pragma once

#include "sim/check/finding.h"
#include "sim/check/observer.h"
#include "sim/options.h"

#include <memory>
#include <vector>

namespace tilewright::sim {

class ByteShadow;
class InitChecker;
class ObserverList;

/// What a launch needs besides the observer.
struct CheckerSet {
  CheckerSet();
  CheckerSet(CheckerSet&&) noexcept;
  ~CheckerSet();

  Observer* observer = nullptr;  ///< tells all of them; nullptr if nothing is checked
  InitChecker* init = nullptr;   ///< one of them, for the engine
  std::vector<std::unique_ptr<Observer>> owned;
  std::unique_ptr<ObserverList> list;
};

/// `global` says which bytes of global memory are defined, nullptr if that is not known.
CheckerSet make_observer(const Options& options, const KernelCode& code, Findings& findings,
                         ByteShadow* global);

}  // namespace tilewright::sim
