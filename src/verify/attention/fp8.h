// Attention in e4m3 as the tool runs it: operands rounded on the device.
#pragma once

#include "tilewright/attention_prepare.h"
#include "tilewright/buffer.h"

#include <memory>
#include <string>

namespace tilewright::cli {

/// e4m3 operands in device memory.
class Fp8Operands {
 public:
  Fp8Operands(const Device& device, const AttentionPrepareProblem& problem);

  /// Makes them of those of 16 bits; addresses and the stream of `from` count.
  void enqueue(const AttentionArguments& from) const;
  /// Puts their addresses in the place of q, k and v.
  void set(AttentionArguments& arguments) const;

  const AttentionPreparePlan& plan() const noexcept { return prepare_.plan(); }

 private:
  AttentionPrepare prepare_;
  Buffer q_, k_, v_, q_descale_, k_descale_, v_descale_, v_descale_max_, workspace_;
};

}  // namespace tilewright::cli
