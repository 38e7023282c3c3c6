/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "symbol/find/debug-link.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "util/macro.h"

/* The section has a file name, zeros up to a multiple of 4, and the CRC-32 of the file. */

enum { LINK_MAX = 4096, PIECE = 64 << 10, FILE_MAX_BYTES = 1 << 30 };

typedef struct DebugLink {
    char name[LINK_MAX];
    uint32_t crc;
} DebugLink;

static int debug_link_read(const ElfView *view, DebugLink *ret) {
    _cleanup_(buffer_done) Buffer bytes = {};
    size_t section = elf_view_find(view, ".gnu_debuglink"), n;
    int r;

    if (section == 0)
        return -ENODATA;
    r = elf_view_read(view, &view->sections[section], LINK_MAX, &bytes);
    if (r < 0)
        return r;
    n = strnlen((const char *)bytes.data, bytes.size);
    if (n == 0 || n >= sizeof(ret->name) || memchr(bytes.data, '/', n) ||
        (n + 4) / 4 * 4 + 4 > bytes.size)
        return -EBADMSG;
    memcpy(ret->name, bytes.data, n + 1);
    ret->crc = load_u32(bytes.data + (n + 4) / 4 * 4, view->swap);
    return 0;
}

static uint32_t debug_link_crc(uint32_t crc, const uint8_t *data, size_t n, const uint32_t *table) {
    for (size_t i = 0; i < n; i++)
        crc = table[(crc ^ data[i]) & 0xff] ^ crc >> 8;
    return crc;
}

static bool debug_link_has_crc(int fd, uint32_t wanted) {
    _cleanup_free_ uint8_t *piece = malloc(PIECE);
    uint32_t table[256], crc = ~0U;
    ssize_t n = -1;
    off_t at = 0;

    for (uint32_t i = 0; i < 256; i++) {
        table[i] = i;
        for (unsigned bit = 0; bit < 8; bit++)
            table[i] = table[i] >> 1 ^ (table[i] & 1 ? 0xedb88320U : 0);
    }
    while (piece && at < FILE_MAX_BYTES && (n = pread(fd, piece, PIECE, at)) > 0) {
        crc = debug_link_crc(crc, piece, (size_t)n, table);
        at += n;
    }
    return n == 0 && ~crc == wanted;
}

static bool debug_link_fits(const ElfFile *program, const ElfFile *file, uint32_t crc) {
    ElfBuildId a = elf_file_build_id(program), b = elf_file_build_id(file);

    if (a.size > 0 || b.size > 0)
        return a.size == b.size && memcmp(a.bytes, b.bytes, a.size) == 0;
    return debug_link_has_crc(elf_file_fd(file), crc);
}

static int debug_link_try(const char *path, const ElfFile *program, const DebugLink *link,
                          ElfFile **ret, FileIdentity *ret_identity) {
    _cleanup_(elf_file_freep) ElfFile *file = NULL;
    FileIdentity identity;
    int fd, r;

    if (open_regular(path, &fd, &identity) < 0)
        return 0;
    r = elf_file_new(fd, &file);
    if (r < 0)
        return r == -ENOMEM ? r : 0;
    if (!debug_link_fits(program, file, link->crc))
        return 0;
    *ret = TAKE_PTR(file);
    *ret_identity = identity;
    return 1;
}

int debug_link_find(const char *root, const char *path, const ElfFile *program, ElfFile **ret,
                    FileIdentity *ret_identity) {
    const char *slash = strrchr(path, '/');
    int folder = slash ? (int)(slash - path) : 0, skipped = (int)strlen(root), r = 0;
    char tried[FIND_PATH_MAX];
    DebugLink link;

    if (!slash || folder < skipped || debug_link_read(elf_file_view(program), &link) < 0)
        return 0;
    for (unsigned i = 0; r == 0 && i < 3; i++) {
        int n = i < 2 ? snprintf(tried, sizeof(tried), "%.*s%s/%s", folder, path,
                                 i == 0 ? "" : "/.debug", link.name)
                      : snprintf(tried, sizeof(tried), "%s/usr/lib/debug%.*s/%s", root,
                                 folder - skipped, path + skipped, link.name);

        if (n > 0 && n < (int)sizeof(tried) && strcmp(tried, path) != 0)
            r = debug_link_try(tried, program, &link, ret, ret_identity);
    }
    return r;
}

/* The section .gnu_debugaltlink has a path, a NUL and the build id. */
int debug_link_open_alternate(const char *root, const ElfFile *file) {
    const ElfView *view = elf_file_view(file);
    size_t section = elf_view_find(view, ".gnu_debugaltlink"), n;
    _cleanup_(elf_file_freep) ElfFile *other = NULL;
    _cleanup_(buffer_done) Buffer bytes = {};
    char path[FIND_PATH_MAX];
    FileIdentity identity;
    const char *name, *dwz;
    ElfBuildId id;
    int fd;

    if (section == 0 || elf_view_read(view, &view->sections[section], LINK_MAX, &bytes) < 0)
        return -ENOENT;
    name = (const char *)bytes.data;
    n = strnlen(name, bytes.size);
    dwz = strstr(name, "/.dwz/"); /* a NUL follows the section */
    if (!dwz || strstr(dwz, "/../") || bytes.size - n != 1 + ELF_BUILD_ID_MAX ||
        snprintf(path, sizeof(path), "%s/usr/lib/debug%s", root, dwz) >= (int)sizeof(path) ||
        open_regular(path, &fd, &identity) < 0 || elf_file_new(fd, &other) < 0)
        return -ENOENT;
    id = elf_file_build_id(other);
    if (id.size != ELF_BUILD_ID_MAX || memcmp(id.bytes, bytes.data + n + 1, id.size) != 0)
        return -ENOENT;
    fd = fcntl(elf_file_fd(other), F_DUPFD_CLOEXEC, 0);
    return fd < 0 ? -ENOENT : fd;
}
