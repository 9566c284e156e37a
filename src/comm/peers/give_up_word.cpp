#include "comm/peers/give_up_word.h"

#include "tilewright/peer_reduce.h"

#include "base/env.h"

#include <exception>
#include <utility>

namespace tilewright::comm {

GiveUpWord::GiveUpWord(const Device& device, std::shared_ptr<Communicator> comm)
    : device_(device),
      comm_(std::move(comm)),
      calls_(device),
      word_(static_cast<std::uint32_t*>(calls_.allocate_host(sizeof(std::uint32_t)))) {
  *static_cast<volatile std::uint32_t*>(word_) = 0;
  comm_->when_failed(this, [word = word_] { *static_cast<volatile std::uint32_t*>(word) = 1; });
}

GiveUpWord::~GiveUpWord() {
  comm_->when_failed(this, {});
  *static_cast<volatile std::uint32_t*>(word_) = 1;
  try {
    device_.synchronize();
    if (std::uncaught_exceptions() == 0) comm_->barrier();
  } catch (const std::exception&) {  // it was told already
  }
  calls_.free_host(word_);
}

bool may_have_peers(const Device& device, const Communicator& comm) {
  return !device.is_simulated() && comm.size() >= 2 &&
         comm.size() <= PeerReduceProblem::kMostRanks &&
         env_text("TILEWRIGHT_PEER_REDUCE") != "off";
}

}  // namespace tilewright::comm
