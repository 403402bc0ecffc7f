/* Reads WEBER_PACE: the time that each message takes, and the rate of its bytes. */
#include "ranks/pace.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

typedef struct unit {
    const char *name;
    double value;
} unit;

/* A number from 1e-6 to 1e6 and its unit, up to `end`. */
static bool read_part(const char *text, const char *end, const unit *units, double *value) {
    char *behind;
    const double number = strtod(text, &behind);
    if (behind == text || !(number >= 1e-6 && number <= 1e6) || behind > end) return false;
    for (const unit *u = units; u->name; u++)
        if (strlen(u->name) == (size_t)(end - behind) &&
            strncmp(u->name, behind, (size_t)(end - behind)) == 0) {
            *value = number * u->value;
            return true;
        }
    return false;
}

bool wb_pace_read(wb_pace *pace) {
    static const unit times[] = {{"us", 1e-6}, {"ms", 1e-3}, {"s", 1}, {NULL, 0}};
    static const unit rates[] = {{"kB/s", 1e3}, {"MB/s", 1e6}, {"GB/s", 1e9}, {NULL, 0}};
    const char *text = getenv("WEBER_PACE");
    *pace = (wb_pace){0, 0};
    if (!text || !*text) return true;
    const char *comma = strchr(text, ',');
    double rate;
    if (comma && read_part(text, comma, times, &pace->alpha) &&
        read_part(comma + 1, text + strlen(text), rates, &rate)) {
        pace->beta = 1 / rate;
        return true;
    }
    (void)wb_fail(WB_ERROR_ARGUMENT,
                  "distributed: WEBER_PACE must be the time of a message (us, ms or s) and the "
                  "rate of its bytes (kB/s, MB/s or GB/s), each from 1e-6 to 1e6 of its unit, as "
                  "in 1000us,100MB/s, got \"%s\"",
                  text);
    return false;
}
