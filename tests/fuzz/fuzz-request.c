/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "fuzz.h"
#include "keeper/request/keeper-request.h"
#include "util/bytes.h"
#include "util/macro.h"

/*
 * Messages of any bytes at the keeper's gate: what passes must hold the bounds that its handlers
 * rely on. Input: a message; zeros are added up to the size of a request, so that a short input
 * reaches every kind, unless its first byte says that it is to be taken as it is.
 */

static void require(bool holds) {
    if (!holds)
        __builtin_trap();
}

static void check_bounds(const KeeperRequest *request) {
    require(request->kind < KEEPER_KINDS);
    require(keeper_request_name((KeeperKind)request->kind) != NULL);
    require(request->file < KEEPER_FILES);
    require(memchr(request->path, 0, sizeof(request->path)) != NULL);
    require(request->slot < KEEPER_SLOTS_MAX || request->slot == KEEPER_NO_SLOT);
    require(request->pid <= INT32_MAX && request->tid <= INT32_MAX);
    require(request->event.attr_size <= KEEPER_ATTR_MAX);
    require(request->event.ring_bytes <= KEEPER_RING_BYTES_MAX);
    if (request->kind == KEEPER_OPEN_EVENT) {
        require(request->event.pid != 0);
        require(request->event.attr_size == load_u32(request->event.attr + 4, false));
    }
    if (request->kind == KEEPER_OPEN_TRACEFS)
        require(!strstr(request->path, "/.."));
    fuzz_touch((const uint8_t *)request, sizeof(*request));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint8_t message[sizeof(KeeperRequest)] = {};
    KeeperRequest request;

    if (size == 0)
        return 0;
    if (data[0] != 0) {
        if (keeper_request_check(data + 1, size - 1, &request) == 0)
            check_bounds(&request);
        return 0;
    }
    memcpy(message, data + 1, MIN(size - 1, sizeof(message)));
    store_u32(message, KEEPER_PROTOCOL, false);
    if (keeper_request_check(message, sizeof(message), &request) == 0)
        check_bounds(&request);
    return 0;
}
