/* Cores, threads, and how they wait. */
#ifndef WB_PLATFORM_THREADS_H
#define WB_PLATFORM_THREADS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* ---- cores ---- */

/* How many threads this process should compute with: the cores that it may use. On Apple's chips
 * only the fast ones count: with equal shares of work, slow cores hold up all others. */
int wb_platform_cores(void);

/* Undoes a binding of this process to some of the cores. */
void wb_platform_use_all_cores(void);

/* The core that the calling thread runs on; -1: unknown. */
int wb_platform_current_core(void);

/* Notes the cores that the process may use now, for wb_platform_leave_core. */
void wb_platform_note_cores(void);

/* If the calling thread runs on this core, moves it to any other of the noted cores. */
void wb_platform_leave_core(int core);
/* Moves the calling thread to another of its cores, if it has several; it may move back later. */
void wb_platform_change_core(void);

/* ---- threads ---- */

/* Starts a thread that gets no signals: these are for the program's own threads. */
bool wb_platform_start_thread(pthread_t *thread, void *(*run)(void *), void *context);

/* To be called by a thread that computes for a waiting caller: sets its name for debuggers (at most
 * 15 letters), and on Apple's chips asks for a fast core. */
void wb_platform_begin_work(const char *name);

/* ---- waiting ---- */

/* Sleeps until CLOCK_MONOTONIC reaches this time, to some microseconds if the system allows it. */
void wb_platform_sleep_until(double seconds);

/* Sleeps while *word, which several processes may share, equals `seen`, for at most ms
 * milliseconds. May return earlier. */
void wb_platform_sleep_on(_Atomic uint32_t *word, uint32_t seen, int ms);

/* Wakes all who sleep on the word. */
void wb_platform_wake(_Atomic uint32_t *word);

#endif
