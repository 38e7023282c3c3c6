/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "elf/elf-request.h"
#include "fuzz.h"

/*
 * Messages of any bytes at both ends of profd-elf: a request by whoever has its socket, a reply by
 * a helper that a file has taken over. What passes must hold what its reader relies on. Input: a
 * byte of choice and a message. Bit 0 of the choice leaves the protocol as it is, bit 1 sends a
 * descriptor along, and the bits above say what was asked for.
 */

static void require(bool holds) {
    if (!holds)
        __builtin_trap();
}

static void check_reply(const ElfReply *reply, const ElfRequest *asked, bool has_fd) {
    bool found = reply->result == 0;

    require(reply->serial == asked->serial && reply->result <= 0);
    require(reply->build_id_size <= BUILD_ID_SIZE_MAX);
    require(reply->file_size <= ELF_TABLE_BYTES_MAX);
    require((found && asked->want == ELF_BUILD_ID) == (reply->build_id_size > 0));
    require((found && asked->want == ELF_UNWIND) == (reply->file_size > 0));
    require(has_fd == (reply->file_size > 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    ElfRequest asked = {.protocol = ELF_PROTOCOL, .serial = 1};
    uint8_t message[128] = {};
    ElfRequest request;
    ElfReply reply;
    bool has_fd;

    if (size == 0 || size - 1 > sizeof(message))
        return 0;
    memcpy(message, data + 1, size - 1);
    if (data[0] % 2 == 0)
        store_u32(message, ELF_PROTOCOL, false);
    has_fd = data[0] & 2;
    asked.want = (ElfWant)(data[0] >> 2) % ELF_WANTS;
    if (elf_request_check(message, size - 1, has_fd, &request) == 0)
        require(request.want < ELF_WANTS && has_fd);
    if (elf_reply_check(message, size - 1, has_fd, &asked, &reply) == 0)
        check_reply(&reply, &asked, has_fd);
    return 0;
}
