/* Every rank first sends its version and a random number, then an authentication code of all these
 * messages, which cannot be made without the secret. The code is SipHash-2-4 (Aumasson and
 * Bernstein 2012); because of the random numbers a code from another run is not valid. */
#include "ranks/greeting.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/error.h"
#include "base/memory.h"
#include "ranks/told.h"
#include "ranks/transport.h"

#define LAYOUT 2u /* of what ranks exchange (wb_collective, place of devices.c); changes with it */

enum { DIGITS = 16 }; /* of a word */

static const wb_greeting plain = {.mark = "weber", .layout = LAYOUT, .version = WEBER_VERSION};

/* ---- a code of bytes that only a process with the key can make ---- */

static uint64_t turn(uint64_t x, int bits) { return x << bits | x >> (64 - bits); }

static void mix(uint64_t v[4], int rounds) {
    for (int i = 0; i < rounds; i++) {
        v[0] += v[1], v[1] = turn(v[1], 13) ^ v[0], v[0] = turn(v[0], 32);
        v[2] += v[3], v[3] = turn(v[3], 16) ^ v[2];
        v[0] += v[3], v[3] = turn(v[3], 21) ^ v[0];
        v[2] += v[1], v[1] = turn(v[1], 17) ^ v[2], v[2] = turn(v[2], 32);
    }
}

static void take_in(uint64_t v[4], uint64_t word) {
    v[3] ^= word;
    mix(v, 2);
    v[0] ^= word;
}

uint64_t wb_siphash(const uint64_t key[2], const void *bytes, size_t count) {
    uint64_t v[4] = {key[0] ^ 0x736f6d6570736575u, key[1] ^ 0x646f72616e646f6du,
                     key[0] ^ 0x6c7967656e657261u, key[1] ^ 0x7465646279746573u};
    uint64_t last = (uint64_t)count << 56, word;
    const unsigned char *at = bytes;
    for (size_t i = 0; i < count / 8; i++) {
        memcpy(&word, at + 8 * i, 8);
        take_in(v, word);
    }
    for (size_t i = count / 8 * 8; i < count; i++) last |= (uint64_t)at[i] << 8 * (i % 8);
    take_in(v, last);
    v[2] ^= 0xff;
    mix(v, 4);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* ---- the secret ---- */

static bool read_word(const char *text, uint64_t *word) {
    char digits[DIGITS + 1] = "";
    (void)snprintf(digits, sizeof digits, "%s", text);
    if (strspn(digits, "0123456789abcdefABCDEF") != DIGITS) return false;
    *word = strtoull(digits, NULL, 16);
    return true;
}

bool wb_secret_read(wb_secret *secret) {
    const char *text = getenv("WEBER_SECRET");
    *secret = (wb_secret){.is_set = text && *text};
    if (!secret->is_set) return true;
    if (strlen(text) == (size_t)2 * DIGITS && read_word(text, &secret->key[0]) &&
        read_word(text + DIGITS, &secret->key[1]))
        return true;
    (void)wb_fail(WB_ERROR_ARGUMENT,
                  "distributed: WEBER_SECRET must be 32 hexadecimal digits, got %zu letters",
                  strlen(text)); /* which are not for the log */
    return false;
}

/* ---- greetings ---- */

bool wb_greeting_make(wb_greeting *own, const wb_secret *secret) {
    *own = plain;
    own->has_secret = secret->is_set;
    if (getentropy(own->nonce, sizeof own->nonce) == 0) return true;
    (void)wb_fail(WB_ERROR_IO, "distributed: the system gives no random numbers: %s",
                  strerror(errno));
    return false;
}

static wb_status fail_version(int rank, const wb_greeting *other) {
    char version[sizeof other->version + 1];
    wb_copy_told(version, sizeof version, other->version, sizeof other->version);
    return wb_fail(WB_ERROR_ARGUMENT,
                   "distributed: all ranks must have the same version of Weber, but rank %d has "
                   "\"%s\", layout %u; this one has \"%s\", layout %u",
                   rank, version, other->layout, plain.version, LAYOUT);
}

wb_status wb_greetings_check(const wb_greeting *all, int size) {
    for (int r = 0; r < size; r++)
        if (memcmp(all[r].mark, plain.mark, sizeof plain.mark) != 0 || all[r].layout != LAYOUT ||
            memcmp(all[r].version, plain.version, sizeof plain.version) != 0)
            return fail_version(r, &all[r]);
    for (int r = 1; r < size; r++)
        if (all[r].has_secret != all[0].has_secret)
            return wb_fail(WB_ERROR_ARGUMENT,
                           "distributed: all ranks or none must have the secret of the run "
                           "(WEBER_SECRET), but rank %d has %s, rank 0 %s",
                           r, all[r].has_secret ? "one" : "none",
                           all[0].has_secret ? "one" : "none");
    return WB_OK;
}

uint64_t wb_greeting_proof(const wb_secret *secret, const wb_greeting *all, int size, int rank) {
    const uint64_t words[2] = {wb_siphash(secret->key, all, sizeof *all * (size_t)size),
                               (uint64_t)rank};
    return wb_siphash(secret->key, words, sizeof words);
}

static wb_status check_proofs(const wb_secret *secret, const wb_greeting *all,
                              const void *const *proofs, int size) {
    for (int r = 0; r < size; r++) {
        const uint64_t wanted = wb_greeting_proof(secret, all, size, r);
        if (memcmp(proofs[r], &wanted, sizeof wanted) == 0) continue;
        return wb_fail(WB_ERROR_ARGUMENT,
                       "distributed: rank %d does not have the secret of this run (WEBER_SECRET), "
                       "so it belongs to another run",
                       r);
    }
    return WB_OK;
}

static wb_status greet(const wb_secret *secret, int rank, int size, wb_greeting *all) {
    static const void *given[WB_MOST_RANKS];
    wb_greeting own;
    if (!wb_greeting_make(&own, secret)) return wb_error_status();
    wb_status status = wb_ranks_exchange(&own, sizeof own, given);
    for (int r = 0; status == WB_OK && r < size; r++) memcpy(&all[r], given[r], sizeof own);
    if (status == WB_OK) status = wb_greetings_check(all, size);
    if (status != WB_OK) return status;
    const uint64_t proof = wb_greeting_proof(secret, all, size, rank);
    status = wb_ranks_exchange(&proof, sizeof proof, given);
    return status == WB_OK ? check_proofs(secret, all, given, size) : status;
}

wb_status wb_ranks_greet(const wb_secret *secret, int rank, int size) {
    wb_greeting *all = wb_alloc_list(size, sizeof *all);
    const wb_status status = all ? greet(secret, rank, size, all) : WB_ERROR_MEMORY;
    wb_release(all);
    return status;
}
