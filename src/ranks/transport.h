/* Transports: private side of weber/transport.h. */
#ifndef WB_RANKS_TRANSPORT_H
#define WB_RANKS_TRANSPORT_H

#include <weber/transport.h>

#include "ranks/ranks.h"

extern const wb_transport wb_transport_local;

/* The transport of a file beside the plugins of devices, opened for ever. NULL: the reason says
 * why. */
const wb_transport *wb_transport_open(const char *file, char *reason, size_t reason_bytes);

/* False with an error recorded where variables contradict each other. */
bool wb_seat_read(wb_seat *seat);
/* Of WEBER_TIMEOUT, else 600; false with an error recorded where that is no duration. */
bool wb_timeout_read(double *seconds);

#endif
