/* An MPI program: every pair of ranks exchanges messages of many sizes, then all ranks sum arrays. Each byte is
   checked.

       mpi_exchange LARGEST_BYTES      rank 0 prints `ok RANKS` where all of it was right */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static unsigned char byte_of(int from, int to, long size, long at) {
  return (unsigned char)(from * 31 + to * 17 + size + at * 7 + (at >> 8));
}

static long exchange(int rank, int other, long size, unsigned char* out, unsigned char* in) {
  long wrong = 0;
  for (long i = 0; i < size; ++i) {
    out[i] = byte_of(rank, other, size, i);
    in[i] = 0;
  }
  MPI_Sendrecv(out, (int)size, MPI_BYTE, other, 1, in, (int)size, MPI_BYTE, other, 1, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  for (long i = 0; i < size; ++i) wrong += in[i] != byte_of(other, rank, size, i);
  return wrong;
}

static long reduce(int rank, int ranks, int count) {
  long wrong = 0;
  double* mine = malloc(sizeof(double) * (size_t)count);
  double* sum = malloc(sizeof(double) * (size_t)count);
  for (int i = 0; i < count; ++i) mine[i] = rank + i;
  MPI_Allreduce(mine, sum, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < count; ++i) wrong += sum[i] != ranks * (ranks - 1) / 2.0 + (double)ranks * i;
  free(mine);
  free(sum);
  return wrong;
}

int main(int argc, char** argv) {
  int rank, ranks;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const long largest = argc > 1 ? atol(argv[1]) : 1 << 20;
  unsigned char* out = malloc((size_t)largest);
  unsigned char* in = malloc((size_t)largest);
  long wrong = 0;
  for (long size = 1; size <= largest; size *= 4) {
    for (int turn = 1; turn < ranks; ++turn) {
      const int other = rank ^ turn;
      if (other < ranks) wrong += exchange(rank, other, size, out, in);
    }
  }
  for (int count = 1; count <= 100000; count *= 10) wrong += reduce(rank, ranks, count);
  long all = 0;
  MPI_Allreduce(&wrong, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) printf(all == 0 ? "ok %d\n" : "%d ranks, and bytes are wrong\n", ranks);
  free(out);
  free(in);
  MPI_Finalize();
  return all != 0;
}
