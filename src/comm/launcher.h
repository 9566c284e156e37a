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
///     torchrun, Ray Train, hand  RANK, WORLD_SIZE, LOCAL_RANK (else RANK)
///     Open MPI's mpirun          OMPI_COMM_WORLD_RANK, _SIZE, _LOCAL_RANK
///     MPICH, Intel MPI           PMI_RANK, PMI_SIZE, MPI_LOCALRANKID
///     Slurm's srun               SLURM_PROCID, SLURM_NTASKS, SLURM_LOCALID
///
/// Where Slurm counts the same ranks as another that does not say the local one (srun --mpi=pmi2
/// sets PMI_RANK), Slurm's counts.
///
/// Rank 0 listens at TILEWRIGHT_RENDEZVOUS = HOST:PORT; without it at MASTER_ADDR and one above
/// MASTER_PORT, which torchrun itself uses. Without those: at a port that follows from the number
/// of the job, at 127.0.0.1 if all ranks are on one host, with Slurm else at the first host of
/// SLURM_STEP_NODELIST, or of SLURM_JOB_NODELIST.
///
/// Returns  rank 0 of 1, started by nobody, if none is set
/// Errors   InvalidArgument: a variable that is no number, a rank that is not below the size, ranks
///          on several hosts and no address
Launch read_launch();

}  // namespace tilewright::comm
