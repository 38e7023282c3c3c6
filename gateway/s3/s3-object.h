/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The bytes of an object while it is uploaded: in memory if they are one part, else in a file
 * without a name. A part is read from it for each attempt, so memory holds one at most.
 */

#include <stdatomic.h>

#include "s3/s3-call.h"

enum {
    S3_PART_BYTES = 5 << 20, /* the smallest that S3 takes for a part other than the last */
    S3_PART_BYTES_MAX = 64 << 20,
    S3_PARTS_MAX = 10000,
};

typedef struct S3Object {
    int fd; /* -1: in memory */
    uint8_t *data;
    uint64_t size;
    uint64_t part_bytes;
    unsigned n_parts; /* 1: it is sent with one request */
} S3Object;

/* Reads up to n bytes, and more than none; a negative errno ends it. */
typedef ssize_t (*S3ObjectRead)(void *userdata, void *to, size_t n);

/* Reads `size` bytes; `folder` is where a file may be. -EFBIG: more than a store takes. */
int s3_object_read(const char *folder, uint64_t size, S3ObjectRead read, void *userdata,
                   S3Object *ret);
/* Writes all of it to a file; waits. -ECANCELED: *stop was set. */
int s3_object_write(const S3Object *object, int fd, const atomic_bool *stop);
void s3_object_done(S3Object *object);

typedef struct S3Part {
    Bytes bytes; /* of the object, or of `copy` */
    uint8_t *copy;
    char hash[S3_HASH_MAX];
} S3Part;

/* Reads and hashes part i, which is below n_parts: not for the main thread. */
int s3_object_part(const S3Object *object, unsigned i, S3Part *ret);
void s3_part_done(S3Part *part);
