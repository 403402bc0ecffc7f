/* What ranks exchange first: they show that they have the same version, and that each knows the
 * secret of the run, which is in its environment (WEBER_SECRET) and is not sent. */
#ifndef WB_RANKS_GREETING_H
#define WB_RANKS_GREETING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weber/error.h>

/* The size and the first three fields are the same in all versions. */
typedef struct wb_greeting {
    char mark[8];
    uint32_t layout; /* version of the data that ranks exchange later */
    uint32_t has_secret;
    char version[32];
    uint64_t nonce[2]; /* random, so that proofs from other runs are not valid */
} wb_greeting;

typedef struct wb_secret {
    uint64_t key[2];
    bool is_set;
} wb_secret;

/* Reads WEBER_SECRET: 32 hexadecimal digits, or not set. False with an error recorded. */
bool wb_secret_read(wb_secret *secret);

/* Exchanges greetings and proofs: an error if a rank has another version, or does not know the
 * secret. */
wb_status wb_ranks_greet(const wb_secret *secret, int rank, int size);

/* ---- its parts ---- */

bool wb_greeting_make(wb_greeting *own, const wb_secret *secret);
/* Checks the greetings; the result is the same on all ranks. */
wb_status wb_greetings_check(const wb_greeting *all, int size);
/* The proof of a rank: an authentication code of all greetings and its number, made with the
 * secret. */
uint64_t wb_greeting_proof(const wb_secret *secret, const wb_greeting *all, int size, int rank);

/* SipHash-2-4 (Aumasson and Bernstein 2012). */
uint64_t wb_siphash(const uint64_t key[2], const void *bytes, size_t count);

#endif
