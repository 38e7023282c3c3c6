/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "s3/s3-object.h"

#include <errno.h>
#include <sys/statvfs.h>

#include "util/file.h"

/*
 * Keeps the bytes of one object and divides them into parts. A small object is read into memory
 * once; a large one goes to a file without a name, from which each part is read when its turn
 * comes.
 */

enum { S3_CHUNK = 256 * 1024 };

void s3_object_done(S3Object *object) {
    closep(&object->fd);
    free(object->data);
    *object = (S3Object){.fd = -1};
}

/* The parts are as small as their number allows. */
static int s3_object_divide(S3Object *object) {
    uint64_t least = object->size / S3_PARTS_MAX + 1;

    object->part_bytes = MAX(least, (uint64_t)S3_PART_BYTES);
    if (object->part_bytes > S3_PART_BYTES_MAX)
        return -EFBIG;
    object->n_parts = object->size <= object->part_bytes
                          ? 1
                          : (unsigned)((object->size - 1) / object->part_bytes + 1);
    return 0;
}

static int s3_object_fill_memory(S3Object *object, S3ObjectRead read, void *userdata) {
    uint64_t at = 0;

    object->data = malloc(MAX(object->size, UINT64_C(1)));
    if (!object->data)
        return -ENOMEM;
    while (at < object->size) {
        ssize_t n = read(userdata, object->data + at, (size_t)(object->size - at));

        if (n <= 0)
            return n < 0 ? (int)n : -EPIPE;
        at += (uint64_t)n;
    }
    return 0;
}

/* An object takes half of the space that is left, at most. */
static int s3_object_check_space(int fd, uint64_t size) {
    struct statvfs fs;

    if (fstatvfs(fd, &fs) < 0)
        return -errno;
    return size / MAX(fs.f_frsize, 1UL) > fs.f_bavail / 2 ? -ENOSPC : 0;
}

static int s3_object_fill_file(S3Object *object, const char *folder, S3ObjectRead read,
                               void *userdata) {
    _cleanup_free_ uint8_t *chunk = malloc(S3_CHUNK);
    uint64_t left = object->size;
    int r;

    if (!chunk)
        return -ENOMEM;
    object->fd = file_open_unnamed(folder);
    if (object->fd < 0)
        return object->fd;
    r = s3_object_check_space(object->fd, object->size);
    if (r < 0)
        return r;
    while (left > 0) {
        ssize_t n = read(userdata, chunk, (size_t)MIN(left, (uint64_t)S3_CHUNK));

        r = n > 0 ? file_write_all(object->fd, chunk, (size_t)n) : n < 0 ? (int)n : -EPIPE;

        if (r < 0)
            return r;
        left -= (uint64_t)n;
    }
    return 0;
}

int s3_object_read(const char *folder, uint64_t size, S3ObjectRead read, void *userdata,
                   S3Object *ret) {
    _cleanup_(s3_object_done) S3Object object = {.fd = -1, .size = size};
    int r = s3_object_divide(&object);

    if (r == 0)
        r = object.n_parts == 1 ? s3_object_fill_memory(&object, read, userdata)
                                : s3_object_fill_file(&object, folder, read, userdata);
    if (r < 0)
        return r;
    *ret = object;
    object = (S3Object){.fd = -1};
    return 0;
}

int s3_object_write(const S3Object *object, int fd, const atomic_bool *stop) {
    _cleanup_free_ uint8_t *chunk = object->fd >= 0 ? malloc(S3_CHUNK) : NULL;
    uint64_t at = 0;
    int r = 0;

    r = s3_object_check_space(fd, object->size);
    if (r < 0)
        return r;
    if (object->fd < 0)
        return file_write_all(fd, object->data, (size_t)object->size);
    if (!chunk)
        return -ENOMEM;
    while (r == 0 && at < object->size) {
        ssize_t n = pread(object->fd, chunk, S3_CHUNK, (off_t)at);

        if (n <= 0)
            return n < 0 ? -errno : -EIO;
        r = atomic_load(stop) ? -ECANCELED : file_write_all(fd, chunk, (size_t)n);
        at += (uint64_t)n;
    }
    return r;
}

void s3_part_done(S3Part *part) {
    free(part->copy);
    *part = (S3Part){};
}

static int s3_object_copy_part(const S3Object *object, uint64_t offset, size_t size, S3Part *part) {
    size_t at = 0;

    part->copy = malloc(size);
    if (!part->copy)
        return -ENOMEM;
    while (at < size) {
        ssize_t n = pread(object->fd, part->copy + at, size - at, (off_t)(offset + at));

        if (n <= 0)
            return n < 0 ? -errno : -EIO;
        at += (size_t)n;
    }
    part->bytes = (Bytes){.data = part->copy, .size = size};
    return 0;
}

int s3_object_part(const S3Object *object, unsigned i, S3Part *ret) {
    uint64_t offset = i * object->part_bytes;
    size_t size = (size_t)MIN(object->part_bytes, object->size - offset);
    _cleanup_(s3_part_done) S3Part part = {};
    int r = 0;

    if (object->fd >= 0)
        r = s3_object_copy_part(object, offset, size, &part);
    else
        part.bytes = (Bytes){.data = object->data + offset, .size = size};
    if (r < 0)
        return r;
    s3_hash(part.bytes, part.hash);
    *ret = part;
    part = (S3Part){};
    return 0;
}
