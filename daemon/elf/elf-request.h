/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The messages between profd-elf and its caller: one request with the descriptor of an ELF file,
 * one reply, each of a fixed size, each a message of its own on a SOCK_SEQPACKET socket. Both ends
 * come from one installation, but may be of two versions while it is replaced, hence `protocol`. A
 * request asks for one result. Small results are in the reply; a large one is in a sealed memfd
 * that comes with the reply.
 */

#include <fcntl.h>

#include "elf/note.h"
#include "util/macro.h"

enum {
    ELF_PROTOCOL = 0x656c0002,
    ELF_LIMIT_S = 2, /* of CPU time, for one file */
    ELF_TABLE_BYTES_MAX = 32 << 20,
    ELF_SYMBOLS_BYTES_MAX = 32 << 20,  /* of a reduced file */
    ELF_CODE_MAP_BYTES_MAX = 16 << 20, /* of the names of generated code */
    ELF_SEALS = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE, /* of each memfd */
};

typedef enum ElfWant {
    ELF_BUILD_ID, /* in the reply itself */
    ELF_UNWIND,   /* the table of unwind/unwind-table.h, in a memfd */
    ELF_SYMBOLS,  /* the build id in the reply, and a reduced file of reduce/reduce.h in a memfd */
    ELF_CODE_MAP, /* of a file that is no ELF file: reduce/code-map.h, in a memfd */
    ELF_WANTS,    /* the number of kinds */
} ElfWant;

typedef struct ElfRequest {
    uint32_t protocol, want;
    uint64_t serial; /* copied to the reply */
} ElfRequest;

typedef struct ElfReply {
    uint32_t protocol;
    int32_t result; /* 0; -ENODATA: the file has none; -EAGAIN: the file is not to blame, ask again;
                       or another negative errno */
    uint64_t serial;
    uint64_t cpu_ns;    /* CPU time of the helper since it began */
    uint64_t file_size; /* of the memfd; 0: there is none */
    uint32_t build_id_size;
    uint8_t build_id[BUILD_ID_SIZE_MAX];
} ElfReply;

/* Padding would leak uninitialised memory. */
static_assert(sizeof(ElfRequest) == 16 && sizeof(ElfReply) == 56, "padded");

/* -EBADMSG: not a request; -EPROTO: a request of another version. */
int elf_request_check(const void *bytes, size_t n, bool has_fd, ElfRequest *ret);
/* The same errors for a reply, whose sender may have been compromised by a file. The caller must
 * check the content of the memfd. */
int elf_reply_check(const void *bytes, size_t n, bool has_fd, const ElfRequest *request,
                    ElfReply *ret);
