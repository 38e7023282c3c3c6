/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Hashes for tables whose keys come from outside. The seed differs for each process, so nobody can
 * prepare a file whose keys all collide.
 */

#include <stdint.h>
#include <sys/auxv.h>

#include "util/bytes.h"

/* Constant within a process, and different in the next one. */
static inline uint64_t hash_seed(void) {
    const void *random = (const void *)getauxval(AT_RANDOM);

    return random ? load_u64(random, false) | 1 : 0x9e3779b97f4a7c15ULL;
}

static inline uint64_t hash_u64(uint64_t seed, uint64_t v) {
    unsigned __int128 product = (unsigned __int128)(v ^ seed) * 0x9e3779b97f4a7c15ULL;
    uint64_t h = (uint64_t)product ^ (uint64_t)(product >> 64);

    return (h ^ h >> 32) * 0xd6e8feb86659fd93ULL ^ seed >> 7;
}

static inline uint64_t hash_bytes(uint64_t seed, Bytes bytes) {
    uint64_t h = hash_u64(seed, bytes.size);
    size_t i = 0;

    for (; i + 8 <= bytes.size; i += 8)
        h = hash_u64(seed, h ^ load_u64(bytes.data + i, false));
    if (i < bytes.size) {
        uint64_t last = 0;

        memcpy(&last, bytes.data + i, bytes.size - i);
        h = hash_u64(seed, h ^ last);
    }
    return h;
}
