// Ranks that find each other by TCP, and lose each other in every way.
#include "comm/rendezvous.h"

#include "base/error.h"
#include "comm/socket.h"
#include "tests/base/scoped_env.h"

#include <atomic>
#include <chrono>
#include <csignal>
#include <exception>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace tilewright::comm {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

// Below those that the system gives to sockets that connect.
int free_port() {
  static std::atomic<int> next = 0;
  return 10000 + static_cast<int>(::getpid() % 1200) * 8 + next++ % 100;
}

Launch launch_of(int rank, int size, int port) {
  return {.rank = rank, .size = size, .host = "127.0.0.1", .port = port};
}

std::string error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

// The sentences that threads end with, each a rank of `launches`.
std::vector<std::string> on_threads(const std::vector<Launch>& launches,
                                    const std::function<void(Rendezvous&)>& body,
                                    std::chrono::milliseconds timeout = 5s) {
  std::vector<std::string> texts(launches.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < launches.size(); ++i)
    threads.emplace_back([&, i] {
      texts[i] = error_of([&] {
        Rendezvous rendezvous(launches[i], timeout);
        body(rendezvous);
      });
    });
  for (std::thread& thread : threads) thread.join();
  return texts;
}

std::vector<Launch> ranks(int size) {
  const int port = free_port();
  std::vector<Launch> launches;
  for (int r = 0; r < size; ++r) launches.push_back(launch_of(r, size, port));
  return launches;
}

TEST(Rendezvous, SharesTheBytesOfRank0AndWaitsForAll) {
  for (const int size : {1, 2, 4}) {
    std::atomic<int> num_before = 0;
    const auto texts = on_threads(ranks(size), [&](Rendezvous& rendezvous) {
      std::vector<std::byte> bytes(128, std::byte(rendezvous.rank() + 1));
      rendezvous.share(bytes);
      EXPECT_EQ(bytes, std::vector<std::byte>(128, std::byte{1}));
      ++num_before;
      rendezvous.barrier();
      EXPECT_EQ(num_before, size);
      rendezvous.barrier();
      EXPECT_EQ(rendezvous.failure(), "");
    });
    for (const std::string& text : texts) EXPECT_EQ(text, "");
  }
}

// A goodbye is no failure, but may be asked for; who fails says none.
TEST(Rendezvous, SaysWhoHasLeft) {
  for (const bool has_failed : {false, true}) {
    std::atomic<bool> is_over = false;
    const auto texts = on_threads(ranks(3), [&](Rendezvous& rendezvous) {
      rendezvous.barrier();
      if (rendezvous.rank() == 2) {
        if (has_failed) fail(ErrorKind::kInternal, "planted");
        rendezvous.leave();
      }
      if (rendezvous.rank() == 1) is_over.wait(false);
      if (rendezvous.rank() != 0) return;
      const auto until = std::chrono::steady_clock::now() + 5s;
      while (rendezvous.left().empty() && rendezvous.failure().empty() &&
             std::chrono::steady_clock::now() < until)
        std::this_thread::sleep_for(1ms);
      EXPECT_EQ(rendezvous.left(), has_failed ? "" : "rank 2 of 3");
      EXPECT_EQ(rendezvous.failure(), has_failed ? "rank 2 of 3 has ended without a word" : "");
      is_over = true;
      is_over.notify_all();
    });
    EXPECT_EQ(texts[0], "");
    EXPECT_EQ(texts[2], has_failed ? "planted" : "");
  }
}

// Strangers find every open port.
TEST(Rendezvous, IgnoresStrangers) {
  const auto launches = ranks(2);
  std::thread stranger([&] {
    const Socket socket =
        Socket::connect("127.0.0.1", launches[0].port, std::chrono::steady_clock::now() + 5s);
    socket.send({MessageKind::kBarrier, "GET / HTTP/1.1"});
  });
  std::vector<std::string> texts(2);
  std::thread late;
  texts[0] = error_of([&] {
    std::thread second([&] {
      std::this_thread::sleep_for(100ms);
      texts[1] = error_of([&] { Rendezvous rendezvous(launches[1], 5s); });
    });
    late = std::move(second);
    Rendezvous rendezvous(launches[0], 5s);
  });
  stranger.join();
  late.join();
  EXPECT_EQ(texts[0], "");
  EXPECT_EQ(texts[1], "");
}

// Whatever they send: cut messages, lengths beyond all bounds, bytes at random. Ranks come after.
TEST(Rendezvous, SurvivesWhatStrangersSend) {
  const auto launches = ranks(2);
  std::vector<std::string> texts(2);
  std::thread rank_0([&] { texts[0] = error_of([&] { Rendezvous all(launches[0], 20s); }); });
  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) {
    std::string bytes = "TWK1";
    bytes.resize(static_cast<std::size_t>(random() % 40));
    const std::size_t kept = random() % 2 == 0 ? 4 : 0;  // the mark is right, or nothing is
    for (std::size_t k = kept; k < bytes.size(); ++k)
      bytes[k] = static_cast<char>(random() % (i % 3 == 0 ? 8 : 256));
    const int stranger = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
    address.sin_port = ::htons(static_cast<std::uint16_t>(launches[0].port));
    while (::connect(stranger, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
      std::this_thread::sleep_for(1ms);
    ::send(stranger, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    ::close(stranger);
  }
  texts[1] = error_of([&] { Rendezvous all(launches[1], 20s); });
  rank_0.join();
  EXPECT_EQ(texts[0], "");
  EXPECT_EQ(texts[1], "");
}

TEST(Rendezvous, WrongNumberOfRanks) {
  const int port = free_port();
  const auto texts = on_threads({launch_of(0, 2, port), launch_of(1, 4, port)}, [](Rendezvous&) {});
  for (const std::string& text : texts)
    EXPECT_EQ(text,
              "ranks: rank 1 was started as one of 4 ranks, rank 0 as one of 2; start all "
              "with the same number");
}

TEST(Rendezvous, TwoProcessesOfOneRank) {
  const int port = free_port();
  const auto texts = on_threads(
      {launch_of(0, 3, port), launch_of(1, 3, port), launch_of(1, 3, port)}, [](Rendezvous&) {});
  EXPECT_THAT(texts[0], HasSubstr("two processes are rank 1 of 3"));
  EXPECT_THAT(texts[1], HasSubstr("two processes are rank 1 of 3"));
  EXPECT_THAT(texts[2], HasSubstr("two processes are rank 1 of 3"));
}

TEST(Rendezvous, RanksThatDoNotCome) {
  const auto launches = ranks(3);
  const auto without_2 = on_threads(
      {launches[0], launches[1]}, [](Rendezvous&) {}, 300ms);
  EXPECT_THAT(without_2[0], HasSubstr("2 of 3 ranks came to 127.0.0.1:"));
  EXPECT_THAT(without_2[1], HasSubstr("ranks: "));
  const auto without_0 = on_threads(
      {launches[1]}, [](Rendezvous&) {}, 100ms);
  EXPECT_THAT(without_0[0], HasSubstr("rank 1 of 3 cannot reach rank 0 at 127.0.0.1:"));
  Launch nowhere = launches[1];
  nowhere.host = "no.such.host.invalid";
  EXPECT_THAT(on_threads({nowhere}, [](Rendezvous&) {})[0],
              HasSubstr("the host \"no.such.host.invalid\""));
}

TEST(Rendezvous, TheAddressIsTaken) {
  const auto launches = ranks(2);
  const Socket taken = Socket::listen("127.0.0.1", launches[0].port);
  EXPECT_THAT(error_of([&] { Rendezvous rendezvous(launches[0], 100ms); }),
              HasSubstr("rank 0 cannot listen at 127.0.0.1:"));
}

TEST(Rendezvous, ARankThatFailsSaysWhyToAll) {
  const auto texts = on_threads(ranks(3), [&](Rendezvous& rendezvous) {
    rendezvous.barrier();
    if (rendezvous.rank() == 2) return rendezvous.tell_failure("no memory\nat all");
    rendezvous.barrier();
  });
  EXPECT_EQ(texts[0], "ranks: rank 2 of 3 failed: no memory at all");
  EXPECT_EQ(texts[1], texts[0]);
}

TEST(Rendezvous, ARankThatIsDoneIsNoFailureUntilItIsNeeded) {
  const auto texts = on_threads(ranks(2), [&](Rendezvous& rendezvous) {
    if (rendezvous.rank() == 1) return;
    std::this_thread::sleep_for(50ms);
    EXPECT_EQ(rendezvous.failure(), "");
    rendezvous.barrier();
  });
  EXPECT_THAT(texts[0], HasSubstr("rank 1 of 2 has ended, and rank 0 of 2 waits for it"));
}

// A rank says goodbye before it frees what others read, and that waits for them.
TEST(Rendezvous, ABarrierBehindGoodbyes) {
  const auto texts = on_threads(ranks(3), [](Rendezvous& rendezvous) {
    rendezvous.leave();
    std::this_thread::sleep_for(20ms * rendezvous.rank());
    rendezvous.barrier();
  });
  for (const std::string& text : texts) EXPECT_EQ(text, "");
}

// One that leaves alone waits in its last barrier until the others know that nobody comes.
TEST(Rendezvous, ALastBarrierEndsWhenTheOthersGiveUp) {
  const auto begin = std::chrono::steady_clock::now();
  const auto texts = on_threads(
      ranks(2),
      [](Rendezvous& rendezvous) {
        if (rendezvous.rank() == 1) {
          rendezvous.leave();
          return rendezvous.barrier();
        }
        while (rendezvous.left().empty()) std::this_thread::sleep_for(1ms);
        rendezvous.tell_failure("rank 1 has ended, and rank 0 waits for it");
      },
      20s);
  EXPECT_THAT(texts[1], HasSubstr("rank 0 of 2 failed: rank 1 has ended"));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s);
}

// A process that the system ends: nobody says goodbye.
TEST(Rendezvous, AProcessThatIsKilled) {
  const auto launches = ranks(3);
  const ::pid_t child = ::fork();
  if (child == 0) {
    Rendezvous rendezvous(launches[2], 10s);
    ::raise(SIGKILL);
  }
  const auto begin = std::chrono::steady_clock::now();
  const auto texts = on_threads(
      {launches[0], launches[1]}, [](Rendezvous& rendezvous) { rendezvous.barrier(); }, 10s);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(texts[0], "ranks: rank 2 of 3 has ended without a word");
  EXPECT_EQ(texts[1], texts[0]);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s);
}

class LauncherTest : public ::testing::Test {
 protected:
  // What may be set where the tests run.
  std::vector<std::unique_ptr<ScopedEnv>> cleared_ = [] {
    std::vector<std::unique_ptr<ScopedEnv>> all;
    for (const char* name : {"RANK",
                             "WORLD_SIZE",
                             "LOCAL_RANK",
                             "LOCAL_WORLD_SIZE",
                             "MASTER_ADDR",
                             "MASTER_PORT",
                             "OMPI_COMM_WORLD_RANK",
                             "OMPI_COMM_WORLD_SIZE",
                             "PMI_RANK",
                             "PMI_SIZE",
                             "MPI_LOCALRANKID",
                             "MPI_LOCALNRANKS",
                             "SLURM_PROCID",
                             "SLURM_NTASKS",
                             "SLURM_LOCALID",
                             "SLURM_NTASKS_PER_NODE",
                             "SLURM_STEP_NUM_NODES",
                             "SLURM_NNODES",
                             "SLURM_STEP_NODELIST",
                             "SLURM_JOB_NODELIST",
                             "SLURM_NODELIST",
                             "TILEWRIGHT_RENDEZVOUS"})
      all.push_back(std::make_unique<ScopedEnv>(name, ""));
    return all;
  }();

  static Launch read_launch_at(const char* host) {
    const ScopedEnv address("MASTER_ADDR", host);
    return read_launch();
  }
};

TEST_F(LauncherTest, NobodyStartedIt) {
  EXPECT_EQ(read_launch().size, 1);
  EXPECT_EQ(read_launch().started_by, "");
}

TEST_F(LauncherTest, Torchrun) {
  const ScopedEnv rank("RANK", "5"), size("WORLD_SIZE", "8"), local("LOCAL_RANK", "1"),
      host("MASTER_ADDR", "node0"), port("MASTER_PORT", "29500");
  const Launch launch = read_launch();
  EXPECT_EQ(launch.rank, 5);
  EXPECT_EQ(launch.size, 8);
  EXPECT_EQ(launch.local_rank, 1);
  EXPECT_EQ(launch.host, "node0");
  EXPECT_EQ(launch.port, 29501);  // torchrun itself listens at 29500
  EXPECT_EQ(launch.started_by, "torchrun");
}

TEST_F(LauncherTest, MpirunAndSlurmOnOneHost) {
  {
    const ScopedEnv rank("OMPI_COMM_WORLD_RANK", "1"), size("OMPI_COMM_WORLD_SIZE", "2"),
        local("OMPI_COMM_WORLD_LOCAL_RANK", "1"), there("OMPI_COMM_WORLD_LOCAL_SIZE", "2");
    EXPECT_EQ(read_launch().host, "127.0.0.1");
    EXPECT_EQ(read_launch().started_by, "mpirun");
  }
  const ScopedEnv rank("SLURM_PROCID", "3"), size("SLURM_NTASKS", "4"), local("SLURM_LOCALID", "3"),
      job("SLURM_JOB_ID", "4711");
  const Launch launch = read_launch();
  EXPECT_EQ(launch.rank, 3);
  EXPECT_EQ(launch.started_by, "Slurm");
  EXPECT_GE(launch.port, 29600);
  EXPECT_LT(launch.port, 31600);
  const ScopedEnv other("SLURM_JOB_ID", "4712");
  EXPECT_NE(read_launch().port, launch.port);
}

// What ray.train.torch.TorchTrainer sets: as torchrun, but nothing of an agent.
TEST_F(LauncherTest, RayTrain) {
  const ScopedEnv rank("RANK", "3"), size("WORLD_SIZE", "4"), local("LOCAL_RANK", "1"),
      local_size("LOCAL_WORLD_SIZE", "2"), node("NODE_RANK", "1"), host("MASTER_ADDR", "10.0.0.7"),
      port("MASTER_PORT", "41234");
  const Launch launch = read_launch();
  EXPECT_EQ(launch.rank, 3);
  EXPECT_EQ(launch.size, 4);
  EXPECT_EQ(launch.local_rank, 1);
  EXPECT_EQ(launch.host, "10.0.0.7");
  EXPECT_EQ(launch.port, 41235);
}

// Hydra, of MPICH and Intel MPI.
TEST_F(LauncherTest, Pmi) {
  const ScopedEnv rank("PMI_RANK", "3"), size("PMI_SIZE", "4"), local("MPI_LOCALRANKID", "3");
  {
    const ScopedEnv all("MPI_LOCALNRANKS", "4");
    EXPECT_EQ(read_launch().rank, 3);
    EXPECT_EQ(read_launch().size, 4);
    EXPECT_EQ(read_launch().local_rank, 3);
    EXPECT_EQ(read_launch().host, "127.0.0.1");
    EXPECT_EQ(read_launch().started_by, "mpirun");
  }
  const ScopedEnv half("MPI_LOCALNRANKS", "2"), second("MPI_LOCALRANKID", "1");
  EXPECT_THAT(error_of([] { read_launch(); }),
              HasSubstr("2 of 4 ranks are on this host, and MASTER_ADDR is not set"));
  const ScopedEnv host("MASTER_ADDR", "node0");
  EXPECT_EQ(read_launch().host, "node0");
  EXPECT_EQ(read_launch().local_rank, 1);
}

// mpirun starts its proxies by srun, one a host, and ranks see what that set.
TEST_F(LauncherTest, PmiInAJobOfSlurm) {
  const ScopedEnv rank("PMI_RANK", "0"), size("PMI_SIZE", "16"), local("MPI_LOCALRANKID", "0"),
      proxy("SLURM_PROCID", "0"), proxies("SLURM_NTASKS", "2"), localid("SLURM_LOCALID", "0"),
      host("MASTER_ADDR", "node0");
  EXPECT_EQ(read_launch().size, 16);
  EXPECT_EQ(read_launch().started_by, "mpirun");
}

// srun -N2 -n16: nothing says how many ranks a host has.
TEST_F(LauncherTest, SlurmOnSeveralHosts) {
  const ScopedEnv rank("SLURM_PROCID", "9"), size("SLURM_NTASKS", "16"),
      local("SLURM_LOCALID", "1"), hosts("SLURM_NNODES", "2");
  const auto host_of = [](const char* list) {
    const ScopedEnv names("SLURM_JOB_NODELIST", list);
    return read_launch().host;
  };
  EXPECT_EQ(host_of("node[07-09,12],gpu1"), "node07");
  EXPECT_EQ(host_of("node[3,5]"), "node3");
  EXPECT_EQ(host_of("gpu-a,gpu-b"), "gpu-a");
  EXPECT_EQ(host_of("rack[2-3]-node[1-4]"), "rack2-node1");
  EXPECT_EQ(host_of("n[1-2].cluster,m"), "n1.cluster");
  for (const char* wrong : {"", "node[07-09", "["})
    EXPECT_THAT(error_of([&] { host_of(wrong); }),
                HasSubstr("16 ranks are on 2 hosts, and neither SLURM_STEP_NODELIST nor "
                          "SLURM_JOB_NODELIST names them; set MASTER_ADDR"))
        << wrong;
  {
    const ScopedEnv pmi("PMI_RANK", "9"), pmi_size("PMI_SIZE", "16");  // --mpi=pmi2
    EXPECT_EQ(host_of("node[07-09]"), "node07");
    EXPECT_EQ(read_launch_at("node0").local_rank, 1);
    EXPECT_EQ(read_launch_at("node0").started_by, "Slurm");
  }
  const ScopedEnv job("SLURM_JOB_NODELIST", "node[1-4]");
  const ScopedEnv step("SLURM_STEP_NODELIST", "node[3-4]");
  EXPECT_EQ(read_launch().host, "node3");
  {
    const ScopedEnv one("SLURM_STEP_NUM_NODES", "1");  // of a job of several
    EXPECT_EQ(read_launch().host, "127.0.0.1");
  }
  EXPECT_EQ(read_launch_at("node8").host, "node8");
}

TEST_F(LauncherTest, SaysWhatIsWrong) {
  const ScopedEnv size("WORLD_SIZE", "2");
  const auto text = [] { return error_of([] { read_launch(); }); };
  {
    const ScopedEnv rank("RANK", "2");
    EXPECT_EQ(text(), "ranks: RANK is 2 and WORLD_SIZE is 2; expected a rank from 0 to 1");
  }
  {
    const ScopedEnv rank("RANK", "one");
    EXPECT_THAT(text(), HasSubstr("environment variable RANK is \"one\""));
  }
  const ScopedEnv rank("RANK", "1");
  {
    const ScopedEnv local("LOCAL_WORLD_SIZE", "1");
    EXPECT_THAT(text(), HasSubstr("1 of 2 ranks are on this host, and MASTER_ADDR is not set"));
  }
  for (const char* wrong : {"node0", ":1", "node0:", "node0:99999", "node0:1x"}) {
    const ScopedEnv address("TILEWRIGHT_RENDEZVOUS", wrong);
    EXPECT_THAT(text(), HasSubstr("expected HOST:PORT")) << wrong;
  }
  const ScopedEnv address("TILEWRIGHT_RENDEZVOUS", "node0:1234");
  EXPECT_EQ(read_launch().host, "node0");
  EXPECT_EQ(read_launch().port, 1234);
}

}  // namespace
}  // namespace tilewright::comm
