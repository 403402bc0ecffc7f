/* MPI_Allreduce of f32 by itself, the peer of `bench_ranks sums`; built by each mpicc. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv) {
    enum { MOST = 64 << 20, ROUNDS = 41 };
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    float *from = malloc(MOST), *to = malloc(MOST);
    for (int i = 0; i < MOST / 4; i++) from[i] = 1, to[i] = 0;
    for (int bytes = 4; bytes <= MOST; bytes *= 4) {
        double us[ROUNDS];
        const int rounds = bytes > 1 << 22 ? 9 : ROUNDS;
        for (int k = -2; k < rounds; k++) {
            MPI_Barrier(MPI_COMM_WORLD);
            const double begin = MPI_Wtime();
            MPI_Allreduce(from, to, bytes / 4, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
            if (k >= 0) us[k] = 1e6 * (MPI_Wtime() - begin);
        }
        qsort(us, (size_t)rounds, sizeof *us, ascending);
        if (rank == 0)
            printf("sum %10d %12.1f us, at least %12.1f us\n", bytes, us[rounds / 2], us[0]);
    }
    free(from), free(to);
    MPI_Finalize();
    return 0;
}
