/* Transports: private side of weber/transport.h. */
#ifndef WB_RANKS_TRANSPORT_H
#define WB_RANKS_TRANSPORT_H

#include <weber/device.h>
#include <weber/transport.h>

#include "ranks/ranks.h"

extern const wb_transport wb_transport_local;

/* The transport of a file beside the plugins of devices, opened for ever. NULL: the reason says
 * why. */
const wb_transport *wb_transport_open(const char *file, char *reason, size_t reason_bytes);

const wb_device_transport *wb_device_transport_open(const char *file, char *reason,
                                                    size_t reason_bytes);

/* ---- devices.c: collectives of devices' memory; called by group.c and carrier.c ---- */

/* "NCCL" or "RCCL". */
bool wb_is_device_transport(const char *name);
/* Chooses the rank's device, and with other ranks joins them by its transport. All ranks come here
 * together, and fail together. */
bool wb_ranks_join_devices(const char *name, const wb_distributed_desc *desc, const wb_seat *seat,
                           double timeout);
/* The name of what joined; NULL: nothing. */
const char *wb_ranks_device_transport(void);

/* An event after all that the device has been given. NULL with an error recorded. */
void *wb_ranks_mark(void);
/* Queues the collective after the event `ready`, which is released; *done is an event after the
 * collective. */
wb_status wb_ranks_post(const wb_collective *c, wb_memory from, wb_memory to, void *ready,
                        void **done);
/* Whether it has happened; an error where it never will. */
wb_status wb_ranks_look_at(void *done, double since, bool *is_done);
/* What the device is given from now on runs after the event. */
wb_status wb_ranks_wait_for(void *done);
void wb_ranks_release_event(void *event);
/* Nothing of it goes on any more, so that nobody waits for it for ever. has_lost: something was
 * under way, and the device is given up, for the reason of the pending error. */
void wb_ranks_abort_devices(bool has_lost);
void wb_ranks_leave_devices(void);

/* ---- group.c, for devices.c and facts.c ---- */

/* all[r]: what rank r gave. */
wb_status wb_ranks_exchange(const void *own, size_t bytes, const void **all);
/* The most that a rank gives to it. */
size_t wb_ranks_piece_bytes(void);
/* Tells the other ranks of the pending error. */
void wb_ranks_tell(void);
/* An error where another rank is gone. */
wb_status wb_ranks_look(void);

/* Threads by the number of ranks of this machine, unless somebody has chosen. */
void wb_ranks_share_cores(const wb_seat *seat);

/* False with an error recorded where variables contradict each other. */
bool wb_seat_read(wb_seat *seat);
/* This process has taken its seat: what it starts has none there, and is a group of its own. */
void wb_seat_mark(void);
/* Of WEBER_TIMEOUT, else 600; false with an error recorded if it is not a duration. */
bool wb_timeout_read(double *seconds);

#endif
