/* A file read front to back; if it begins as gzip files do, through zlib. */
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
    z_stream zlib;       /* also holds the bytes read from a plain file: next_in, avail_in */
    int64_t offset;      /* bytes given out */
    int64_t file_offset; /* bytes taken from the file */
    int64_t file_bytes;  /* its size; -1: unknown, as of a pipe */
    unsigned char *input;
} wb_stream;

/* Errors name the path, which must outlive the stream. Close the stream even if this fails. */
wb_status wb_stream_open(wb_stream *stream, const char *path);
void wb_stream_close(wb_stream *stream);

/* Reads up to size bytes; fewer at the end, or where the stream is damaged. Several gzip members in
 * a row are one stream, as for gzip itself. */
size_t wb_stream_read(wb_stream *stream, void *out, size_t size);

/* Fails if bytes follow, or if a compressed stream does not reach its end with a right checksum. */
wb_status wb_stream_expect_end(wb_stream *stream);

/* Records WB_ERROR_FORMAT with path and offset, and returns it. */
wb_status wb_stream_fault(const wb_stream *stream, const char *what);

/* An error if `bytes` are more than a compressed file may become. */
wb_status wb_stream_may_become(const wb_stream *stream, int64_t bytes);

#endif
