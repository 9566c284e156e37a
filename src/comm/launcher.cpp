#include "comm/launcher.h"

#include "base/env.h"
#include "base/error.h"
#include "base/quote.h"

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

namespace tilewright::comm {

namespace {

constexpr ErrorKind kWrong = ErrorKind::kInvalidArgument;
constexpr int kMostRanks = 1 << 16, kMostPort = 65535;

struct Launcher {
  const char *name, *rank, *size, *local_rank, *local_size, *job;
};
constexpr const char* kSlurm = "Slurm";
constexpr Launcher kLaunchers[] = {
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "TORCHELASTIC_RUN_ID"},
    {"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE", "PMIX_NAMESPACE"},
    {"mpirun", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", "PMI_PORT"},
    {kSlurm, "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_NTASKS_PER_NODE",
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

// "node[07-09,12],gpu1": "node07"; "" if it is no list of hosts.
std::string first_host(std::string_view list) {
  std::string host;
  while (!list.empty() && list.front() != ',') {
    const bool is_range = list.front() == '[';
    const std::size_t end = list.find_first_of(is_range ? "]" : "[,");
    if (is_range && end == list.npos) return "";
    const std::string_view part = list.substr(is_range ? 1 : 0, is_range ? end - 1 : end);
    host += is_range ? part.substr(0, part.find_first_of(",-")) : part;
    list = end == list.npos ? std::string_view() : list.substr(end + (is_range ? 1 : 0));
  }
  return host;
}

// Where rank 0 of a step is, "" if it is not said. Not SLURM_LAUNCH_NODE_IPADDR: srun may run on a
// host that has no rank, and no rank but those on that host could tell.
std::string slurm_host() {
  for (const char* list : {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST"})
    if (std::string host = first_host(env_text(list)); !host.empty()) return host;
  return "";
}

// Of the step, or of the job where the step is not told; nothing if nobody says.
std::optional<std::int64_t> num_slurm_hosts() {
  for (const char* count : {"SLURM_STEP_NUM_NODES", "SLURM_NNODES"})
    if (const auto hosts = env_int(count, 1, kMostRanks)) return hosts;
  return std::nullopt;
}

std::string rank_0_host(const Launcher& launcher, int size) {
  const auto hosts = std::string_view(launcher.name) == kSlurm ? num_slurm_hosts() : std::nullopt;
  if (hosts && *hosts > 1) {
    std::string host = slurm_host();
    require(!host.empty(), kWrong,
            "ranks: {} ranks are on {} hosts, and neither SLURM_STEP_NODELIST nor "
            "SLURM_JOB_NODELIST names them; set MASTER_ADDR to the host of rank 0, or "
            "TILEWRIGHT_RENDEZVOUS to HOST:PORT",
            size, *hosts);
    return host;
  }
  const auto local_size = hosts ? std::nullopt : env_int(launcher.local_size, 1, kMostRanks);
  require(!local_size || *local_size == size, kWrong,
          "ranks: {} of {} ranks are on this host, and MASTER_ADDR is not set; set it to the host "
          "of rank 0, or TILEWRIGHT_RENDEZVOUS to HOST:PORT",
          *local_size, size);
  return "127.0.0.1";
}

void find_address(const Launcher& launcher, Launch& launch) {
  const std::string text = env_text("TILEWRIGHT_RENDEZVOUS");
  if (!text.empty()) return parse_address(text, launch);
  const auto port = env_int("MASTER_PORT", 1, kMostPort - 1);
  launch.port = port ? static_cast<int>(*port) + 1 : port_of_job(env_text(launcher.job));
  launch.host = env_text("MASTER_ADDR");
  if (launch.host.empty()) launch.host = rank_0_host(launcher, launch.size);
}

// `srun --mpi=pmi2` sets PMI's ranks as well, and scripts set RANK: Slurm knows more of the same.
bool is_of_slurm(const Launcher& launcher, std::int64_t rank, std::int64_t size) {
  return !env_int(launcher.local_rank, 0, kMostRanks) && env_int("SLURM_LOCALID", 0, kMostRanks) &&
         env_int("SLURM_PROCID", 0, kMostRanks) == rank &&
         env_int("SLURM_NTASKS", 1, kMostRanks) == size;
}

}  // namespace

Launch read_launch() {
  for (const Launcher& launcher : kLaunchers) {
    const auto rank = env_int(launcher.rank, 0, kMostRanks);
    const auto size = env_int(launcher.size, 1, kMostRanks);
    if (!rank || !size) continue;
    if (is_of_slurm(launcher, *rank, *size)) continue;
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
