/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Makes a call chain from the registers and the copy of a stack that perf took with a sample. The
 * walk allocates nothing, does no I/O and reads only its arguments; it trusts neither the stack nor
 * the registers nor the tables.
 */

#include "unwind/unwind-table.h"

enum {
    UNWIND_FRAMES_MAX = 127,
    UNWIND_CACHE_SIZE = 4096, /* entries, a power of two */
};

/* What an address belongs to. */
typedef enum UnwindCode {
    UNWIND_CODE_NONE,      /* no executable mapping */
    UNWIND_CODE_TABLE,     /* a file with a table */
    UNWIND_CODE_PENDING,   /* a file whose table is not there now */
    UNWIND_CODE_REFUSED,   /* a file that has no table, or none that we can make or keep */
    UNWIND_CODE_ANONYMOUS, /* no file: code that was made at run time */
} UnwindCode;

typedef struct UnwindMapping {
    uint64_t start, end; /* where the answer holds; the walk does not ask again in there */
    UnwindCode code;
    const UnwindTable *table; /* with UNWIND_CODE_TABLE */
    uint64_t bias;            /* address - bias is an address as of the file */
} UnwindMapping;

/* The address space of the sampled thread. */
typedef struct UnwindSpace {
    /* Fills *ret, start <= address < end, unless it is UNWIND_CODE_NONE. */
    void (*find)(void *userdata, uint64_t address, UnwindMapping *ret);
    void *userdata;
    /* A number that this space has as long as its mappings and tables stay what they are, and that
     * no other space ever has: a count that grows. 0: nothing of it is cached. Code whose table is
     * pending is never cached, so it is asked for each time. */
    uint64_t version;
} UnwindSpace;

/* What perf has recorded with a sample. */
typedef struct UnwindSample {
    uint16_t machine; /* EM_X86_64, EM_AARCH64 */
    uint64_t abi;     /* PERF_SAMPLE_REGS_ABI_64; anything else is not walked */
    uint64_t mask;    /* sample_regs_user of the event */
    Bytes registers;  /* as many u64 as the mask has bits */
    Bytes stack;      /* from the user's sp on: dyn_size bytes */
} UnwindSample;

/* How a walk ended. The frames found so far are in the chain in any case. */
typedef enum UnwindVerdict {
    UNWIND_WHOLE,     /* at the outermost frame */
    UNWIND_TRUNCATED, /* at the end of the copy of the stack, or of the chain's room */
    UNWIND_PENDING,   /* a table was not there, and frame pointers were taken in its place */
    UNWIND_REFUSED,   /* in a file whose table cannot be had, where frame pointers led no further */
    UNWIND_NO_RULE,   /* in a file with a table, where it and frame pointers know no caller */
    UNWIND_ANONYMOUS, /* in code of no file, where frame pointers led no further */
    UNWIND_NO_CODE,   /* the caller's address is in no executable mapping */
    UNWIND_STUCK,     /* the caller's frame would not lie above its callee's: another stack */
    UNWIND_32_BIT,    /* of a 32-bit program, which no table is for: the ip alone */
    UNWIND_NO_USER,   /* the sample has no registers of user mode: at most the ip */
    UNWIND_VERDICTS,  /* how many there are */
} UnwindVerdict;

typedef struct UnwindChain {
    unsigned n;
    uint64_t addresses[UNWIND_FRAMES_MAX]; /* the ip, then return addresses, innermost first */
    /* The walk ended because the frame pointer leads out of the copy of the stack: above it, or to
     * another stack. */
    bool leaves_copy;
} UnwindChain;

/* Results of earlier look-ups. A cache belongs to one thread at a time; all zero is an empty
 * one. */
typedef struct UnwindCacheEntry {
    uint64_t version : 61, code : 3; /* UnwindCode */
    uint64_t address;
    UnwindRule rule;
} UnwindCacheEntry;

typedef struct UnwindCache {
    UnwindCacheEntry entries[UNWIND_CACHE_SIZE];
    uint64_t hits, misses;
} UnwindCache;

/* `cache` may be NULL. */
UnwindVerdict unwind_walk(const UnwindSample *sample, const UnwindSpace *space, UnwindCache *cache,
                          UnwindChain *ret);

/* "whole", "truncated", …; one word for each verdict. */
const char *unwind_verdict_name(UnwindVerdict verdict);
