#include "sim/compile/flatten.h"

#include "sim/parse/diagnostic.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include <fmt/format.h>

namespace tilewright::sim {

namespace {

constexpr std::size_t kMaxInstructions = 4'000'000;
constexpr std::uint64_t kCodeWindow = 0xfb00'0000'0000'0000;

class Flattener {
 public:
  Flattener(const Module& module, const Function& entry) {
    out_.module = &module;
    check_size(entry);
    add_copy(entry, 0);
    expand(0);
    if (!called_.empty()) {
      out_.body.push_back({FlatKind::kExit, 0, &entry.body.back(), 0, nullptr, 0});
    }
    // The list grows while bodies are added.
    for (std::size_t i = 0; i < called_.size(); ++i) {
      place(start_labels_.at(called_[i]));
      expand(called_[i]);
      const Instruction& last = out_.copies[called_[i]].function->body.back();
      out_.body.push_back({FlatKind::kFrameReturn, called_[i], &last, 0, nullptr, 0});
    }
  }
  FlatKernel take() { return std::move(out_); }

 private:
  const Module& module() const { return *out_.module; }

  /// Before anything is expanded: a few functions that call each other twice make millions.
  void check_size(const Function& entry) {
    if (num_expanded(entry) <= kMaxInstructions) return;
    fail_at(module(), entry.pos,
            fmt::format("{} has more than {} instructions once all calls are inlined", entry.name,
                        kMaxInstructions));
  }

  /// Instructions of a body with what it calls in it, at most a little more than the limit.
  std::uint64_t num_expanded(const Function& function) {
    const auto known = num_expanded_.find(&function);
    if (known != num_expanded_.end()) return known->second;
    std::uint64_t count = function.body.size();
    for (const Function* callee : callees(function)) {
      if (count > kMaxInstructions) break;
      if (!is_builtin(*callee) && !calls_itself(*callee)) count += num_expanded(*callee);
    }
    return num_expanded_[&function] = count;
  }

  std::uint32_t add_copy(const Function& function, std::uint32_t caller) {
    FunctionCopy copy;
    copy.function = &function;
    copy.register_base = out_.num_registers;
    copy.label_base = static_cast<std::uint32_t>(out_.labels.size());
    copy.caller = caller;
    copy.root = out_.copies.empty() ? 0 : out_.copies[caller].root;
    out_.num_registers += static_cast<std::uint32_t>(function.registers.size());
    out_.labels.resize(out_.labels.size() + function.labels.size() + 1);
    copy.end_label = static_cast<std::uint32_t>(out_.labels.size() - 1);
    out_.copies.push_back(std::move(copy));
    return static_cast<std::uint32_t>(out_.copies.size() - 1);
  }

  std::uint32_t new_label() {
    out_.labels.push_back(0);
    return static_cast<std::uint32_t>(out_.labels.size() - 1);
  }
  void place(std::uint32_t label) {
    out_.labels[label] = static_cast<std::uint32_t>(out_.body.size());
  }

  void expand(std::uint32_t copy_idx) {
    const Function& function = *out_.copies[copy_idx].function;
    const std::uint32_t label_base = out_.copies[copy_idx].label_base;
    std::vector<std::vector<std::uint32_t>> labels_at(function.body.size() + 1);
    for (std::size_t i = 0; i < function.labels.size(); ++i) {
      labels_at[function.labels[i].instruction_idx].push_back(label_base +
                                                              static_cast<std::uint32_t>(i));
    }
    for (std::size_t i = 0; i <= function.body.size(); ++i) {
      for (const std::uint32_t label : labels_at[i]) place(label);
      if (i < function.body.size()) add(copy_idx, function.body[i]);
    }
    place(out_.copies[copy_idx].end_label);
  }

  void add(std::uint32_t copy_idx, const Instruction& syntax) {
    if (out_.body.size() > kMaxInstructions) {
      fail_at(module(), syntax.pos, "too many instructions once all calls are inlined");
    }
    const FunctionCopy& copy = out_.copies[copy_idx];
    const bool is_called = copy_idx != 0 && copy.root == copy_idx;
    if (syntax.opcode == "call") {
      add_call(copy_idx, syntax);
    } else if (is_called && syntax.opcode == "ret") {
      add_frame_return(copy_idx, syntax);
    } else if (copy_idx != 0 && syntax.opcode == "ret") {
      out_.body.push_back({FlatKind::kReturn, copy_idx, &syntax, copy.end_label, nullptr, 0});
    } else {
      out_.body.push_back({FlatKind::kSyntax, copy_idx, &syntax, 0, nullptr, 0});
    }
  }

  void add_frame_return(std::uint32_t copy_idx, const Instruction& syntax) {
    const std::uint32_t after = new_label();
    if (syntax.guard) out_.body.push_back({FlatKind::kSkip, copy_idx, &syntax, after, nullptr, 0});
    out_.body.push_back({FlatKind::kFrameReturn, copy_idx, &syntax, 0, nullptr, 0});
    place(after);
  }

  void add_call(std::uint32_t copy_idx, const Instruction& syntax) {
    const Call call = split_call(syntax);
    if (call.target == nullptr) fail_at(module(), syntax.pos, "call without a target");
    const std::uint32_t after = new_label();
    if (syntax.guard) {
      out_.body.push_back({FlatKind::kSkip, copy_idx, &syntax, after, nullptr, 0});
    }
    if (call.target->kind == OperandKind::kFunction) {
      inline_call(copy_idx, syntax, call, module().functions.at(call.target->index));
    } else {
      add_indirect_call(copy_idx, syntax, call, after);
    }
    place(after);
  }

  void add_indirect_call(std::uint32_t copy_idx, const Instruction& syntax, const Call& call,
                         std::uint32_t after) {
    const Function& caller = *out_.copies[copy_idx].function;
    for (const std::uint32_t function_idx : targets(caller, syntax, call)) {
      const Function& function = module().functions[function_idx];
      const std::uint32_t next = new_label();
      out_.body.push_back({FlatKind::kSkipTarget, copy_idx, &syntax, next, &function, 0});
      inline_call(copy_idx, syntax, call, function);
      out_.body.push_back({FlatKind::kReturn, copy_idx, &syntax, after, nullptr, 0});
      place(next);
    }
    out_.body.push_back({FlatKind::kBadCall, copy_idx, &syntax, 0, nullptr, 0});
  }

  /// The functions of the .calltargets, or all whose parameters fit the prototype.
  std::vector<std::uint32_t> targets(const Function& caller, const Instruction& syntax,
                                     const Call& call) const {
    if (call.table == nullptr || call.table->kind != OperandKind::kTable) {
      fail_at(module(), syntax.pos, "indirect call without .callprototype or .calltargets");
    }
    const TargetTable& table = caller.tables.at(call.table->index);
    if (!table.is_prototype) return table.targets;
    std::vector<std::uint32_t> out;
    for (std::uint32_t i = 0; i < module().functions.size(); ++i) {
      const Function& function = module().functions[i];
      if (!function.is_entry && function.is_defined &&
          function.params.size() == table.params.size() &&
          function.returns.size() == table.returns.size()) {
        out.push_back(i);
      }
    }
    return out;
  }

  void inline_call(std::uint32_t copy_idx, const Instruction& syntax, const Call& call,
                   const Function& function) {
    if (is_builtin(function)) {
      out_.body.push_back({FlatKind::kBuiltin, copy_idx, &syntax, 0, &function, 0});
      return;
    }
    if (!function.is_defined) {
      fail_at(module(), syntax.pos, fmt::format("{} has no body", function.name));
    }
    if (calls_itself(function)) return add_frame_call(copy_idx, syntax, call, function);
    const std::uint32_t callee = add_copy(function, copy_idx);
    bind(callee, function.params, call.arguments, syntax);
    bind(callee, function.returns, call.results, syntax);
    expand(callee);
  }

  void add_frame_call(std::uint32_t copy_idx, const Instruction& syntax, const Call& call,
                      const Function& function) {
    check_count(function, function.params, call.arguments, syntax);
    check_count(function, function.returns, call.results, syntax);
    auto known = called_copies_.find(&function);
    if (known == called_copies_.end()) {
      const std::uint32_t callee = add_copy(function, 0);
      out_.copies[callee].root = callee;
      known = called_copies_.emplace(&function, callee).first;
      called_.push_back(callee);
      start_labels_[callee] = new_label();
    }
    const std::uint32_t callee = known->second;
    const std::uint32_t label = start_labels_.at(callee);
    out_.body.push_back({FlatKind::kFrameCall, copy_idx, &syntax, label, &function, callee});
    out_.copies[callee].return_labels.push_back(new_label());
    place(out_.copies[callee].return_labels.back());
    out_.body.push_back({FlatKind::kResults, copy_idx, &syntax, 0, &function, callee});
  }

  /// The functions that a body may call.
  std::vector<const Function*> callees(const Function& function) const {
    std::vector<const Function*> out;
    for (const Instruction& syntax : function.body) {
      if (syntax.opcode != "call") continue;
      const Call call = split_call(syntax);
      if (call.target == nullptr) continue;
      if (call.target->kind == OperandKind::kFunction) {
        out.push_back(&module().functions.at(call.target->index));
        continue;
      }
      for (const std::uint32_t index : targets(function, syntax, call)) {
        out.push_back(&module().functions[index]);
      }
    }
    return out;
  }

  bool calls_itself(const Function& function) {
    const auto [known, is_new] = calls_itself_.try_emplace(&function, false);
    if (!is_new) return known->second;
    std::set<const Function*> reached;
    std::vector<const Function*> open = callees(function);
    while (!open.empty()) {
      const Function* next = open.back();
      open.pop_back();
      if (!reached.insert(next).second) continue;
      for (const Function* callee : callees(*next)) open.push_back(callee);
    }
    return calls_itself_[&function] = reached.contains(&function);
  }

  /// The callee's parameters are the caller's variables.
  void bind(std::uint32_t callee, const std::vector<std::uint32_t>& formal, const Operand* actual,
            const Instruction& syntax) {
    check_count(*out_.copies[callee].function, formal, actual, syntax);
    for (std::size_t i = 0; i < formal.size(); ++i) {
      out_.copies[callee].param_alias[formal[i]] = actual->parts[i].index;
    }
  }

  void check_count(const Function& function, const std::vector<std::uint32_t>& formal,
                   const Operand* actual, const Instruction& syntax) const {
    const std::size_t num_actual = actual == nullptr ? 0 : actual->parts.size();
    if (formal.size() != num_actual) {
      fail_at(module(), syntax.pos,
              fmt::format("{} takes {} operands here, {} were given", function.name, formal.size(),
                          num_actual));
    }
    for (std::size_t i = 0; i < num_actual; ++i) {
      const Operand& operand = actual->parts[i];
      if (operand.kind != OperandKind::kVariable || !operand.is_local) {
        fail_at(module(), operand.pos, "only .param variables can be passed to a function");
      }
    }
  }

  FlatKernel out_;
  std::map<const Function*, bool> calls_itself_;
  std::map<const Function*, std::uint64_t> num_expanded_;
  std::map<const Function*, std::uint32_t> called_copies_;
  std::map<std::uint32_t, std::uint32_t> start_labels_;  // of called copies
  std::vector<std::uint32_t> called_;                    // copies, in the order of their bodies
};

}  // namespace

Call split_call(const Instruction& syntax) {
  Call call;
  for (const Operand& operand : syntax.operands) {
    const bool is_list = operand.kind == OperandKind::kParenthesis;
    if (is_list && call.target == nullptr) {
      call.results = &operand;
    } else if (is_list) {
      call.arguments = &operand;
    } else if (call.target == nullptr) {
      call.target = &operand;
    } else {
      call.table = &operand;
    }
  }
  return call;
}

bool is_builtin(const Function& function) {
  static constexpr std::string_view kNames[] = {"vprintf", "__assertfail", "malloc", "free"};
  return !function.is_defined && std::ranges::count(kNames, function.name) > 0;
}

std::uint64_t function_address(std::uint32_t function_idx) {
  return kCodeWindow + 16 * (std::uint64_t{function_idx} + 1);
}

FlatKernel flatten(const Module& module, const Function& entry) {
  return Flattener(module, entry).take();
}

}  // namespace tilewright::sim
