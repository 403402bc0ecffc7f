/* Prints names from files and devices on a terminal, with control characters spelled out, so that
 * no name can steer the terminal. */
#include <stdio.h>
#include <string.h>

#include "platform/plain.h"
#include "tool.h"

void put_plain_to(FILE *file, const char *text, size_t length) {
    char piece[16], letter[8];
    for (const char *end = text + length; text < end && *text;) {
        const int bytes = wb_letter_bytes((const unsigned char *)text);
        (void)snprintf(letter, sizeof letter, "%.*s", bytes ? bytes : 1, text);
        (void)wb_plain_text(piece, sizeof piece, 0, letter, false);
        (void)fputs(piece, file);
        text += bytes ? bytes : 1;
    }
}

void put_plain(const char *text) { put_plain_to(stdout, text, strlen(text)); }
