/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "archive/tar-writer.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "archive/tar-header.h"

/* A block that describes the file, its bytes, and zeros up to the next block. */

enum { TAR_COPY = 64 * 1024 };

static const uint64_t tar_size_max = (uint64_t)1 << 33;

static int tar_write_header(const TarWriter *tar, const char *name, uint64_t size) {
    TarHeader header = {.type = TAR_FILE, .magic = "ustar", .version = {'0', '0'}};

    if (strlen(name) >= sizeof(header.name))
        return -ENAMETOOLONG;
    if (size >= tar_size_max)
        return -EFBIG;
    strcpy(header.name, name);
    strcpy(header.mode, "0000644");
    strcpy(header.uid, "0000000");
    strcpy(header.gid, "0000000");
    snprintf(header.size, sizeof(header.size), "%011llo", (unsigned long long)size);
    snprintf(header.mtime, sizeof(header.mtime), "%011llo",
             (unsigned long long)tar->mtime_s & 077777777777);
    snprintf(header.checksum, sizeof(header.checksum) - 1, "%06o", tar_header_sum(&header));
    header.checksum[7] = ' ';
    return tar->sink(&header, sizeof(header), tar->arg);
}

static int tar_write_padding(const TarWriter *tar, uint64_t size) {
    static const uint8_t zeros[TAR_BLOCK];
    size_t rest = size % TAR_BLOCK;

    return rest > 0 ? tar->sink(zeros, TAR_BLOCK - rest, tar->arg) : 0;
}

int tar_write_bytes(const TarWriter *tar, const char *name, Bytes content) {
    int r = tar_write_header(tar, name, content.size);

    if (r == 0 && content.size > 0)
        r = tar->sink(content.data, content.size, tar->arg);
    return r < 0 ? r : tar_write_padding(tar, content.size);
}

int tar_write_file(const TarWriter *tar, const char *name, int fd) {
    _cleanup_free_ uint8_t *block = malloc(TAR_COPY);
    struct stat st;
    uint64_t at = 0, size;
    int r;

    if (!block)
        return -ENOMEM;
    if (fstat(fd, &st) < 0)
        return -errno;
    size = (uint64_t)st.st_size;
    r = tar_write_header(tar, name, size);
    while (r == 0 && at < size) {
        ssize_t n = pread(fd, block, MIN(size - at, (uint64_t)TAR_COPY), (off_t)at);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : -EIO;
        r = tar->sink(block, (size_t)n, tar->arg);
        at += (uint64_t)n;
    }
    return r < 0 ? r : tar_write_padding(tar, size);
}

int tar_write_end(const TarWriter *tar) {
    static const uint8_t zeros[2 * TAR_BLOCK];

    return tar->sink(zeros, sizeof(zeros), tar->arg);
}
