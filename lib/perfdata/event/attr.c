/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/event/attr.h"

#include <errno.h>

#include "util/macro.h"

/*
 * A perf_event_attr on disk and as a PdAttr. The struct has grown by eight bytes at a time, so one
 * table has the offset and width of each field; reading, writing and the smallest sufficient size
 * all use it. The bit-field is special: a big-endian compiler fills it from the top, which reverses
 * the bits in each byte and also the two bits of precise_ip.
 */

typedef struct AttrField {
    uint16_t at;
    uint8_t width;
    uint16_t member;
} AttrField;

#define FIELD(offset, name)                                                                        \
    { .at = (offset), .width = sizeof(((PdAttr *)NULL)->name), .member = offsetof(PdAttr, name) }

/* clang-format off */
static const AttrField attr_fields[] = {
    FIELD(  0, type),
    FIELD(  4, size),
    FIELD(  8, config),
    FIELD( 16, sample_period),
    FIELD( 24, sample_type),
    FIELD( 32, read_format),
    FIELD( 40, flags),
    FIELD( 48, wakeup_events),
    FIELD( 52, bp_type),
    FIELD( 56, config1),
    FIELD( 64, config2),
    FIELD( 72, branch_sample_type),
    FIELD( 80, sample_regs_user),
    FIELD( 88, sample_stack_user),
    FIELD( 92, clockid),
    FIELD( 96, sample_regs_intr),
    FIELD(104, aux_watermark),
    FIELD(108, sample_max_stack),
    FIELD(112, aux_sample_size),
    FIELD(116, aux_action),
    FIELD(120, sig_data),
    FIELD(128, config3),
    FIELD(136, config4),
};

static const uint32_t published_sizes[] = {
    64, 72, 80, 96, 104, 112, 120, 128, 136, PD_ATTR_SIZE_KNOWN,
};

static const struct {
    uint64_t bit;
    const char *name;
} sample_type_names[] = {
    { PD_SAMPLE_IP,             "IP"             },
    { PD_SAMPLE_TID,            "TID"            },
    { PD_SAMPLE_TIME,           "TIME"           },
    { PD_SAMPLE_ADDR,           "ADDR"           },
    { PD_SAMPLE_READ,           "READ"           },
    { PD_SAMPLE_CALLCHAIN,      "CALLCHAIN"      },
    { PD_SAMPLE_ID,             "ID"             },
    { PD_SAMPLE_CPU,            "CPU"            },
    { PD_SAMPLE_PERIOD,         "PERIOD"         },
    { PD_SAMPLE_STREAM_ID,      "STREAM_ID"      },
    { PD_SAMPLE_RAW,            "RAW"            },
    { PD_SAMPLE_BRANCH_STACK,   "BRANCH_STACK"   },
    { PD_SAMPLE_REGS_USER,      "REGS_USER"      },
    { PD_SAMPLE_STACK_USER,     "STACK_USER"     },
    { PD_SAMPLE_WEIGHT,         "WEIGHT"         },
    { PD_SAMPLE_DATA_SRC,       "DATA_SRC"       },
    { PD_SAMPLE_IDENTIFIER,     "IDENTIFIER"     },
    { PD_SAMPLE_TRANSACTION,    "TRANSACTION"    },
    { PD_SAMPLE_REGS_INTR,      "REGS_INTR"      },
    { PD_SAMPLE_PHYS_ADDR,      "PHYS_ADDR"      },
    { PD_SAMPLE_AUX,            "AUX"            },
    { PD_SAMPLE_CGROUP,         "CGROUP"         },
    { PD_SAMPLE_DATA_PAGE_SIZE, "DATA_PAGE_SIZE" },
    { PD_SAMPLE_CODE_PAGE_SIZE, "CODE_PAGE_SIZE" },
    { PD_SAMPLE_WEIGHT_STRUCT,  "WEIGHT_STRUCT"  },
}, read_format_names[] = {
    { PD_FORMAT_TOTAL_TIME_ENABLED, "TOTAL_TIME_ENABLED" },
    { PD_FORMAT_TOTAL_TIME_RUNNING, "TOTAL_TIME_RUNNING" },
    { PD_FORMAT_ID,                 "ID"                 },
    { PD_FORMAT_GROUP,              "GROUP"              },
    { PD_FORMAT_LOST,               "LOST"               },
}, flag_names[] = {
    { PD_ATTR_DISABLED,                 "disabled"                 },
    { PD_ATTR_INHERIT,                  "inherit"                  },
    { PD_ATTR_PINNED,                   "pinned"                   },
    { PD_ATTR_EXCLUSIVE,                "exclusive"                },
    { PD_ATTR_EXCLUDE_USER,             "exclude_user"             },
    { PD_ATTR_EXCLUDE_KERNEL,           "exclude_kernel"           },
    { PD_ATTR_EXCLUDE_HV,               "exclude_hv"               },
    { PD_ATTR_EXCLUDE_IDLE,             "exclude_idle"             },
    { PD_ATTR_MMAP,                     "mmap"                     },
    { PD_ATTR_COMM,                     "comm"                     },
    { PD_ATTR_FREQ,                     "freq"                     },
    { PD_ATTR_INHERIT_STAT,             "inherit_stat"             },
    { PD_ATTR_ENABLE_ON_EXEC,           "enable_on_exec"           },
    { PD_ATTR_TASK,                     "task"                     },
    { PD_ATTR_WATERMARK,                "watermark"                },
    { PD_ATTR_MMAP_DATA,                "mmap_data"                },
    { PD_ATTR_SAMPLE_ID_ALL,            "sample_id_all"            },
    { PD_ATTR_EXCLUDE_HOST,             "exclude_host"             },
    { PD_ATTR_EXCLUDE_GUEST,            "exclude_guest"            },
    { PD_ATTR_EXCLUDE_CALLCHAIN_KERNEL, "exclude_callchain_kernel" },
    { PD_ATTR_EXCLUDE_CALLCHAIN_USER,   "exclude_callchain_user"   },
    { PD_ATTR_MMAP2,                    "mmap2"                    },
    { PD_ATTR_COMM_EXEC,                "comm_exec"                },
    { PD_ATTR_USE_CLOCKID,              "use_clockid"              },
    { PD_ATTR_CONTEXT_SWITCH,           "context_switch"           },
    { PD_ATTR_WRITE_BACKWARD,           "write_backward"           },
    { PD_ATTR_NAMESPACES,               "namespaces"               },
    { PD_ATTR_KSYMBOL,                  "ksymbol"                  },
    { PD_ATTR_BPF_EVENT,                "bpf_event"                },
    { PD_ATTR_AUX_OUTPUT,               "aux_output"               },
    { PD_ATTR_CGROUP,                   "cgroup"                   },
    { PD_ATTR_TEXT_POKE,                "text_poke"                },
    { PD_ATTR_BUILD_ID,                 "build_id"                 },
    { PD_ATTR_INHERIT_THREAD,           "inherit_thread"           },
    { PD_ATTR_REMOVE_ON_EXEC,           "remove_on_exec"           },
    { PD_ATTR_SIGTRAP,                  "sigtrap"                  },
    { PD_ATTR_DEFER_CALLCHAIN,          "defer_callchain"          },
    { PD_ATTR_DEFER_OUTPUT,             "defer_output"             },
};
/* clang-format on */

static bool attr_is_big_endian(bool swap) {
    return swap != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
}

static uint64_t attr_exchange_precise_bits(uint64_t flags) {
    uint64_t low = 1ULL << PD_ATTR_PRECISE_IP_SHIFT, high = low << 1;

    return (flags & ~(low | high)) | (flags & low) << 1 | (flags & high) >> 1;
}

static uint8_t attr_reverse_bits(uint8_t byte) {
    uint8_t r = 0;

    for (unsigned i = 0; i < 8; i++)
        r |= (uint8_t)(((byte >> i) & 1) << (7 - i));
    return r;
}

static uint64_t attr_load_flags(const uint8_t *p, bool big) {
    uint64_t flags = 0;

    for (unsigned i = 0; i < 8; i++)
        flags |= (uint64_t)(big ? attr_reverse_bits(p[i]) : p[i]) << (i * 8);
    return big ? attr_exchange_precise_bits(flags) : flags;
}

static void attr_store_flags(uint8_t *p, uint64_t flags, bool big) {
    flags = big ? attr_exchange_precise_bits(flags) : flags;
    for (unsigned i = 0; i < 8; i++) {
        uint8_t byte = (uint8_t)(flags >> (i * 8));

        p[i] = big ? attr_reverse_bits(byte) : byte;
    }
}

static void attr_load_field(const AttrField *f, PdAttr *attr, const uint8_t *p, bool swap) {
    uint8_t *member = (uint8_t *)attr + f->member;

    if (f->member == offsetof(PdAttr, flags))
        attr->flags = attr_load_flags(p, attr_is_big_endian(swap));
    else if (f->width == 8)
        store_u64(member, load_u64(p, swap), false);
    else if (f->width == 4)
        store_u32(member, load_u32(p, swap), false);
    else
        store_u16(member, load_u16(p, swap), false);
}

static void attr_store_field(const AttrField *f, const PdAttr *attr, uint8_t *p, bool swap) {
    const uint8_t *member = (const uint8_t *)attr + f->member;

    if (f->member == offsetof(PdAttr, flags))
        attr_store_flags(p, attr->flags, attr_is_big_endian(swap));
    else if (f->width == 8)
        store_u64(p, load_u64(member, false), swap);
    else if (f->width == 4)
        store_u32(p, load_u32(member, false), swap);
    else
        store_u16(p, load_u16(member, false), swap);
}

static bool attr_field_is_zero(const AttrField *f, const PdAttr *attr) {
    static const uint8_t zero[8];

    return memcmp((const uint8_t *)attr + f->member, zero, f->width) == 0;
}

int pd_attr_parse(PdAttr *ret, Bytes bytes, bool swap) {
    PdAttr attr = {};
    size_t known;

    if (bytes.size < PD_ATTR_SIZE_MIN)
        return -EBADMSG;
    /* Bytes after attr.size are padding (simpleperf) or the ids; 0 means the first version. */
    known = MAX(load_u32(bytes.data + 4, swap), (uint32_t)PD_ATTR_SIZE_MIN);
    known = MIN(known, bytes.size);
    for (size_t i = 0; i < ARRAY_SIZE(attr_fields); i++)
        if (attr_fields[i].at + (size_t)attr_fields[i].width <= known)
            attr_load_field(&attr_fields[i], &attr, bytes.data + attr_fields[i].at, swap);
    *ret = attr;
    return 0;
}

uint32_t pd_attr_size_needed(const PdAttr *attr) {
    uint32_t needed = 0;

    for (size_t i = 0; i < ARRAY_SIZE(attr_fields); i++)
        if (!attr_field_is_zero(&attr_fields[i], attr))
            needed = attr_fields[i].at + attr_fields[i].width;
    for (size_t i = 0; i < ARRAY_SIZE(published_sizes); i++)
        if (published_sizes[i] >= needed)
            return published_sizes[i];
    return PD_ATTR_SIZE_KNOWN;
}

void pd_attr_encode(const PdAttr *attr, uint32_t size, Buffer *out, bool swap) {
    PdAttr sized = *attr;
    uint8_t *p;

    assert(size >= PD_ATTR_SIZE_MIN && size % 8 == 0);
    p = buffer_reserve(out, size);
    if (!p)
        return;
    memset(p, 0, size);
    sized.size = size;
    for (size_t i = 0; i < ARRAY_SIZE(attr_fields); i++)
        if (attr_fields[i].at + (uint32_t)attr_fields[i].width <= size)
            attr_store_field(&attr_fields[i], &sized, p + attr_fields[i].at, swap);
    buffer_commit(out, size);
}

/* Adds the names of the set bits, and unnamed bits as one number. */
static void attr_describe_bits(Fields *fields, const char *name, uint64_t bits,
                               const __typeof__(flag_names[0]) *names, size_t n) {
    fields_begin_array(fields, name);
    for (size_t i = 0; i < n; i++)
        if (bits & names[i].bit) {
            fields_str(fields, NULL, names[i].name);
            bits &= ~names[i].bit;
        }
    if (bits)
        fields_hex(fields, NULL, bits);
    fields_end_array(fields);
}

static void attr_describe_rest(const PdAttr *a, Fields *fields) {
    /* clang-format off */
    const struct { const char *name; uint64_t value; bool hex; } rest[] = {
        { "bp_type",            a->bp_type,            false },
        { "config1",            a->config1,            true  },
        { "config2",            a->config2,            true  },
        { "config3",            a->config3,            true  },
        { "config4",            a->config4,            true  },
        { "branch_sample_type", a->branch_sample_type, true  },
        { "sample_regs_user",   a->sample_regs_user,   true  },
        { "sample_stack_user",  a->sample_stack_user,  false },
        { "sample_regs_intr",   a->sample_regs_intr,   true  },
        { "aux_watermark",      a->aux_watermark,      false },
        { "sample_max_stack",   a->sample_max_stack,   false },
        { "aux_sample_size",    a->aux_sample_size,    false },
        { "aux_action",         a->aux_action,         true  },
        { "sig_data",           a->sig_data,           true  },
    };
    /* clang-format on */

    for (size_t i = 0; i < ARRAY_SIZE(rest); i++)
        if (rest[i].value != 0) {
            if (rest[i].hex)
                fields_hex(fields, rest[i].name, rest[i].value);
            else
                fields_u64(fields, rest[i].name, rest[i].value);
        }
}

void pd_attr_describe(const PdAttr *attr, Fields *fields) {
    uint64_t precise = attr->flags >> PD_ATTR_PRECISE_IP_SHIFT & 3;

    fields_u64(fields, "type", attr->type);
    fields_u64(fields, "config", attr->config);
    fields_u64(fields, "attr_size", attr->size);
    fields_u64(fields, attr->flags & PD_ATTR_FREQ ? "sample_freq" : "sample_period",
               attr->sample_period);
    fields_u64(fields, "sample_type", attr->sample_type);
    attr_describe_bits(fields, "sample_fields", attr->sample_type, sample_type_names,
                       ARRAY_SIZE(sample_type_names));
    attr_describe_bits(fields, "read_format", attr->read_format, read_format_names,
                       ARRAY_SIZE(read_format_names));
    attr_describe_bits(fields, "flags", attr->flags & ~(3ULL << PD_ATTR_PRECISE_IP_SHIFT),
                       flag_names, ARRAY_SIZE(flag_names));
    if (precise)
        fields_u64(fields, "precise_ip", precise);
    if (attr->wakeup_events)
        fields_u64(fields, attr->flags & PD_ATTR_WATERMARK ? "wakeup_watermark" : "wakeup_events",
                   attr->wakeup_events);
    if (attr->flags & PD_ATTR_USE_CLOCKID)
        fields_i64(fields, "clockid", attr->clockid);
    attr_describe_rest(attr, fields);
}
