/* A file read front to back, through zlib where it begins as gzip does. */
#ifndef WB_DATA_STREAM_H
#define WB_DATA_STREAM_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <zlib.h>

#include <weber/error.h>

typedef struct wb_stream {
    const char *path;
    FILE *file;
    bool zipped, ended;  /* ended: the last member of the compressed stream is complete */
    z_stream zlib;       /* also keeps what was read of a plain file: next_in, avail_in */
    int64_t offset;      /* bytes given out */
    int64_t file_offset; /* bytes taken from the file */
    int64_t file_bytes;  /* its size; -1: unknown, as of a pipe */
    unsigned char *input;
} wb_stream;

/* Errors name the path, which must outlive the stream. It is to be closed also where this fails. */
wb_status wb_stream_open(wb_stream *stream, const char *path);
void wb_stream_close(wb_stream *stream);

/* Up to size bytes; fewer at the end, or where the stream is damaged. gzip's members, one after
 * another, are one stream, as gzip itself has it. */
size_t wb_stream_read(wb_stream *stream, void *out, size_t size);

/* Nothing may follow, and a compressed stream has to reach its end with a right checksum. */
wb_status wb_stream_expect_end(wb_stream *stream);

/* WB_ERROR_FORMAT with path and offset. */
wb_status wb_stream_fault(const wb_stream *stream, const char *what);

/* An error if `bytes` are more than a compressed file may become. */
wb_status wb_stream_may_become(const wb_stream *stream, int64_t bytes);

#endif
