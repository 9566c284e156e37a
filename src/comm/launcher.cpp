#include "comm/launcher.h"

#include "base/env.h"
#include "base/error.h"
#include "base/quote.h"

#include <charconv>
#include <cstdint>
#include <string_view>

namespace tilewright::comm {

namespace {

constexpr ErrorKind kWrong = ErrorKind::kInvalidArgument;
constexpr int kMostRanks = 1 << 16, kMostPort = 65535;

struct Launcher {
  const char *name, *rank, *size, *local_rank, *local_size, *job;
};
constexpr Launcher kLaunchers[] = {
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "TORCHELASTIC_RUN_ID"},
    {"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE", "PMIX_NAMESPACE"},
    {"mpirun", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", "PMI_PORT"},
    {"Slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_NTASKS_PER_NODE",
     "SLURM_JOB_ID"}};

// The same on all ranks of a job, and seldom that of another.
int port_of_job(std::string_view job) {
  std::uint32_t hash = 2166136261U;  // FNV-1a
  for (const char c : job) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  return 29600 + static_cast<int>(hash % 2000);
}

void parse_address(const std::string& text, Launch& launch) {
  const std::size_t colon = text.rfind(':');
  int port = 0;
  const char* const first = text.data() + (colon == std::string::npos ? text.size() : colon + 1);
  const auto [end, error] = std::from_chars(first, text.data() + text.size(), port);
  const bool is_number = error == std::errc() && end == text.data() + text.size();
  require(is_number && colon > 0 && port >= 1 && port <= kMostPort, kWrong,
          "environment variable TILEWRIGHT_RENDEZVOUS is {}; expected HOST:PORT, where rank 0 can "
          "listen, with a port from 1 to {}",
          quote(text), kMostPort);
  launch.host = text.substr(0, colon);
  launch.port = port;
}

void find_address(const Launcher& launcher, Launch& launch) {
  const std::string text = env_text("TILEWRIGHT_RENDEZVOUS");
  if (!text.empty()) return parse_address(text, launch);
  const auto port = env_int("MASTER_PORT", 1, kMostPort - 1);
  launch.port = port ? static_cast<int>(*port) + 1 : port_of_job(env_text(launcher.job));
  launch.host = env_text("MASTER_ADDR");
  if (!launch.host.empty()) return;
  const auto local_size = env_int(launcher.local_size, 1, kMostRanks);
  require(!local_size || *local_size == launch.size, kWrong,
          "ranks: {} of {} ranks are on this host, and MASTER_ADDR is not set; set it to the host "
          "of rank 0, or TILEWRIGHT_RENDEZVOUS to HOST:PORT",
          *local_size, launch.size);
  launch.host = "127.0.0.1";
}

}  // namespace

Launch read_launch() {
  for (const Launcher& launcher : kLaunchers) {
    const auto rank = env_int(launcher.rank, 0, kMostRanks);
    const auto size = env_int(launcher.size, 1, kMostRanks);
    if (!rank || !size) continue;
    require(*rank < *size, kWrong, "ranks: {} is {} and {} is {}; expected a rank from 0 to {}",
            launcher.rank, *rank, launcher.size, *size, *size - 1);
    Launch launch;
    launch.rank = static_cast<int>(*rank);
    launch.size = static_cast<int>(*size);
    launch.local_rank =
        static_cast<int>(env_int(launcher.local_rank, 0, kMostRanks).value_or(*rank));
    launch.started_by = launcher.name;
    find_address(launcher, launch);
    return launch;
  }
  return {};
}

}  // namespace tilewright::comm
