/* Transports: private side of weber/transport.h. */
#ifndef WB_RANKS_TRANSPORT_H
#define WB_RANKS_TRANSPORT_H

#include <weber/device.h>
#include <weber/transport.h>

#include "ranks/ranks.h"

extern const wb_transport wb_transport_local;

/* Opens the transport in a file beside the plugins of devices; never closes it. NULL: the reason
 * says why. */
const wb_transport *wb_transport_open(const char *file, char *reason, size_t reason_bytes);

const wb_device_transport *wb_device_transport_open(const char *file, char *reason,
                                                    size_t reason_bytes);

/* ---- devices.c: collectives of devices' memory; called by group.c and carrier.c ---- */

/* "NCCL" or "RCCL". */
bool wb_is_device_transport(const char *name);
/* Chooses the rank's device and, if there are other ranks, joins them by the device's transport.
 * All ranks must call it together, and fail together. */
bool wb_ranks_join_devices(const char *name, const wb_distributed_desc *desc, const wb_seat *seat,
                           double timeout);
/* The name of the transport that joined; NULL: none. */
const char *wb_ranks_device_transport(void);

/* Records an event after all work queued on the device so far. NULL with an error recorded. */
void *wb_ranks_mark(void);
/* Queues the collective after the event `ready`, which is released; *done is an event after the
 * collective. */
wb_status wb_ranks_post(const wb_collective *c, wb_memory from, wb_memory to, void *ready,
                        void **done);
/* Sets *is_done if the event has happened; an error if it never will. */
wb_status wb_ranks_look_at(void *done, double since, bool *is_done);
/* Makes later work of the device wait for the event. */
wb_status wb_ranks_wait_for(void *done);
void wb_ranks_release_event(void *event);
/* Stops all collectives on devices, so that nothing waits for them for ever. has_lost: some were
 * under way, and the device is given up because of the pending error. */
void wb_ranks_abort_devices(bool has_lost);
void wb_ranks_leave_devices(void);

/* ---- group.c, for devices.c and facts.c ---- */

/* Exchanges bytes between all ranks; all[r]: what rank r gave. */
wb_status wb_ranks_exchange(const void *own, size_t bytes, const void **all);
/* The most bytes that a rank can give to it. */
size_t wb_ranks_piece_bytes(void);
/* Tells the other ranks of the pending error. */
void wb_ranks_tell(void);
/* Fails if another rank is gone. */
wb_status wb_ranks_look(void);

/* Divides the cores of this machine among its ranks' threads, unless the number of threads was
 * set. */
void wb_ranks_share_cores(const wb_seat *seat);

/* Reads the seat from the environment. False with an error recorded if variables contradict each
 * other. */
bool wb_seat_read(wb_seat *seat);
/* Marks the seat as taken, in the environment: programs that this process starts are groups of
 * their own. */
void wb_seat_mark(void);
/* Reads WEBER_TIMEOUT in seconds, else 600; false with an error recorded if it is not a
 * duration. */
bool wb_timeout_read(double *seconds);

#endif
