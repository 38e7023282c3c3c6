/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/record/sample.h"

#include <errno.h>

#include "perfdata/record/record-row.h"

/*
 * The body of a SAMPLE and the blocks in it. This is the hot path of every reader, so it makes one
 * pass over the record, allocates nothing and copies no array. The order is that of
 * perf_output_sample() in kernel/events/core.c. Numbers are swapped one by one in their own width,
 * so pairs of u32 are right in both byte orders.
 */

enum { BRANCH_WORDS = 3, BRANCH_SIZE = BRANCH_WORDS * 8 };

static PdU64s sample_parse_take_u64s(Cursor *c, uint64_t n) {
    Bytes bytes = cursor_array(c, n, 8);

    return (PdU64s){.data = bytes.data, .n = bytes.data ? n : 0, .swap = c->swap};
}

static void sample_parse_read_group(Cursor *c, PdRead *r) {
    unsigned words = 1;

    r->n = cursor_u64(c);
    if (r->format & PD_FORMAT_TOTAL_TIME_ENABLED)
        r->time_enabled = cursor_u64(c);
    if (r->format & PD_FORMAT_TOTAL_TIME_RUNNING)
        r->time_running = cursor_u64(c);
    if (r->format & PD_FORMAT_ID)
        r->id_at = (uint8_t)words++;
    if (r->format & PD_FORMAT_LOST)
        r->lost_at = (uint8_t)words++;
    r->stride = (uint8_t)words;
    r->words.data = cursor_array(c, r->n, words * 8UL).data;
    r->words.n = r->words.data ? r->n * words : 0;
}

static void sample_parse_read_one(Cursor *c, PdRead *r) {
    unsigned words = 1;
    const PdU64s *w = &r->words;
    unsigned enabled_at = 0, running_at = 0;

    if (r->format & PD_FORMAT_TOTAL_TIME_ENABLED)
        enabled_at = words++;
    if (r->format & PD_FORMAT_TOTAL_TIME_RUNNING)
        running_at = words++;
    if (r->format & PD_FORMAT_ID)
        r->id_at = (uint8_t)words++;
    if (r->format & PD_FORMAT_LOST)
        r->lost_at = (uint8_t)words++;
    r->words = sample_parse_take_u64s(c, words);
    if (c->failed)
        return;
    r->n = 1;
    r->stride = (uint8_t)words;
    r->time_enabled = enabled_at ? pd_u64_at(w, enabled_at) : 0;
    r->time_running = running_at ? pd_u64_at(w, running_at) : 0;
}

void pd_read_parse(Cursor *c, uint64_t read_format, PdRead *ret) {
    PdRead r = {.format = read_format, .words.swap = c->swap};

    if (read_format & PD_FORMAT_GROUP)
        sample_parse_read_group(c, &r);
    else
        sample_parse_read_one(c, &r);
    if (c->failed)
        r.n = r.words.n = 0;
    *ret = r;
}

/* What attr and size of a record leave open. */
typedef struct Shape {
    bool hw_index, counters;
} Shape;

static void sample_parse_branches(Cursor *c, Shape shape, PdBranches *b) {
    b->n = cursor_u64(c);
    b->has_hw_index = shape.hw_index;
    b->has_counters = shape.counters;
    if (shape.hw_index)
        b->hw_index = cursor_u64(c);
    b->entries.data = cursor_array(c, b->n, BRANCH_SIZE).data;
    b->entries.swap = c->swap;
    b->entries.n = b->entries.data ? b->n * BRANCH_WORDS : 0;
    if (shape.counters)
        b->counters = sample_parse_take_u64s(c, b->n);
}

static void sample_parse_registers(Cursor *c, uint64_t mask, PdRegisters *r) {
    r->abi = cursor_u64(c);
    if (r->abi == 0)
        return;
    r->mask = mask;
    r->values = sample_parse_take_u64s(c, (uint64_t)__builtin_popcountll(mask));
}

static void sample_parse_user_stack(Cursor *c, PdSample *s) {
    uint64_t used;

    s->user_stack_size = cursor_u64(c);
    if (s->user_stack_size == 0)
        return;
    s->user_stack = cursor_bytes(c, s->user_stack_size);
    used = cursor_u64(c);
    if (used > s->user_stack.size)
        cursor_fail(c);
    else
        s->user_stack.size = (size_t)used;
}

/* The fields of most samples: IP, TID, TIME, CPU and so on. */
static inline void sample_parse_head(Cursor *c, uint64_t type, PdSample *s) {
    if (type & PD_SAMPLE_IDENTIFIER)
        s->id = cursor_u64(c);
    if (type & PD_SAMPLE_IP)
        s->ip = cursor_u64(c);
    if (type & PD_SAMPLE_TID) {
        s->pid = cursor_u32(c);
        s->tid = cursor_u32(c);
    }
    if (type & PD_SAMPLE_TIME)
        s->time = cursor_u64(c);
    if (type & PD_SAMPLE_ADDR)
        s->addr = cursor_u64(c);
    if (type & PD_SAMPLE_ID)
        s->id = cursor_u64(c);
    if (type & PD_SAMPLE_STREAM_ID)
        s->stream_id = cursor_u64(c);
    if (type & PD_SAMPLE_CPU) {
        s->cpu = cursor_u32(c);
        cursor_u32(c);
    }
    if (type & PD_SAMPLE_PERIOD)
        s->period = cursor_u64(c);
}

static void sample_parse_user(Cursor *c, const PdRecord *record, const PdAttr *attr, PdSample *s) {
    s->user_at = (uint32_t)(c->at - record->data);
    if (attr->sample_type & PD_SAMPLE_REGS_USER)
        sample_parse_registers(c, attr->sample_regs_user, &s->user_regs);
    if (attr->sample_type & PD_SAMPLE_STACK_USER)
        sample_parse_user_stack(c, s);
    s->user_end = (uint32_t)(c->at - record->data);
}

static void sample_parse_tail(Cursor *c, const PdAttr *attr, PdSample *s) {
    uint64_t type = attr->sample_type;

    /* Read as one number, the struct has the same layout in both byte orders. */
    if (type & (PD_SAMPLE_WEIGHT | PD_SAMPLE_WEIGHT_STRUCT))
        s->weight = cursor_u64(c);
    if (type & PD_SAMPLE_DATA_SRC)
        s->data_src = cursor_u64(c);
    if (type & PD_SAMPLE_TRANSACTION)
        s->transaction = cursor_u64(c);
    if (type & PD_SAMPLE_REGS_INTR)
        sample_parse_registers(c, attr->sample_regs_intr, &s->intr_regs);
    if (type & PD_SAMPLE_PHYS_ADDR)
        s->phys_addr = cursor_u64(c);
    if (type & PD_SAMPLE_CGROUP)
        s->cgroup = cursor_u64(c);
    if (type & PD_SAMPLE_DATA_PAGE_SIZE)
        s->data_page_size = cursor_u64(c);
    if (type & PD_SAMPLE_CODE_PAGE_SIZE)
        s->code_page_size = cursor_u64(c);
    if (type & PD_SAMPLE_AUX)
        s->aux = cursor_bytes(c, cursor_u64(c));
}

/* Returns the number of bytes after the last field, or -EBADMSG. */
static ssize_t sample_parse_as(const PdRecord *record, const PdEvent *event, Shape shape,
                               PdSample *s) {
    const PdAttr *attr = &event->attr;
    uint64_t type = attr->sample_type;
    Cursor c = pd_record_cursor(record);

    *s = (PdSample){
        .event = event,
        .sample_type = type,
        .pid = UINT32_MAX,
        .tid = UINT32_MAX,
        .cpu = UINT32_MAX,
        .period = attr->sample_period,
    };
    sample_parse_head(&c, type, s);
    if (type & PD_SAMPLE_READ)
        pd_read_parse(&c, attr->read_format, &s->read);
    if (type & PD_SAMPLE_CALLCHAIN) {
        s->chain_at = (uint32_t)(c.at - record->data);
        s->callchain = sample_parse_take_u64s(&c, cursor_u64(&c));
    }
    if (type & PD_SAMPLE_RAW)
        s->raw = cursor_bytes(&c, cursor_u32(&c));
    if (type & PD_SAMPLE_BRANCH_STACK)
        sample_parse_branches(&c, shape, &s->branches);
    if (type & (PD_SAMPLE_REGS_USER | PD_SAMPLE_STACK_USER))
        sample_parse_user(&c, record, attr, s);
    sample_parse_tail(&c, attr, s);
    return c.failed ? -EBADMSG : (ssize_t)cursor_left(&c);
}

/* With branches the size decides: first tries the shape of the attr, then one that fills the
 * record. */
static int sample_parse_branchy(const PdRecord *record, const PdEvent *event, PdSample *ret) {
    uint64_t branch_type = event->attr.branch_sample_type;
    Shape told = {.hw_index = branch_type & PD_BRANCH_HW_INDEX,
                  .counters = branch_type & PD_BRANCH_COUNTERS};
    Shape counted = {.hw_index = told.hw_index, .counters = !told.counters};
    Shape empty = {.hw_index = false, .counters = told.counters};
    ssize_t left = sample_parse_as(record, event, told, ret);

    if (left >= 0 && left < 8)
        return 0;
    if (sample_parse_as(record, event, counted, ret) == 0)
        return 0;
    if (told.hw_index && sample_parse_as(record, event, empty, ret) == 0 && ret->branches.n == 0)
        return 0;
    return sample_parse_as(record, event, told, ret) < 0 ? -EBADMSG : 0;
}

int sample_parse_into(const PdRecord *record, const PdEvent *event, PdSample *ret) {
    if (record->size < PD_RECORD_HEADER_SIZE)
        return -EBADMSG;
    if (event->attr.sample_type & PD_SAMPLE_BRANCH_STACK)
        return sample_parse_branchy(record, event, ret);
    return sample_parse_as(record, event, (Shape){}, ret) < 0 ? -EBADMSG : 0;
}

int pd_sample_parse(const PdRecord *record, const PdEvent *event, PdSample *ret) {
    PdSample s;
    int r;

    r = sample_parse_into(record, event, &s);
    if (r < 0)
        return r;
    *ret = s;
    return 0;
}

bool pd_sample_is_whole(const PdRecord *record, const PdEvent *event) {
    PdSample s;

    if (record->size < PD_RECORD_HEADER_SIZE)
        return false;
    /* For branches the shape was already chosen so that it fills the record. */
    return event->attr.sample_type & PD_SAMPLE_BRANCH_STACK
               ? sample_parse_branchy(record, event, &s) == 0
               : sample_parse_as(record, event, (Shape){}, &s) == 0;
}

uint64_t pd_sample_cgroup(const PdRecord *record, const PdEvent *event) {
    bool has = event->attr.sample_type & PD_SAMPLE_CGROUP;

    return has && record->size >= PD_RECORD_HEADER_SIZE + sizeof(uint64_t)
               ? load_u64(record->data + record->size - sizeof(uint64_t), record->swap)
               : 0;
}

PdBranch pd_branch_at(const PdBranches *branches, uint64_t i) {
    const PdU64s *words = &branches->entries;
    bool big_endian = words->swap != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
    uint64_t flags = pd_u64_at(words, i * BRANCH_WORDS + 2);
    PdBranch b = {.from = pd_u64_at(words, i * BRANCH_WORDS),
                  .to = pd_u64_at(words, i * BRANCH_WORDS + 1)};

/* A bit-field fills from the top on a big-endian host and from the bottom on others. */
#define BITS(at, n) ((flags >> (big_endian ? 64 - (at) - (n) : (at))) & ((1U << (n)) - 1))
    b.mispredicted = BITS(0, 1);
    b.predicted = BITS(1, 1);
    b.in_tx = BITS(2, 1);
    b.abort = BITS(3, 1);
    b.cycles = (uint16_t)BITS(4, 16);
    b.type = (uint8_t)BITS(20, 4);
    b.spec = (uint8_t)BITS(24, 2);
    b.new_type = (uint8_t)BITS(26, 4);
    b.priv = (uint8_t)BITS(30, 3);
#undef BITS
    return b;
}
