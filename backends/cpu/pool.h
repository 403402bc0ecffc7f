/* The one thread pool of the CPU backend.
 *
 * Work is cut by shape, never by the number of threads, and every piece gives the same bits whoever
 * runs it: results are the same for any thread count. A waiting thread spins a bounded time, then
 * sleeps; a thread that another process holds up costs its piece, never a collapse (pieces are
 * claimed one by one, and the caller takes what nobody has begun). */
#ifndef WB_CPU_POOL_H
#define WB_CPU_POOL_H

#include <stdint.h>

typedef void wb_task_fn(void *context, int64_t piece, int worker);

/* Runs task(context, piece, worker) for piece = 0 .. pieces - 1 and returns when all are done.
 * worker is 0 .. wb_cpu_threads() - 1 and belongs to one running task of this call at a time: it
 * selects scratch memory. Called from inside a task it runs in line as that task's worker, whose
 * scratch memory it must not use. Two user threads may call it at once: the second runs its pieces
 * alone. */
void wb_cpu_parallel(int64_t pieces, wb_task_fn *task, void *context);

/* The same on the calling thread alone, for work that is not worth a second one. */
void wb_cpu_alone(int64_t pieces, wb_task_fn *task, void *context);

/* Threads that wb_cpu_parallel uses, the caller among them: WEBER_NUM_THREADS, else the cores that
 * this process may run on. The pool's threads start at the first parallel call that has more than
 * one piece. */
int wb_cpu_threads(void);

/* Sets the number for later calls; 0 returns to the default. Waits for the job that another thread
 * runs; within a task it does nothing. */
void wb_cpu_set_threads(int threads);

/* Until it is called with what it returned, wb_cpu_threads gives this number to the calling thread
 * and to the tasks of its jobs, for which scratch memory is reserved; 0: the number that is set. */
int wb_cpu_hold_threads(int threads);

#endif
