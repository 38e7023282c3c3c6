/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The names of kernel addresses that a profile has. Addresses of the kernel mean the same all over
 * the host; those of user files are offsets, which name nothing without their file. */

#include "profile/frame-names.h"
#include "profile/profile.h"
#include "util/buffer.h"

enum { LISTEN_SYMBOLS_MAX = 1 << 15, LISTEN_SYMBOLS_ASKED_MAX = 4096 };

typedef struct ListenSymbol {
    uint64_t address;
    uint32_t name; /* where it begins in `names`; it ends with a newline */
} ListenSymbol;

/* A zeroed table is valid and empty. */
typedef struct ListenSymbols {
    ListenSymbol *rows; /* by address */
    size_t n;
    Buffer names;
} ListenSymbols;

/* Addresses above LISTEN_SYMBOLS_MAX are left out. */
int listen_symbols_make(const Profile *profile, const FrameNames *names, ListenSymbols *ret);
void listen_symbols_done(ListenSymbols *symbols);

/* Appends "0xADDR NAME" for each known address of 0xADDR+0xADDR…; -EINVAL: these are not addresses;
 * -E2BIG: too many. */
int listen_symbols_answer(const ListenSymbols *symbols, Bytes addresses, Buffer *out);
