/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The body of a SAMPLE, in the order in which the kernel writes it (perf_output_sample()). The
 * event's sample_type determines which fields exist. Arrays are borrowed from the record and may be
 * unaligned and in the other byte order: read them with pd_u64_at().
 */

#include <stdbool.h>
#include <stdint.h>

#include "perfdata/event/event.h"
#include "util/bytes.h"

typedef struct PdU64s {
    const uint8_t *data;
    uint64_t n;
    bool swap;
} PdU64s;

static inline uint64_t pd_u64_at(const PdU64s *a, uint64_t i) {
    return load_u64(a->data + i * 8, a->swap);
}

typedef PdU64s PdCallchain;

/* The values of PERF_SAMPLE_READ, of a READ record or of read(): one or a group. Without GROUP the
 * times are between the value and its id, so get values with pd_read_at(). */
typedef struct PdRead {
    uint64_t format; /* PD_FORMAT_* */
    uint64_t time_enabled, time_running;
    uint64_t n;                     /* number of values: 1 without GROUP */
    PdU64s words;                   /* all of the values' words */
    uint8_t stride, id_at, lost_at; /* in words: of a value, and offsets in it */
} PdRead;

typedef struct PdReadValue {
    uint64_t value;
    uint64_t id, lost; /* 0 unless FORMAT_ID, FORMAT_LOST */
} PdReadValue;

/* i < n */
static inline PdReadValue pd_read_at(const PdRead *read, uint64_t i) {
    uint64_t at = i * read->stride;
    PdReadValue v = {.value = pd_u64_at(&read->words, at)};

    if (read->format & PD_FORMAT_ID)
        v.id = pd_u64_at(&read->words, at + read->id_at);
    if (read->format & PD_FORMAT_LOST)
        v.lost = pd_u64_at(&read->words, at + read->lost_at);
    return v;
}

typedef struct PdBranches {
    uint64_t n;
    bool has_hw_index, has_counters;
    uint64_t hw_index;
    PdU64s entries;  /* n times from, to, flags: get them with pd_branch_at() */
    PdU64s counters; /* n */
} PdBranches;

/* struct perf_branch_entry. Its flags are a bit-field, so their positions depend on the writer. */
typedef struct PdBranch {
    uint64_t from, to;
    bool mispredicted, predicted, in_tx, abort;
    uint16_t cycles;
    uint8_t type, spec, new_type, priv;
} PdBranch;

/* i < n */
PdBranch pd_branch_at(const PdBranches *branches, uint64_t i);

typedef struct PdRegisters {
    uint64_t abi; /* 0: none, 1: 32 bit, 2: 64 bit */
    uint64_t mask;
    PdU64s values; /* one for each bit of mask */
} PdRegisters;

typedef struct PdSample {
    const PdEvent *event;
    uint64_t sample_type;
    uint64_t id; /* IDENTIFIER or ID */
    uint64_t ip;
    uint32_t pid, tid; /* UINT32_MAX if the sample has none */
    uint64_t time;
    uint64_t addr;
    uint64_t stream_id;
    uint32_t cpu;    /* likewise */
    uint64_t period; /* attr.sample_period if the sample has none */
    PdRead read;
    PdCallchain callchain;
    Bytes raw;
    PdBranches branches;
    PdRegisters user_regs;
    uint64_t user_stack_size; /* the requested size */
    Bytes user_stack;         /* the copied part: dyn_size bytes */
    uint64_t weight;          /* whole, or var1_dw | var2_w << 32 | var3_w << 48 */
    uint64_t data_src;
    uint64_t transaction;
    PdRegisters intr_regs;
    uint64_t phys_addr;
    uint64_t cgroup;
    uint64_t data_page_size, code_page_size;
    Bytes aux;
    /* Where in the record the call chain begins, and where what is there to unwind a user stack
     * (registers and the copy of it) begins and ends; 0: the sample has none. */
    uint32_t chain_at, user_at, user_end;
} PdSample;

typedef struct PdRecord PdRecord;

/*
 * Returns 0, or -EBADMSG when a field does not fit into the rest of the record. Two things that the
 * attr alone does not determine follow from the size of the record: a kernel without a branch stack
 * omits hw_index, and branch counters may be present because of another event of the group.
 */
int pd_sample_parse(const PdRecord *record, const PdEvent *event, PdSample *ret);
/* Whether the fields fill the record exactly, so that it was written for an event with this
 * attr. */
bool pd_sample_is_whole(const PdRecord *record, const PdEvent *event);
/* The id of its control group, 0 for none, of an event that asks for nothing that would lie behind
 * it: it is the last thing in the sample then. */
uint64_t pd_sample_cgroup(const PdRecord *record, const PdEvent *event);
/* Parses a read block by its format; shared with READ records. */
void pd_read_parse(Cursor *c, uint64_t read_format, PdRead *ret);
