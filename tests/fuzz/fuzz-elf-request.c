/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "elf/elf-request.h"
#include "fuzz.h"

/*
 * Messages of any bytes at both ends of profd-elf: a request by whoever has its socket, a reply by
 * a helper that a file has taken over. What passes must hold what its reader relies on. Input: a
 * byte of choice and a message; the right protocol is set where the choice is even.
 */

static void require(bool holds) {
    if (!holds)
        __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const ElfRequest asked = {.protocol = ELF_PROTOCOL, .want = ELF_BUILD_ID, .serial = 1};
    uint8_t message[128] = {};
    ElfRequest request;
    ElfReply reply;

    if (size == 0 || size - 1 > sizeof(message))
        return 0;
    memcpy(message, data + 1, size - 1);
    if (data[0] % 2 == 0)
        store_u32(message, ELF_PROTOCOL, false);
    if (elf_request_check(message, size - 1, data[0] & 2, &request) == 0)
        require(request.want < ELF_WANTS && data[0] & 2);
    if (elf_reply_check(message, size - 1, &asked, &reply) == 0) {
        require(reply.serial == asked.serial && reply.result <= 0);
        require(reply.build_id_size <= BUILD_ID_SIZE_MAX);
        require((reply.result == 0) == (reply.build_id_size > 0));
    }
    return 0;
}
