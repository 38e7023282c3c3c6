/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/describe/data-src.h"
#include "perfdata/describe/describe-row.h"
#include "perfdata/tracing/tracing.h"

/*
 * Samples for people and for JSON, and the blocks that other records share with them. A dump calls
 * this millions of times, so it makes one pass over the record and allocates nothing. The stamp is
 * already printed. Registers have numbers instead of names, because their names depend on the
 * architecture, which a record does not contain. Raw data and user stacks are shown completely.
 */

void describe_read(const PdRead *read, Fields *f) {
    fields_begin_object(f, "read");
    if (read->format & PD_FORMAT_TOTAL_TIME_ENABLED)
        fields_u64(f, "time_enabled", read->time_enabled);
    if (read->format & PD_FORMAT_TOTAL_TIME_RUNNING)
        fields_u64(f, "time_running", read->time_running);
    for (uint64_t i = fields_begin_list(f, "values"); fields_next(f, i, read->n); i++) {
        PdReadValue v = pd_read_at(read, i);

        fields_u64(f, "value", v.value);
        if (read->format & PD_FORMAT_ID)
            fields_u64(f, "id", v.id);
        if (read->format & PD_FORMAT_LOST)
            fields_u64(f, "lost", v.lost);
    }
    fields_end_object(f);
}

static void sample_describe_context(uint64_t ip, Fields *f) {
    /* clang-format off */
    static const struct { uint64_t ip; const char *name; } contexts[] = {
        {PD_CONTEXT_HV,            "PERF_CONTEXT_HV"},
        {PD_CONTEXT_KERNEL,        "PERF_CONTEXT_KERNEL"},
        {PD_CONTEXT_USER,          "PERF_CONTEXT_USER"},
        {PD_CONTEXT_USER_DEFERRED, "PERF_CONTEXT_USER_DEFERRED"},
        {PD_CONTEXT_GUEST,         "PERF_CONTEXT_GUEST"},
        {PD_CONTEXT_GUEST_KERNEL,  "PERF_CONTEXT_GUEST_KERNEL"},
        {PD_CONTEXT_GUEST_USER,    "PERF_CONTEXT_GUEST_USER"},
    };
    /* clang-format on */

    for (size_t i = 0; i < ARRAY_SIZE(contexts); i++)
        if (contexts[i].ip == ip) {
            fields_str(f, NULL, contexts[i].name);
            return;
        }
    fields_hex(f, NULL, ip);
}

void describe_callchain(const char *name, const PdCallchain *chain, Fields *f) {
    uint64_t i = 0, run = 0;

    fields_begin_array(f, name);
    while (run < chain->n) {
        for (; run < chain->n && pd_u64_at(chain, run) < PD_CONTEXT_MAX; run++)
            continue;
        fields_hex_items(f, chain->data + i * 8, run - i, chain->swap);
        for (; run < chain->n && pd_u64_at(chain, run) >= PD_CONTEXT_MAX; run++)
            sample_describe_context(pd_u64_at(chain, run), f);
        i = run;
    }
    fields_end_array(f);
}

static void sample_describe_branch(const PdBranch *b, Fields *f) {
    static const char *const flags[] = {"mispredicted", "predicted", "in_tx", "abort"};
    static const char *const types[] = {
        "unknown", "cond",      "uncond",   "ind",  "call", "ind_call", "ret",   "syscall",
        "sysret",  "cond_call", "cond_ret", "eret", "irq",  "serror",   "no_tx", "extended"};
    static const char *const specs[] = {"na", "spec_wrong_path", "non_spec_correct_path",
                                        "spec_correct_path"};
    static const char *const new_types[] = {"fault_align", "fault_data", "fault_inst", "arch_1",
                                            "arch_2",      "arch_3",     "arch_4",     "arch_5"};
    static const char *const privs[] = {"unknown", "user", "kernel", "hypervisor"};
    enum { TYPE_EXTENDED = 15 };
    unsigned set = b->mispredicted | b->predicted << 1 | b->in_tx << 2 | b->abort << 3;

    fields_hex(f, "from", b->from);
    fields_hex(f, "to", b->to);
    fields_flags(f, "flags", set, flags, ARRAY_SIZE(flags));
    fields_u64(f, "cycles", b->cycles);
    if (b->type)
        fields_choice(f, "type", b->type, types, ARRAY_SIZE(types));
    if (b->type == TYPE_EXTENDED)
        fields_choice(f, "new_type", b->new_type, new_types, ARRAY_SIZE(new_types));
    if (b->spec)
        fields_choice(f, "spec", b->spec, specs, ARRAY_SIZE(specs));
    if (b->priv)
        fields_choice(f, "priv", b->priv, privs, ARRAY_SIZE(privs));
}

static void sample_describe_branches(const PdBranches *branches, Fields *f) {
    if (branches->has_hw_index)
        fields_i64(f, "branch_hw_index", (int64_t)branches->hw_index);
    for (uint64_t i = fields_begin_list(f, "branches"); fields_next(f, i, branches->n); i++) {
        PdBranch b = pd_branch_at(branches, i);

        sample_describe_branch(&b, f);
        if (branches->has_counters)
            fields_hex(f, "counters", pd_u64_at(&branches->counters, i));
    }
}

static void sample_describe_registers(const char *name, const PdRegisters *r, Fields *f) {
    static const char *const abis[] = {"none", "32-bit", "64-bit"};
    uint64_t mask = r->mask;

    fields_begin_object(f, name);
    fields_choice(f, "abi", r->abi, abis, ARRAY_SIZE(abis));
    fields_hex(f, "mask", r->mask);
    for (uint64_t i = 0; i < r->values.n; i++) {
        unsigned bit = (unsigned)__builtin_ctzll(mask);
        char label[4] = {'r'};

        label[1] = (char)(bit >= 10 ? '0' + bit / 10 : '0' + bit);
        label[2] = (char)(bit >= 10 ? '0' + bit % 10 : '\0');
        fields_hex(f, label, pd_u64_at(&r->values, i));
        mask &= mask - 1;
    }
    fields_end_object(f);
}

static void sample_describe_user_stack(const PdSample *s, Fields *f) {
    fields_begin_object(f, "user_stack");
    fields_u64(f, "size", s->user_stack_size);
    fields_u64(f, "dyn_size", s->user_stack.size);
    if (s->user_stack.size > 0)
        fields_hex_bytes(f, "bytes", s->user_stack);
    fields_end_object(f);
}

static void sample_describe_raw(const PdSample *s, const RecordView *in, Fields *f) {
    const PdAttr *attr = &s->event->attr;

    fields_hex_bytes(f, "raw", s->raw);
    if (attr->type != PD_TYPE_TRACEPOINT || !in->tracing)
        return;
    fields_begin_object(f, "fields");
    pd_tracing_describe(in->tracing, attr->config, s->raw, in->record->swap, f);
    fields_end_object(f);
}

static void sample_describe_weight(const PdSample *s, Fields *f) {
    if (!(s->sample_type & PD_SAMPLE_WEIGHT_STRUCT)) {
        fields_u64(f, "weight", s->weight);
        return;
    }
    fields_u64(f, "weight", (uint32_t)s->weight);
    fields_u64(f, "ins_lat", (uint16_t)(s->weight >> 32));
    fields_u64(f, "weight3", s->weight >> 48);
}

static void sample_describe_transaction(uint64_t v, Fields *f) {
    static const char *const flags[] = {"elision",        "transaction",  "sync",
                                        "async",          "retry",        "conflict",
                                        "capacity_write", "capacity_read"};

    fields_flags(f, "transaction", (uint32_t)v, flags, ARRAY_SIZE(flags));
    fields_u64(f, "abort_code", v >> 32);
}

static void sample_describe_memory(const PdSample *s, uint64_t type, Fields *f) {
    if (type & (PD_SAMPLE_WEIGHT | PD_SAMPLE_WEIGHT_STRUCT))
        sample_describe_weight(s, f);
    if (type & PD_SAMPLE_DATA_SRC)
        data_src_describe(s->data_src, f);
    if (type & PD_SAMPLE_TRANSACTION)
        sample_describe_transaction(s->transaction, f);
    if (type & PD_SAMPLE_REGS_INTR)
        sample_describe_registers("intr_regs", &s->intr_regs, f);
    if (type & PD_SAMPLE_PHYS_ADDR)
        fields_hex(f, "phys_addr", s->phys_addr);
    if (type & PD_SAMPLE_CGROUP)
        fields_u64(f, "cgroup", s->cgroup);
    if (type & PD_SAMPLE_DATA_PAGE_SIZE)
        fields_u64(f, "data_page_size", s->data_page_size);
    if (type & PD_SAMPLE_CODE_PAGE_SIZE)
        fields_u64(f, "code_page_size", s->code_page_size);
    if (type & PD_SAMPLE_AUX)
        fields_hex_bytes(f, "aux", s->aux);
}

void record_describe_sample(const PdBody *body, const RecordView *in, Fields *f) {
    const PdSample *s = &body->sample;
    uint64_t type = s->sample_type;

    if (in->record->misc & PD_MISC_EXACT_IP)
        fields_bool(f, "exact_ip", true);
    if (type & PD_SAMPLE_IP)
        fields_hex(f, "ip", s->ip);
    if (type & PD_SAMPLE_ADDR)
        fields_hex(f, "addr", s->addr);
    if (type & PD_SAMPLE_STREAM_ID)
        fields_u64(f, "stream_id", s->stream_id);
    fields_u64(f, "period", s->period);
    if (type & PD_SAMPLE_READ)
        describe_read(&s->read, f);
    if (type & PD_SAMPLE_CALLCHAIN)
        describe_callchain("chain", &s->callchain, f);
    if (type & PD_SAMPLE_RAW)
        sample_describe_raw(s, in, f);
    if (type & PD_SAMPLE_BRANCH_STACK)
        sample_describe_branches(&s->branches, f);
    if (type & PD_SAMPLE_REGS_USER)
        sample_describe_registers("user_regs", &s->user_regs, f);
    if (type & PD_SAMPLE_STACK_USER)
        sample_describe_user_stack(s, f);
    sample_describe_memory(s, type, f);
}
