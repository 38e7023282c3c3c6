/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The messages between recorder and keeper: one request, one reply, each of a fixed size and each
 * one message on a SOCK_SEQPACKET socket, with a descriptor where needed. Both run on one machine,
 * but may be of different versions: a keeper goes on when the program is upgraded and its recorder
 * is restarted, hence `protocol`.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "keeper/request/keeper-type.h"
#include "util/macro.h"

enum {
    KEEPER_PROTOCOL = 0x6b650004,
    KEEPER_PATH_SIZE = 4096, /* includes the NUL */
    KEEPER_SLOTS_MAX = 65536,
    KEEPER_MEMORY_BYTES_MAX = 64 * 1024 * 1024,
};

typedef enum KeeperKind {
    KEEPER_OPEN_LANE,
    KEEPER_END_OF_LANE,
    KEEPER_OPEN_LIFE,
    KEEPER_OPEN_EVENT,
    KEEPER_CLOSE_EVENT,
    KEEPER_NEXT_EVENT,
    KEEPER_OPEN_FILE,
    KEEPER_OPEN_MAPPED,
    KEEPER_OPEN_IMAGE,
    KEEPER_OPEN_TRACEFS,
    KEEPER_READ_NAMESPACES,
    KEEPER_SEAL,
    KEEPER_TAKE_OVER,
    KEEPER_READY,
    KEEPER_STATUS,
    KEEPER_LISTEN,
    KEEPER_OPEN_MEMORY,
    KEEPER_OPEN_CODE_MAP,
    KEEPER_READ_PROCESS,
    KEEPER_CLOSE, /* has no reply; the descriptor is closed when the next one comes */
    KEEPER_KINDS, /* the number of kinds */
} KeeperKind;

/* An event in either message. Memory has only ring_bytes and a tag; the rest is zero. */
typedef struct KeeperEventData {
    int32_t pid, cpu;
    uint32_t leader_slot, output_slot;
    uint64_t ring_bytes;
    uint32_t attr_size, reserved;
    uint8_t attr[KEEPER_ATTR_MAX];
    uint8_t tag[KEEPER_TAG_SIZE];
} KeeperEventData;

/* Fields that a kind does not use are zero. */
typedef struct KeeperRequest {
    uint32_t protocol, kind;
    uint32_t file; /* a KeeperFile, or a KeeperMaps */
    uint32_t pid, tid;
    uint32_t slot;
    uint32_t sensitive, reserved;
    uint64_t start, end;
    KeeperEventData event;
    char path[KEEPER_PATH_SIZE];
} KeeperRequest;

/* A keeper reports what it lacks; one of an earlier version reports nothing. */
typedef enum KeeperLack {
    KEEPER_LACKS_ELF = 1 << 0,
    KEEPER_LACKS_LOCKING = 1 << 1,
} KeeperLack;

typedef struct KeeperReply {
    uint32_t protocol;
    int32_t result; /* 0 or more, or a negative errno */
    uint32_t slot;  /* to KEEPER_STATUS: a set of KeeperLack; to KEEPER_READ_PROCESS: the error of
                     * reading its maps */
    uint32_t n_events, restarts, upgraded;
    uint64_t cpu_ns;
    KeeperFileId id;
    KeeperNamespace namespaces[KEEPER_NAMESPACES];
    KeeperEventData event;
} KeeperReply;

/* Padding would leak uninitialised memory. */
static_assert(sizeof(KeeperEventData) == 32 + KEEPER_ATTR_MAX + KEEPER_TAG_SIZE, "padded");
static_assert(sizeof(KeeperRequest) == 48 + sizeof(KeeperEventData) + KEEPER_PATH_SIZE, "padded");
static_assert(sizeof(KeeperReply) ==
                  32 + sizeof(KeeperFileId) + 16 * KEEPER_NAMESPACES + sizeof(KeeperEventData),
              "padded");
static_assert(sizeof(KeeperFileId) == 48, "padded");

/*
 * Checks every field of a message: -EBADMSG: not a request, -EPROTO: another version, -EINVAL: a
 * value out of bounds, -EPERM: an event with options that no recording needs.
 */
int keeper_request_check(const void *bytes, size_t n, KeeperRequest *ret);
/* Whether the request comes with a descriptor. */
bool keeper_request_has_fd(KeeperKind kind);
/* "open-event", for the log. */
const char *keeper_request_name(KeeperKind kind);
