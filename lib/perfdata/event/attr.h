/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * One perf_event_attr in host byte order: parsing, encoding, describing and naming it.
 */

#include <stdint.h>

#include "perfdata/event/format.h"
#include "util/buffer.h"
#include "util/bytes.h"
#include "util/fields.h"

typedef struct PdAttr {
    uint32_t type;
    uint32_t size; /* as in the file, which may be more than PdAttr has */
    uint64_t config;
    uint64_t sample_period; /* a frequency if PD_ATTR_FREQ is set */
    uint64_t sample_type;
    uint64_t read_format;
    uint64_t flags;         /* PD_ATTR_* */
    uint32_t wakeup_events; /* a watermark if PD_ATTR_WATERMARK is set */
    uint32_t bp_type;
    uint64_t config1;
    uint64_t config2;
    uint64_t branch_sample_type;
    uint64_t sample_regs_user;
    uint32_t sample_stack_user;
    int32_t clockid;
    uint64_t sample_regs_intr;
    uint32_t aux_watermark;
    uint16_t sample_max_stack;
    uint32_t aux_sample_size;
    uint32_t aux_action;
    uint64_t sig_data;
    uint64_t config3;
    uint64_t config4;
} PdAttr;

/* Bytes of a perf_event_attr <-> PdAttr. Any size from 64 up; fields beyond `bytes` read as zero.
 * Returns -EBADMSG when fewer than 64 bytes are there. */
int pd_attr_parse(PdAttr *ret, Bytes bytes, bool swap);
/* The smallest published attr.size that includes every field that is not zero. */
uint32_t pd_attr_size_needed(const PdAttr *attr);
/* Appends exactly `size` bytes (a multiple of 8, at least 64) and sets attr.size to it. */
void pd_attr_encode(const PdAttr *attr, uint32_t size, Buffer *out, bool swap);
void pd_attr_describe(const PdAttr *attr, Fields *fields);
/* perf's name for the attr ("cpu-clock:u", "raw 0x1c2", "mem:0x1000:rw"); where perf has none,
 * "tracepoint#12" or "type 8 config 0x4000". Never empty. */
void pd_attr_name(const PdAttr *attr, Buffer *out);
