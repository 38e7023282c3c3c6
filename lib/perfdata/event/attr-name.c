/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/event/attr.h"

#include "util/macro.h"
#include "util/text.h"

/*
 * The name of an event that has no name in the recording, made from its attr in perf's words. The
 * modifiers for host and guest appear only if exactly one of them is counted and it is the guest:
 * recorders often exclude guests, and releases of perf disagree on whether to print that.
 */

/* clang-format off */
static const char *const hardware_names[] = {
    "cycles", "instructions", "cache-references", "cache-misses", "branches", "branch-misses",
    "bus-cycles", "stalled-cycles-frontend", "stalled-cycles-backend", "ref-cycles",
};

static const char *const software_names[] = {
    "cpu-clock", "task-clock", "page-faults", "context-switches", "cpu-migrations",
    "minor-faults", "major-faults", "alignment-faults", "emulation-faults", "dummy",
    "bpf-output", "cgroup-switches",
};

enum { CACHE_READ = 1 << 0, CACHE_WRITE = 1 << 1, CACHE_PREFETCH = 1 << 2 };

static const struct {
    const char *name;
    unsigned ops;
} caches[] = {
    { "L1-dcache", CACHE_READ | CACHE_WRITE | CACHE_PREFETCH },
    { "L1-icache", CACHE_READ | CACHE_PREFETCH               },
    { "LLC",       CACHE_READ | CACHE_WRITE | CACHE_PREFETCH },
    { "dTLB",      CACHE_READ | CACHE_WRITE | CACHE_PREFETCH },
    { "iTLB",      CACHE_READ                                },
    { "branch",    CACHE_READ                                },
    { "node",      CACHE_READ | CACHE_WRITE | CACHE_PREFETCH },
};

static const struct {
    const char *accesses, *misses;
} cache_ops[] = {
    { "loads",      "load-misses"     },
    { "stores",     "store-misses"    },
    { "prefetches", "prefetch-misses" },
};
/* clang-format on */

static void attr_name_modifiers(const PdAttr *attr, Buffer *out) {
    uint64_t f = attr->flags;
    unsigned precise = f >> PD_ATTR_PRECISE_IP_SHIFT & 3;
    char letters[16];
    size_t n = 0;

    if (f & (PD_ATTR_EXCLUDE_KERNEL | PD_ATTR_EXCLUDE_USER | PD_ATTR_EXCLUDE_HV)) {
        if (!(f & PD_ATTR_EXCLUDE_KERNEL))
            letters[n++] = 'k';
        if (!(f & PD_ATTR_EXCLUDE_USER))
            letters[n++] = 'u';
        if (!(f & PD_ATTR_EXCLUDE_HV))
            letters[n++] = 'h';
    }
    for (unsigned i = 0; i < precise; i++)
        letters[n++] = 'p';
    if ((f & PD_ATTR_EXCLUDE_HOST) && !(f & PD_ATTR_EXCLUDE_GUEST))
        letters[n++] = 'G';
    if (n == 0)
        return;
    text_putc(out, ':');
    buffer_append(out, letters, n);
}

static void attr_name_cache(uint64_t config, Buffer *out) {
    unsigned cache = config & 0xff, op = config >> 8 & 0xff, result = config >> 16 & 0xff;

    if (cache >= ARRAY_SIZE(caches))
        text_puts(out, "unknown-ext-hardware-cache-type");
    else if (op >= ARRAY_SIZE(cache_ops))
        text_puts(out, "unknown-ext-hardware-cache-op");
    else if (result > 1)
        text_puts(out, "unknown-ext-hardware-cache-result");
    else if (!(caches[cache].ops & 1U << op))
        text_puts(out, "invalid-cache");
    else {
        text_puts(out, caches[cache].name);
        text_putc(out, '-');
        text_puts(out, result ? cache_ops[op].misses : cache_ops[op].accesses);
    }
}

static void attr_name_breakpoint(const PdAttr *attr, Buffer *out) {
    text_puts(out, "mem:");
    text_hex(out, attr->config1);
    text_putc(out, ':');
    if (attr->bp_type & 1)
        text_putc(out, 'r');
    if (attr->bp_type & 2)
        text_putc(out, 'w');
    if (attr->bp_type & 4)
        text_putc(out, 'x');
}

static void attr_name_number(const char *word, uint64_t value, Buffer *out) {
    text_puts(out, word);
    text_hex(out, value);
}

void pd_attr_name(const PdAttr *attr, Buffer *out) {
    /* On hybrid machines the upper half selects the PMU. */
    uint64_t config = attr->config & UINT32_MAX;

    switch (attr->type) {
    case PD_TYPE_HARDWARE:
        text_puts(out, config < ARRAY_SIZE(hardware_names) ? hardware_names[config]
                                                           : "unknown-hardware");
        break;
    case PD_TYPE_SOFTWARE:
        text_puts(out, attr->config < ARRAY_SIZE(software_names) ? software_names[attr->config]
                                                                 : "unknown-software");
        break;
    case PD_TYPE_HW_CACHE:
        attr_name_cache(config, out);
        break;
    case PD_TYPE_RAW:
        attr_name_number("raw ", attr->config, out);
        break;
    case PD_TYPE_BREAKPOINT:
        attr_name_breakpoint(attr, out);
        break;
    case PD_TYPE_TRACEPOINT:
        text_puts(out, "tracepoint#");
        text_u64(out, attr->config);
        return;
    default:
        text_puts(out, "type ");
        text_u64(out, attr->type);
        attr_name_number(" config ", attr->config, out);
        return;
    }
    attr_name_modifiers(attr, out);
}
