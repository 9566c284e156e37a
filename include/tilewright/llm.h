// A DeepSeek-V4 model from a checkpoint to tokens: many prompts in, first come, first served, and
// their continuations out, token by token.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace tilewright {

struct LlmOptions {
  std::string device;      ///< as Device::open; "reference": the model in float64, without a device
  std::string kv = "fp8";  ///< rows of caches: bf16, fp8, nvfp4; exact: reference alone
  std::string index = "mxfp4";     ///< keys of the indexer: fp8, mxfp4; bf16: reference alone
  std::string experts = "stored";  ///< routed ones: bf16, fp8, mxfp4, nvfp4, converted if need be
  std::int64_t max_tokens = 4096;  ///< of a sequence, prompt and continuation together
  std::int64_t sequences = 16;     ///< the most that run at the same time
  std::int64_t cache_tokens = 0;   ///< of all that run; 0: max_tokens for each
  std::int64_t step_tokens = 256;  ///< of all in one step, up to 2048
  bool has_draft = false;          ///< speculative decoding with the checkpoint's draft layer
  std::int64_t gpus = 0;           ///< ranks that share the model, a GPU each; 0: not asked for
  std::string parallel = {};  ///< what they divide: "tensor" (also if empty), "expert"; see Llm
};

struct LlmSampling {
  double temperature = 0;        ///< 0: the likeliest token
  std::int64_t top_k = 0;        ///< only so many of the likeliest; 0: all
  double top_p = 1;              ///< of these the likeliest whose probabilities reach this sum
  std::uint64_t seed = 0;        ///< prompts with one seed draw differently, by their number
  std::int64_t max_tokens = 64;  ///< new ones; fewer if the model's room ends
  bool ignores_end = false;      ///< go on behind eos_token_id of config.json
  double min_p = 0;  ///< of top_k those whose probability is at least so much of the largest
};

/// Why a prompt's continuation is at its end.
enum class LlmFinish {
  kNone,       ///< it goes on
  kEnd,        ///< the token ends a text
  kLength,     ///< max_tokens, or the model's room
  kCancelled,  ///< another rank has cancelled it
};

struct LlmToken {
  std::int64_t request = -1;  ///< number of the prompt
  std::int32_t token = -1;    ///< -1: none, for max_tokens = 0
  LlmFinish finish = LlmFinish::kNone;
};

struct LlmCounts {
  std::int64_t steps = 0;          ///< passes through the model
  std::int64_t prompt_tokens = 0;  ///< that went through it
  std::int64_t new_tokens = 0;
  std::int64_t drafted = 0;   ///< tokens that the draft layer guessed and a step took along
  std::int64_t accepted = 0;  ///< of these, those that were right
};

/// A model with the caches of some sequences. Every step gives each sequence that runs its next
/// token and takes prompts along, in chunks. A prompt waits until a sequence is free and the caches
/// have room for it and all its new tokens; those behind it wait, too.
///
/// Ranks    with LlmOptions::gpus or ::parallel a model is shared by ranks: heads and matrices, for
///          one sequence, or sequences and experts, for throughput. On GPUs every rank is a process
///          that torchrun, mpirun or srun has started, on the GPU of its local rank, with NCCL. On
///          a simulated device `gpus` ranks are threads of this process. Without either option a
///          model is whole, whoever started the process
/// Calls    of processes: each opens an Llm with the same options, adds the same prompts in the
///          same order and calls next() as often; all get the same tokens. Before each step they
///          compare what they were given. A prompt that one cancels ends on all with the next step,
///          with LlmFinish::kCancelled where it was not cancelled. What open() or next() throws on
///          one is told to the others, whose next() throws that sentence
///
///     Llm llm = Llm::open("V4/", {.sequences = 32});
///     llm.add(tokenizer.encode("The kernel "));
///     while (const auto next = llm.next()) ...     // and add() at any time
///
/// Thread   one call at a time
class Llm {
 public:
  /// Reads the checkpoint in a folder to the device.
  /// Errors   InvalidArgument: a number or word that makes no sense, a checkpoint that does not fit
  ///          its config.json or lacks the draft layer; Unsupported: another model, or formats that
  ///          the device has no kernels for; OutOfMemory; ParseError; DeviceError. Of ranks
  ///          InvalidArgument: more than one on a GPU without a launcher, or with "reference"; not
  ///          as many as it has started; a number that does not divide the model. Unsupported: no
  ///          NCCL. DeviceError: a rank that failed, or did not come within 5 minutes
  static Llm open(const std::filesystem::path& folder, const LlmOptions& options = {});
  ~Llm();
  Llm(Llm&& other) noexcept;
  Llm& operator=(Llm&& other) noexcept;

  /// One line: what runs where, with which formats.
  const std::string& description() const noexcept;
  std::int64_t vocab_size() const noexcept;

  /// Adds a prompt, which ends with a token of `ends`, too. Its number: 0, 1, ...
  /// Errors   InvalidArgument, and nothing is added: an empty prompt, one that is longer than the
  ///          context or the caches, a token outside the vocabulary, a number that makes no sense
  std::int64_t add(std::span<const std::int32_t> prompt, const LlmSampling& sampling = {},
                   std::span<const std::int32_t> ends = {});
  /// False if it has ended, or there never was one. No token of it comes any more.
  bool cancel(std::int64_t request);
  /// The next token of any prompt, after a step of the model if none is left of the last one;
  /// nothing: every prompt has ended.
  /// Errors   DeviceError, also of a rank that failed, ended, or did not come within 2 minutes;
  ///          InvalidArgument if ranks were given different prompts. Ranks are at their end then
  std::optional<LlmToken> next();
  LlmCounts counts() const noexcept;

 private:
  struct State;
  explicit Llm(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

}  // namespace tilewright
