/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "elf/elf-request.h"

#include <errno.h>
#include <string.h>

#include "util/macro.h"

/*
 * Neither end trusts the other. The helper reads files of strangers and may be compromised, so a
 * reply is checked before any of it is used. A table has a row for each kind of request, which says
 * where the reply has the result.
 */

static const struct WantRow {
    uint32_t build_id_max; /* bytes in the reply; 0: it is not there */
    uint64_t file_max;     /* bytes of the memfd; 0: it is not there */
} wants[] = {
    [ELF_BUILD_ID] = {.build_id_max = BUILD_ID_SIZE_MAX},
    [ELF_UNWIND] = {.file_max = ELF_TABLE_BYTES_MAX},
    [ELF_SYMBOLS] = {.build_id_max = BUILD_ID_SIZE_MAX, .file_max = ELF_SYMBOLS_BYTES_MAX},
    [ELF_CODE_MAP] = {.file_max = ELF_CODE_MAP_BYTES_MAX},
};

static_assert(ARRAY_SIZE(wants) == ELF_WANTS, "a row for each");

int elf_request_check(const void *bytes, size_t n, bool has_fd, ElfRequest *ret) {
    ElfRequest request;

    if (n != sizeof(request))
        return -EBADMSG;
    memcpy(&request, bytes, sizeof(request));
    if (request.protocol != ELF_PROTOCOL)
        return -EPROTO;
    if (request.want >= ELF_WANTS || !has_fd)
        return -EBADMSG;
    *ret = request;
    return 0;
}

/* A size is above 0 and within its limit if that result was found, and 0 otherwise. */
static bool elf_request_fits(uint64_t size, uint64_t max, bool found) {
    return found && max > 0 ? size > 0 && size <= max : size == 0;
}

int elf_reply_check(const void *bytes, size_t n, bool has_fd, const ElfRequest *request,
                    ElfReply *ret) {
    const struct WantRow *row = &wants[request->want];
    ElfReply reply;
    bool found;

    if (n != sizeof(reply))
        return -EBADMSG;
    memcpy(&reply, bytes, sizeof(reply));
    if (reply.protocol != ELF_PROTOCOL)
        return -EPROTO;
    found = reply.result == 0;
    if (reply.serial != request->serial || reply.result > 0 || reply.result < -4095 ||
        !elf_request_fits(reply.build_id_size, row->build_id_max, found) ||
        !elf_request_fits(reply.file_size, row->file_max, found) || has_fd != (reply.file_size > 0))
        return -EBADMSG;
    *ret = reply;
    return 0;
}
