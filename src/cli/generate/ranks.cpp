#include "cli/generate/ranks.h"

#include "base/env.h"
#include "base/error.h"
#include "cli/tool/interrupt.h"
#include "comm/launcher.h"
#include "comm/thread_group.h"
#include "model/checkpoint/memory.h"
#include "model/kernel_runner/ranked_runner.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace tilewright::cli {

namespace {

constexpr ErrorKind kBadRanks = ErrorKind::kInvalidArgument;

std::string device_asked_for(const Context& context) {
  return context.device.empty() ? env_text("TILEWRIGHT_DEVICE") : context.device;
}

// One that was free a moment ago.
int free_local_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  const bool is_found = ::bind(socket, reinterpret_cast<sockaddr*>(&address), length) == 0 &&
                        ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &length) == 0;
  ::close(socket);
  require(is_found, ErrorKind::kDeviceError,
          "ranks: no free port on 127.0.0.1; name one with TILEWRIGHT_RENDEZVOUS=HOST:PORT");
  return ::ntohs(address.sin_port);
}

void set_variable(const char* name, const std::string& value) {
  ::setenv(name, value.c_str(), 1);
}

// In the new process. What handles signals there is a thread, which it has not inherited: without
// one of its own a signal would be told to the process that has started it.
void become_rank(int rank, int size, int port) {
  install_signal_handlers();
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  for (const char* name : {"RANK", "LOCAL_RANK"}) set_variable(name, std::to_string(rank));
  for (const char* name : {"WORLD_SIZE", "LOCAL_WORLD_SIZE"})
    set_variable(name, std::to_string(size));
  set_variable("TILEWRIGHT_RENDEZVOUS", fmt::format("127.0.0.1:{}", port));
}

// Ends those that are left, gently first: they have heard from the failed one already, if they can.
void end_processes(const std::vector<pid_t>& left) {
  for (const int signal : {0, SIGTERM, SIGKILL}) {
    if (signal != 0)
      for (const pid_t process : left) ::kill(process, signal);
    for (int i = 0; i < 20 && signal != SIGKILL; ++i) {
      bool is_any_left = false;
      for (const pid_t process : left) {
        siginfo_t info{};
        const int options = WEXITED | WNOHANG | WNOWAIT;
        is_any_left |=
            ::waitid(P_PID, static_cast<id_t>(process), &info, options) == 0 && info.si_pid == 0;
      }
      if (!is_any_left) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  }
  for (const pid_t process : left) ::waitpid(process, nullptr, 0);
}

// The first failure decides: a process that ends by itself has said why.
int wait_for_ranks(std::vector<pid_t> processes) {
  const std::size_t size = processes.size();
  std::vector<pid_t> left = processes;
  while (!left.empty()) {
    int status = 0;
    const pid_t ended = ::waitpid(-1, &status, 0);
    if (std::erase(left, ended) == 0) continue;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) continue;
    end_processes(left);
    if (WIFEXITED(status)) return WEXITSTATUS(status);
    const auto rank = std::find(processes.begin(), processes.end(), ended) - processes.begin();
    fail(ErrorKind::kDeviceError, "ranks: rank {} of {} was ended by signal {} ({})", rank, size,
         WTERMSIG(status), ::strsignal(WTERMSIG(status)));
  }
  return 0;
}

void be_silent() {
  if (std::freopen("/dev/null", "w", stdout) == nullptr)
    fail(ErrorKind::kInternal, "ranks: /dev/null cannot be opened");
  set_variable("TERM",
               "dumb");  // no progress: the lines of several ranks would overwrite each other
}

// The weights of a rank, if the device has room for what it is to do.
model::OpenShare share_opener(const ModelArgs& model, const model::RunnerOptions& options,
                              std::int64_t sequences, bool has_runner = true) {
  return [&, sequences, has_runner](const Device& device, const model::Share& share) {
    require_room(device, model, options, sequences, share, has_runner);
    auto weights = open_weights(model, share, options.has_draft);
    model::require_memory(device, *weights, options, sequences, has_runner);
    return weights;
  };
}

std::shared_ptr<const model::Weights> no_weights(const Device&, const model::Share&) {
  return nullptr;
}

}  // namespace

void add_rank_options(CLI::App& command, RankArgs& args) {
  command
      .add_option("--gpus", args.gpus,
                  "so many of this host, each a process; with --device sim:... so many simulated "
                  "ranks")
      ->check(quiet(CLI::Range(1, 64)))
      ->type_name("N");
  command
      .add_option("--parallel", args.parallel,
                  "what ranks divide; expert: sequences and experts, for throughput; tensor: heads "
                  "and matrices, for one sequence (the default of --gpus). Also for processes that "
                  "torchrun, mpirun or srun has started")
      ->check(quiet(CLI::IsMember({"expert", "tensor"})))
      ->type_name("expert|tensor");
}

bool start_rank_processes(int size, Context& context) {
  const int port = free_local_port();
  std::vector<pid_t> processes;
  std::fflush(nullptr);
  for (int rank = 0; rank < size; ++rank) {
    const pid_t process = ::fork();
    if (process == 0) {
      become_rank(rank, size, port);
      return true;
    }
    if (process > 0) {
      processes.push_back(process);
      continue;
    }
    end_processes(processes);
    fail(ErrorKind::kOutOfMemory, "ranks: process {} of {} cannot be started", rank, size);
  }
  context.exit_status = wait_for_ranks(processes);
  return false;
}

bool begin_ranks(const RankArgs& args, Context& context) {
  const std::string device = device_asked_for(context);
  const comm::Launch launch = launch_of(args);
  check_ranks(args, launch, is_reference(context.device), fmt::format("--gpus {}", args.gpus));
  if (launch.size > 1) {
    if (launch.rank != 0) be_silent();
    return true;
  }
  if (args.gpus <= 1 || device.starts_with("sim:")) return true;
  require(model::is_any_gpu(device), kBadRanks,
          "--gpus {} --device {}: ranks take the GPUs 0 to {}; say --device cuda, and choose by "
          "CUDA_VISIBLE_DEVICES",
          args.gpus, device, args.gpus - 1);
  if (!start_rank_processes(args.gpus, context)) return false;
  if (comm::read_launch().rank != 0) be_silent();
  return true;
}

bool are_processes(const RankArgs& args) {
  return launch_of(args).size > 1;
}

std::unique_ptr<model::Runner> make_rank_runner(const RankArgs& args, const ModelArgs& model,
                                                const Context& context,
                                                const model::RunnerOptions& options,
                                                std::int64_t sequences) {
  const std::string device = device_asked_for(context);
  const comm::Launch launch = launch_of(args);
  const model::OpenShare open_share = share_opener(model, options, sequences);
  if (launch.size > 1) {
    std::unique_ptr<model::Runner> runner;
    as_process_rank(args, launch, device, open_share, [&](OpenRank rank) {
      runner = make_device_runner(rank.device, std::move(rank.weights), options, rank.comm);
    });
    return runner;
  }
  if (args.gpus > 1) {
    const Device simulated = Device::open(device);
    return model::make_ranked_runner(simulated, thread_weights(args, simulated, open_share),
                                     options);
  }
  if (!is_reference(context.device)) require_room(Device::open(device), model, options, sequences);
  return make_runner(context.device, open_weights(model, {}, options.has_draft), options,
                     sequences);
}

void run_ranks(const RankArgs& args, const ModelArgs& model, const Context& context,
               const model::RunnerOptions& options, std::int64_t sequences, bool has_runner,
               const std::function<void(OpenRank)>& work) {
  const std::string device = device_asked_for(context);
  const comm::Launch launch = launch_of(args);
  const int world = launch.size > 1 ? launch.size : std::max(1, args.gpus);
  // Of all ranks: require_memory() divides them again.
  if (world > 1 && scheme_of(args) == model::Scheme::kExpertParallel) sequences *= world;
  const model::OpenShare open_share = share_opener(model, options, sequences, has_runner);
  if (launch.size > 1) return as_process_rank(args, launch, device, open_share, work);
  const Device opened = Device::open(device);
  if (args.gpus > 1) {
    const auto weights = thread_weights(args, opened, open_share);
    comm::ThreadGroup group(args.gpus);
    return group.run([&](int rank) {
      work({opened, weights[comm::rank_idx(rank)], group.join(rank, opened)});
    });
  }
  require_room(opened, model, options, sequences);
  auto weights = open_weights(model);
  model::require_memory(opened, *weights, options, sequences);
  work({opened, std::move(weights), nullptr});
}

void run_ranks_alone(const RankArgs& args, const Context& context,
                     const std::function<void(OpenRank)>& work) {
  const std::string device = device_asked_for(context);
  const comm::Launch launch = launch_of(args);
  if (launch.size > 1) return as_process_rank(args, launch, device, no_weights, work);
  const Device opened = Device::open(device);
  if (args.gpus <= 1) return work({opened, nullptr, nullptr});
  comm::ThreadGroup group(args.gpus);
  group.run([&](int rank) { work({opened, nullptr, group.join(rank, opened)}); });
}

}  // namespace tilewright::cli
