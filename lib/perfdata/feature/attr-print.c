/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/feature/environment-feature.h"

#include "util/text.h"

/*
 * Prints the fields of an attr that are not zero, like perf's header listing, in its words and
 * order.
 */

typedef struct BitName {
    uint64_t bit;
    const char *name;
} BitName;

/* clang-format off */
static const BitName sample_types[] = {
    {PD_SAMPLE_IP,             "IP"},
    {PD_SAMPLE_TID,            "TID"},
    {PD_SAMPLE_TIME,           "TIME"},
    {PD_SAMPLE_ADDR,           "ADDR"},
    {PD_SAMPLE_READ,           "READ"},
    {PD_SAMPLE_CALLCHAIN,      "CALLCHAIN"},
    {PD_SAMPLE_ID,             "ID"},
    {PD_SAMPLE_CPU,            "CPU"},
    {PD_SAMPLE_PERIOD,         "PERIOD"},
    {PD_SAMPLE_STREAM_ID,      "STREAM_ID"},
    {PD_SAMPLE_RAW,            "RAW"},
    {PD_SAMPLE_BRANCH_STACK,   "BRANCH_STACK"},
    {PD_SAMPLE_REGS_USER,      "REGS_USER"},
    {PD_SAMPLE_STACK_USER,     "STACK_USER"},
    {PD_SAMPLE_IDENTIFIER,     "IDENTIFIER"},
    {PD_SAMPLE_REGS_INTR,      "REGS_INTR"},
    {PD_SAMPLE_DATA_SRC,       "DATA_SRC"},
    {PD_SAMPLE_WEIGHT,         "WEIGHT"},
    {PD_SAMPLE_PHYS_ADDR,      "PHYS_ADDR"},
    {PD_SAMPLE_AUX,            "AUX"},
    {PD_SAMPLE_CGROUP,         "CGROUP"},
    {PD_SAMPLE_DATA_PAGE_SIZE, "DATA_PAGE_SIZE"},
    {PD_SAMPLE_CODE_PAGE_SIZE, "CODE_PAGE_SIZE"},
    {PD_SAMPLE_WEIGHT_STRUCT,  "WEIGHT_STRUCT"},
    {PD_SAMPLE_TRANSACTION,    "TRANSACTION"},
    {}
};

static const BitName branch_types[] = {
    {1ULL << 0,          "USER"},
    {1ULL << 1,          "KERNEL"},
    {1ULL << 2,          "HV"},
    {1ULL << 3,          "ANY"},
    {1ULL << 4,          "ANY_CALL"},
    {1ULL << 5,          "ANY_RETURN"},
    {1ULL << 6,          "IND_CALL"},
    {1ULL << 7,          "ABORT_TX"},
    {1ULL << 8,          "IN_TX"},
    {1ULL << 9,          "NO_TX"},
    {1ULL << 10,         "COND"},
    {1ULL << 11,         "CALL_STACK"},
    {1ULL << 12,         "IND_JUMP"},
    {1ULL << 13,         "CALL"},
    {1ULL << 14,         "NO_FLAGS"},
    {1ULL << 15,         "NO_CYCLES"},
    {1ULL << 16,         "TYPE_SAVE"},
    {PD_BRANCH_HW_INDEX, "HW_INDEX"},
    {1ULL << 18,         "PRIV_SAVE"},
    {PD_BRANCH_COUNTERS, "COUNTERS"},
    {}
};

static const BitName read_formats[] = {
    {PD_FORMAT_TOTAL_TIME_ENABLED, "TOTAL_TIME_ENABLED"},
    {PD_FORMAT_TOTAL_TIME_RUNNING, "TOTAL_TIME_RUNNING"},
    {PD_FORMAT_ID,                 "ID"},
    {PD_FORMAT_GROUP,              "GROUP"},
    {PD_FORMAT_LOST,               "LOST"},
    {}
};

/* In the order of the bit-field; precise_ip has two bits. */
static const BitName flags[] = {
    {PD_ATTR_DISABLED,                 "disabled"},
    {PD_ATTR_INHERIT,                  "inherit"},
    {PD_ATTR_PINNED,                   "pinned"},
    {PD_ATTR_EXCLUSIVE,                "exclusive"},
    {PD_ATTR_EXCLUDE_USER,             "exclude_user"},
    {PD_ATTR_EXCLUDE_KERNEL,           "exclude_kernel"},
    {PD_ATTR_EXCLUDE_HV,               "exclude_hv"},
    {PD_ATTR_EXCLUDE_IDLE,             "exclude_idle"},
    {PD_ATTR_MMAP,                     "mmap"},
    {PD_ATTR_COMM,                     "comm"},
    {PD_ATTR_FREQ,                     "freq"},
    {PD_ATTR_INHERIT_STAT,             "inherit_stat"},
    {PD_ATTR_ENABLE_ON_EXEC,           "enable_on_exec"},
    {PD_ATTR_TASK,                     "task"},
    {PD_ATTR_WATERMARK,                "watermark"},
    {3ULL << PD_ATTR_PRECISE_IP_SHIFT, "precise_ip"},
    {PD_ATTR_MMAP_DATA,                "mmap_data"},
    {PD_ATTR_SAMPLE_ID_ALL,            "sample_id_all"},
    {PD_ATTR_EXCLUDE_HOST,             "exclude_host"},
    {PD_ATTR_EXCLUDE_GUEST,            "exclude_guest"},
    {PD_ATTR_EXCLUDE_CALLCHAIN_KERNEL, "exclude_callchain_kernel"},
    {PD_ATTR_EXCLUDE_CALLCHAIN_USER,   "exclude_callchain_user"},
    {PD_ATTR_MMAP2,                    "mmap2"},
    {PD_ATTR_COMM_EXEC,                "comm_exec"},
    {PD_ATTR_USE_CLOCKID,              "use_clockid"},
    {PD_ATTR_CONTEXT_SWITCH,           "context_switch"},
    {PD_ATTR_WRITE_BACKWARD,           "write_backward"},
    {PD_ATTR_NAMESPACES,               "namespaces"},
    {PD_ATTR_KSYMBOL,                  "ksymbol"},
    {PD_ATTR_BPF_EVENT,                "bpf_event"},
    {PD_ATTR_AUX_OUTPUT,               "aux_output"},
    {PD_ATTR_CGROUP,                   "cgroup"},
    {PD_ATTR_TEXT_POKE,                "text_poke"},
    {PD_ATTR_BUILD_ID,                 "build_id"},
    {PD_ATTR_INHERIT_THREAD,           "inherit_thread"},
    {PD_ATTR_REMOVE_ON_EXEC,           "remove_on_exec"},
    {PD_ATTR_SIGTRAP,                  "sigtrap"},
    {PD_ATTR_DEFER_CALLCHAIN,          "defer_callchain"},
    {PD_ATTR_DEFER_OUTPUT,             "defer_output"},
    {}
};
/* clang-format on */

static void attr_print_label(Buffer *out, const char *name) {
    text_puts(out, ", ");
    text_puts(out, name);
    text_puts(out, " = ");
}

static void attr_print_number(Buffer *out, const char *name, uint64_t v) {
    if (v == 0)
        return;
    attr_print_label(out, name);
    text_u64(out, v);
}

static void attr_print_hex(Buffer *out, const char *name, uint64_t v) {
    if (v == 0)
        return;
    attr_print_label(out, name);
    text_hex(out, v);
}

static void attr_print_bits(Buffer *out, const char *name, uint64_t v, const BitName *names) {
    bool first = true;

    if (v == 0)
        return;
    attr_print_label(out, name);
    for (; names->name; names++) {
        if (!(v & names->bit))
            continue;
        text_puts(out, first ? "" : "|");
        text_puts(out, names->name);
        first = false;
    }
}

void print_attr(const PdAttr *attr, Buffer *out) {
    attr_print_number(out, "type", attr->type);
    attr_print_number(out, "size", attr->size);
    attr_print_hex(out, "config", attr->config);
    attr_print_number(out, "{ sample_period, sample_freq }", attr->sample_period);
    attr_print_bits(out, "sample_type", attr->sample_type, sample_types);
    attr_print_bits(out, "read_format", attr->read_format, read_formats);
    for (const BitName *f = flags; f->name; f++)
        attr_print_number(out, f->name, (attr->flags & f->bit) / (f->bit & -f->bit));
    attr_print_number(out, "{ wakeup_events, wakeup_watermark }", attr->wakeup_events);
    attr_print_number(out, "bp_type", attr->bp_type);
    attr_print_hex(out, "{ bp_addr, config1 }", attr->config1);
    attr_print_hex(out, "{ bp_len, config2 }", attr->config2);
    attr_print_bits(out, "branch_sample_type", attr->branch_sample_type, branch_types);
    attr_print_hex(out, "sample_regs_user", attr->sample_regs_user);
    attr_print_number(out, "sample_stack_user", attr->sample_stack_user);
    if (attr->clockid != 0) {
        attr_print_label(out, "clockid");
        text_i64(out, attr->clockid);
    }
    attr_print_hex(out, "sample_regs_intr", attr->sample_regs_intr);
    attr_print_number(out, "aux_watermark", attr->aux_watermark);
    attr_print_number(out, "sample_max_stack", attr->sample_max_stack);
    attr_print_number(out, "aux_sample_size", attr->aux_sample_size);
    attr_print_hex(out, "aux_action", attr->aux_action);
    attr_print_number(out, "sig_data", attr->sig_data);
    attr_print_hex(out, "config3", attr->config3);
    attr_print_hex(out, "config4", attr->config4);
}
