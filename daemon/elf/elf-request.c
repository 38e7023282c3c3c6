/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "elf/elf-request.h"

#include <errno.h>
#include <string.h>

#include "util/macro.h"

/*
 * Neither end believes the other. The helper reads files of strangers, so it counts as fallen: a
 * reply is checked before any of it is used.
 */

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

int elf_reply_check(const void *bytes, size_t n, const ElfRequest *request, ElfReply *ret) {
    ElfReply reply;

    if (n != sizeof(reply))
        return -EBADMSG;
    memcpy(&reply, bytes, sizeof(reply));
    if (reply.protocol != ELF_PROTOCOL)
        return -EPROTO;
    if (reply.serial != request->serial || reply.result > 0 || reply.result < -4095 ||
        reply.build_id_size > BUILD_ID_SIZE_MAX || (reply.result == 0) != (reply.build_id_size > 0))
        return -EBADMSG;
    *ret = reply;
    return 0;
}
