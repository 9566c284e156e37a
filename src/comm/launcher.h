// Which rank this process is, as the program that started it says.
#pragma once

#include <string>

namespace tilewright::comm {

/// One process among those that compute together.
struct Launch {
  int rank = 0, size = 1;
  int local_rank = 0;           ///< among those of this host: its GPU
  std::string host = {};        ///< where rank 0 listens
  int port = 0;                 ///< 1 to 65535
  std::string started_by = {};  ///< "torchrun", "mpirun", "Slurm"; "" if nobody says
};

/// Reads the environment. The first that is there counts:
///
///     torchrun, or set by hand   RANK, WORLD_SIZE, LOCAL_RANK (else RANK)
///     Open MPI's mpirun          OMPI_COMM_WORLD_RANK, _SIZE, _LOCAL_RANK
///     MPICH, Intel MPI           PMI_RANK, PMI_SIZE, MPI_LOCALRANKID
///     Slurm's srun               SLURM_PROCID, SLURM_NTASKS, SLURM_LOCALID
///
/// Rank 0 listens at TILEWRIGHT_RENDEZVOUS = HOST:PORT; without it at MASTER_ADDR and one above
/// MASTER_PORT, which torchrun itself uses; without those, if all ranks are on one host, at
/// 127.0.0.1 and a port that follows from the number of the job.
///
/// Returns  rank 0 of 1, started by nobody, if none is set
/// Errors   InvalidArgument: a variable that is no number, a rank that is not below the size, ranks
///          on several hosts and no address
Launch read_launch();

}  // namespace tilewright::comm
