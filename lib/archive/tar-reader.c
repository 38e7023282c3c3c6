/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "archive/tar-reader.h"

#include <errno.h>
#include <string.h>

#include "archive/tar-header.h"

/*
 * A stream of blocks. The first bytes say whether it is compressed; the first block must have a
 * right checksum, so another kind of file is not taken for an archive. Entries that describe others
 * (long names, attributes of pax) are entries like others here, which no caller wants.
 */

enum { TAR_GZIP_0 = 0x1f, TAR_GZIP_1 = 0x8b, TAR_PADDING_MAX = 1 << 20 };

struct TarReader {
    GunzipSource source;
    void *arg;
    Gunzip *gunzip;
    uint8_t head[TAR_BLOCK]; /* the first bytes, looked at before it is known what they are */
    size_t head_size, head_used;
    uint64_t left, padding; /* of the entry */
    uint32_t n_entries;
    bool is_done;
    char name[TAR_NAME_MAX + 1];
};

/* The raw bytes, the ones already read first. */
static ssize_t tar_reader_raw(void *data, size_t size, void *arg) {
    TarReader *tar = arg;
    size_t n = MIN(size, tar->head_size - tar->head_used);

    if (n == 0)
        return tar->source(data, size, tar->arg);
    memcpy(data, tar->head + tar->head_used, n);
    tar->head_used += n;
    return (ssize_t)n;
}

static ssize_t tar_reader_some(TarReader *tar, void *data, size_t size) {
    return tar->gunzip ? gunzip_read(tar->gunzip, data, size) : tar_reader_raw(data, size, tar);
}

/* Fills the memory: 1; 0: the stream ends before; or a negative errno. */
static int tar_reader_fill(TarReader *tar, void *data, size_t size) {
    uint8_t *at = data;

    while (size > 0) {
        ssize_t n = tar_reader_some(tar, at, size);

        if (n <= 0)
            return (int)n;
        at += n;
        size -= (size_t)n;
    }
    return 1;
}

static int tar_reader_look(TarReader *tar) {
    while (tar->head_size < sizeof(tar->head)) {
        ssize_t n =
            tar->source(tar->head + tar->head_size, sizeof(tar->head) - tar->head_size, tar->arg);

        if (n < 0)
            return (int)n;
        if (n == 0)
            break;
        tar->head_size += (size_t)n;
    }
    if (tar->head_size > 2 && tar->head[0] == TAR_GZIP_0 && tar->head[1] == TAR_GZIP_1)
        return gunzip_new(tar_reader_raw, tar, &tar->gunzip);
    return 0;
}

int tar_reader_new(GunzipSource source, void *arg, TarReader **ret) {
    _cleanup_(tar_reader_freep) TarReader *tar = calloc(1, sizeof(*tar));
    int r;

    if (!tar)
        return -ENOMEM;
    tar->source = source;
    tar->arg = arg;
    r = tar_reader_look(tar);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(tar);
    return 0;
}

TarReader *tar_reader_free(TarReader *tar) {
    if (!tar)
        return NULL;
    gunzip_free(tar->gunzip);
    free(tar);
    return NULL;
}

/* Octal digits up to a space, a NUL or the end. */
static int tar_reader_number(const char *field, size_t size, uint64_t *ret) {
    uint64_t v = 0;
    size_t i = 0;

    while (i < size && field[i] == ' ')
        i++;
    for (; i < size && field[i] != ' ' && field[i] != '\0'; i++) {
        if (field[i] < '0' || field[i] > '7' || v >> 60)
            return -EBADMSG;
        v = v << 3 | (uint64_t)(field[i] - '0');
    }
    *ret = v;
    return 0;
}

/* GNU tar writes a size of 8 GiB and more as a number of bytes, after a first byte of 0x80. */
static int tar_reader_size(const TarHeader *header, uint64_t *ret) {
    const uint8_t *bytes = (const uint8_t *)header->size;
    uint64_t v = 0;

    if (bytes[0] != 0x80)
        return tar_reader_number(header->size, sizeof(header->size), ret);
    for (size_t i = 1; i < sizeof(header->size); i++) {
        if (v >> 55)
            return -EBADMSG;
        v = v << 8 | bytes[i];
    }
    *ret = v;
    return 0;
}

static bool tar_reader_is_zero(const TarHeader *header) {
    const uint8_t *bytes = (const uint8_t *)header;

    for (size_t i = 0; i < sizeof(*header); i++)
        if (bytes[i] != 0)
            return false;
    return true;
}

static int tar_reader_take(TarReader *tar, const TarHeader *header, TarEntry *ret) {
    size_t prefix = strnlen(header->prefix, sizeof(header->prefix));
    size_t name = strnlen(header->name, sizeof(header->name));
    uint64_t sum, size;
    char *at = tar->name;

    if (tar_reader_number(header->checksum, sizeof(header->checksum), &sum) < 0 ||
        sum != tar_header_sum(header) || tar_reader_size(header, &size) < 0)
        return -EBADMSG;
    if (memcmp(header->magic, "ustar\0", sizeof(header->magic)) != 0)
        prefix = 0;
    memcpy(at, header->prefix, prefix);
    at += prefix;
    if (prefix > 0)
        *at++ = '/';
    memcpy(at, header->name, name);
    at[name] = '\0';
    tar->left = size;
    tar->padding = (TAR_BLOCK - size % TAR_BLOCK) % TAR_BLOCK;
    *ret = (TarEntry){.name = tar->name,
                      .size = size,
                      .is_file = header->type == TAR_FILE || header->type == TAR_OLD_FILE};
    return 1;
}

static int tar_reader_skip(TarReader *tar) {
    uint8_t block[TAR_BLOCK * 8];
    uint64_t left = tar->left + tar->padding;

    while (left > 0) {
        size_t n = (size_t)MIN(left, (uint64_t)sizeof(block));
        int r = tar_reader_fill(tar, block, n);

        if (r <= 0)
            return r < 0 ? r : -EBADMSG;
        left -= n;
    }
    tar->left = tar->padding = 0;
    return 0;
}

/* The sum of a compressed archive is behind the blocks that pad it. */
static int tar_reader_finish(TarReader *tar) {
    uint8_t block[TAR_BLOCK * 8];
    ssize_t n = 1;

    for (unsigned i = 0; tar->gunzip && n > 0 && i < TAR_PADDING_MAX / sizeof(block); i++)
        n = gunzip_read(tar->gunzip, block, sizeof(block));
    return (int)MIN(n, (ssize_t)0);
}

int tar_reader_next(TarReader *tar, TarEntry *ret) {
    TarHeader header;
    int r;

    if (tar->is_done)
        return 0;
    r = tar_reader_skip(tar);
    if (r < 0)
        return r;
    if (tar->n_entries++ >= TAR_ENTRIES_MAX)
        return -E2BIG;
    r = tar_reader_fill(tar, &header, sizeof(header));
    if (r <= 0)
        return r < 0 ? r : -EBADMSG;
    tar->is_done = tar_reader_is_zero(&header);
    return tar->is_done ? tar_reader_finish(tar) : tar_reader_take(tar, &header, ret);
}

ssize_t tar_reader_read(TarReader *tar, void *data, size_t size) {
    ssize_t n;

    size = (size_t)MIN((uint64_t)size, tar->left);
    if (size == 0)
        return 0;
    n = tar_reader_some(tar, data, size);
    if (n <= 0)
        return n < 0 ? n : -EBADMSG;
    tar->left -= (uint64_t)n;
    return n;
}
