/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "binary/kept-kallsyms.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "scan/module.h"
#include "scan/text/line.h"
#include "util/buffer.h"
#include "util/file.h"

/*
 * A line is "ADDRESS TYPE NAME", with "\t[MODULE]" behind it for modules. Symbols of data name no
 * samples, and are left out. Where the addresses are hidden, all of them are zero. Another boot of
 * the same kernel has other addresses, so the text is compared, and the last boot's is kept.
 */

enum { TEXT_MAX = 64 << 20 };

static bool kept_kallsyms_is_code(const char *line, size_t n) {
    size_t digits = strspn(line, "0123456789abcdef");

    return n > digits + 3 && digits > 0 && digits <= 16 && strspn(line, "0") < digits &&
           line[digits] == ' ' && memchr("tTwW", line[digits + 1], 4) && line[digits + 2] == ' ';
}

static int kept_kallsyms_read_lines(LineReader *lines, Buffer *ret) {
    size_t n;
    char *line;
    int r;

    while ((r = line_reader_next(lines, &line, &n)) > 0) {
        if (!kept_kallsyms_is_code(line, n))
            continue;
        buffer_append(ret, line, n);
        buffer_append(ret, "\n", 1);
        if (ret->size > TEXT_MAX)
            return -EFBIG;
    }
    if (r == 0)
        r = buffer_error(ret);
    return r == 0 && ret->size == 0 ? -EACCES : r;
}

static int kept_kallsyms_read(Keeper *keeper, Buffer *ret) {
    _cleanup_close_ int fd = -1;
    LineReader *lines = malloc(sizeof(*lines));
    int r = lines ? keeper_open_file(keeper, KEEPER_KALLSYMS, &fd) : -ENOMEM;

    if (r == 0) {
        line_reader_init(lines, fd);
        r = kept_kallsyms_read_lines(lines, ret);
    }
    free(lines);
    return r;
}

static bool kept_kallsyms_are_kept(BinaryStore *store, const char *name, Bytes text) {
    _cleanup_close_ int fd = -1;
    uint8_t piece[16384];
    uint64_t bytes;

    if (binary_store_open_file(store, name, &fd, &bytes) < 0 || bytes != text.size)
        return false;
    for (size_t at = 0; at < text.size;) {
        ssize_t n = pread(fd, piece, MIN(sizeof(piece), text.size - at), (off_t)at);

        if (n <= 0 || memcmp(piece, text.data + at, (size_t)n) != 0)
            return false;
        at += (size_t)n;
    }
    return true;
}

/* The build id of the running kernel. -ENODATA. */
static int kept_kallsyms_name(char ret[static BINARY_NAME_MAX]) {
    BuildId id = {};
    int r = sysfs_build_id("/sys/kernel/notes", &id);

    if (r == 0)
        r = binary_name_of_id((Bytes){.data = id.bytes, .size = id.size}, ret);
    return r < 0 ? -ENODATA : 0;
}

void kept_kallsyms_use(BinaryStore *store) {
    char name[BINARY_NAME_MAX];

    if (kept_kallsyms_name(name) == 0)
        (void)binary_store_has(store, name, 0);
}

int kept_kallsyms_renew(Keeper *keeper, BinaryStore *store) {
    _cleanup_(buffer_done) Buffer text = {};
    BinaryNew new = {.kind = BINARY_KALLSYMS, .path = "[kernel.kallsyms]"};
    _cleanup_close_ int fd = -1;
    int r = kept_kallsyms_name(new.name);

    if (r < 0)
        return r;
    r = kept_kallsyms_read(keeper, &text);
    if (r < 0)
        return r;
    if (kept_kallsyms_are_kept(store, new.name, buffer_bytes(&text))) {
        (void)binary_store_has(store, new.name, 0);
        return 0;
    }
    fd = memfd_create("profd-kallsyms", MFD_CLOEXEC);
    if (fd < 0)
        return -errno;
    r = file_write_all(fd, text.data, text.size);
    new.fd = fd;
    new.bytes = text.size;
    return r < 0 ? r : binary_store_put(store, &new);
}
