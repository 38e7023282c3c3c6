/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/describe/record-describe.h"

#include <errno.h>

#include "perfdata/describe/describe-row.h"
#include "perfdata/record/record-row.h"

/*
 * What pd_record_describe() prints for any record: its header, its stamp, and then the fields of
 * its body, by the function of its type. Every member of a record has a unique name: where the body
 * has a `pid` and `tid` (the task that a COMM is about), those of the stamp become `stamp_pid` and
 * `stamp_tid`.
 */

static const char *const cpumodes[] = {"unknown",    "kernel",       "user",
                                       "hypervisor", "guest_kernel", "guest_user"};

/* clang-format off */
static RecordDescribe *const of_kernel[] = {
    [PD_RECORD_MMAP]               = record_describe_mmap,
    [PD_RECORD_LOST]               = record_describe_lost,
    [PD_RECORD_COMM]               = record_describe_comm,
    [PD_RECORD_EXIT]               = record_describe_task,
    [PD_RECORD_THROTTLE]           = record_describe_throttle,
    [PD_RECORD_UNTHROTTLE]         = record_describe_throttle,
    [PD_RECORD_FORK]               = record_describe_task,
    [PD_RECORD_READ]               = record_describe_read,
    [PD_RECORD_SAMPLE]             = record_describe_sample,
    [PD_RECORD_MMAP2]              = record_describe_mmap2,
    [PD_RECORD_AUX]                = record_describe_aux,
    [PD_RECORD_ITRACE_START]       = record_describe_pid_tid,
    [PD_RECORD_LOST_SAMPLES]       = record_describe_lost_samples,
    [PD_RECORD_SWITCH]             = record_describe_switch,
    [PD_RECORD_SWITCH_CPU_WIDE]    = record_describe_switch_cpu_wide,
    [PD_RECORD_NAMESPACES]         = record_describe_namespaces,
    [PD_RECORD_KSYMBOL]            = record_describe_ksymbol,
    [PD_RECORD_BPF_EVENT]          = record_describe_bpf_event,
    [PD_RECORD_CGROUP]             = record_describe_cgroup,
    [PD_RECORD_TEXT_POKE]          = record_describe_text_poke,
    [PD_RECORD_AUX_OUTPUT_HW_ID]   = record_describe_hw_id,
    [PD_RECORD_CALLCHAIN_DEFERRED] = record_describe_callchain_deferred,
};
static RecordDescribe *const of_tools[] = {
    [PD_RECORD_HEADER_ATTR - PD_RECORD_USER]      = record_describe_header_attr,
    [PD_RECORD_EVENT_TYPE - PD_RECORD_USER]       = record_describe_event_type,
    [PD_RECORD_TRACING_DATA - PD_RECORD_USER]     = record_describe_tracing_data,
    [PD_RECORD_BUILD_ID - PD_RECORD_USER]         = record_describe_build_id,
    [PD_RECORD_FINISHED_ROUND - PD_RECORD_USER]   = record_describe_nothing,
    [PD_RECORD_ID_INDEX - PD_RECORD_USER]         = record_describe_id_index,
    [PD_RECORD_AUXTRACE_INFO - PD_RECORD_USER]    = record_describe_auxtrace_info,
    [PD_RECORD_AUXTRACE - PD_RECORD_USER]         = record_describe_auxtrace,
    [PD_RECORD_AUXTRACE_ERROR - PD_RECORD_USER]   = record_describe_auxtrace_error,
    [PD_RECORD_THREAD_MAP - PD_RECORD_USER]       = record_describe_thread_map,
    [PD_RECORD_CPU_MAP - PD_RECORD_USER]          = record_describe_cpu_map,
    [PD_RECORD_STAT_CONFIG - PD_RECORD_USER]      = record_describe_stat_config,
    [PD_RECORD_STAT - PD_RECORD_USER]             = record_describe_stat,
    [PD_RECORD_STAT_ROUND - PD_RECORD_USER]       = record_describe_stat_round,
    [PD_RECORD_EVENT_UPDATE - PD_RECORD_USER]     = record_describe_event_update,
    [PD_RECORD_TIME_CONV - PD_RECORD_USER]        = record_describe_time_conv,
    [PD_RECORD_HEADER_FEATURE - PD_RECORD_USER]   = record_describe_header_feature,
    [PD_RECORD_COMPRESSED - PD_RECORD_USER]       = record_describe_compressed,
    [PD_RECORD_FINISHED_INIT - PD_RECORD_USER]    = record_describe_nothing,
    [PD_RECORD_COMPRESSED2 - PD_RECORD_USER]      = record_describe_compressed,
    [PD_RECORD_BPF_METADATA - PD_RECORD_USER]     = record_describe_bpf_metadata,
    [PD_RECORD_SCHEDSTAT_CPU - PD_RECORD_USER]    = record_describe_schedstat,
    [PD_RECORD_SCHEDSTAT_DOMAIN - PD_RECORD_USER] = record_describe_schedstat,
};
/* clang-format on */

/* Every type with a parser also has a describer. */
static RecordDescribe *record_describe_describer_of(uint32_t type) {
    return type < PD_RECORD_USER ? of_kernel[type] : of_tools[type - PD_RECORD_USER];
}

static void record_describe_header(const PdRecord *r, const RecordRow *row, Fields *f) {
    if (row)
        fields_str(f, "type", row->name);
    else
        fields_u64(f, "type", r->type);
    if (r->file > 0)
        fields_u64(f, "file", r->file - 1);
    fields_u64(f, "offset", r->offset);
    if (r->decompressed)
        fields_bool(f, "decompressed", true);
    fields_u64(f, "size", r->size);
    if (r->payload > 0)
        fields_u64(f, "payload", r->payload);
    if (r->type > PD_RECORD_SIMPLEPERF) /* misc holds the upper bits of the size */
        return;
    fields_hex(f, "misc", r->misc);
    if (r->type < PD_RECORD_USER || r->type == PD_RECORD_BUILD_ID)
        fields_choice(f, "cpumode", r->misc & PD_MISC_CPUMODE_MASK, cpumodes, ARRAY_SIZE(cpumodes));
}

static void record_describe_stamp(const PdStamp *s, bool tasks, Fields *f) {
    if (s->has_time)
        fields_time_ns(f, "time", s->time);
    if (s->has_cpu)
        describe_id(f, "cpu", s->cpu);
    if (s->has_tid) {
        describe_id(f, tasks ? "stamp_pid" : "pid", s->pid);
        describe_id(f, tasks ? "stamp_tid" : "tid", s->tid);
    }
    if (s->has_id)
        fields_u64(f, "id", s->id);
    if (s->event && s->event->name)
        fields_str(f, "event", s->event->name);
}

/* Shows a record that cannot be parsed as bytes. */
static void record_describe_bytes(const PdRecord *r, const char *why, Fields *f) {
    if (why)
        fields_str(f, "error", why);
    if (r->size > PD_RECORD_HEADER_SIZE)
        fields_hex_bytes(f, "bytes",
                         (Bytes){.data = r->data + PD_RECORD_HEADER_SIZE,
                                 .size = r->size - PD_RECORD_HEADER_SIZE});
}

static const char *record_describe_why_not(const PdRecord *r, const PdEvent *event) {
    if (!event && (r->type == PD_RECORD_SAMPLE || r->type == PD_RECORD_READ))
        return "no event has its id, so its fields are not known";
    return "it does not hold what its type announces";
}

void pd_record_describe(const PdRecord *record, const PdStamp *stamp, const PdTracing *tracing,
                        Fields *fields) {
    const RecordRow *row = record_row(record->type);
    RecordView view = {.record = record, .stamp = stamp, .tracing = tracing};
    PdBody body;
    int r;

    record_describe_header(record, row, fields);
    record_describe_stamp(stamp, row && row->tasks, fields);
    if (!row || !row->parse) {
        record_describe_bytes(record, NULL, fields);
        return;
    }
    r = record_parse_into(row, record, stamp->event, &body);
    if (r < 0)
        record_describe_bytes(record, record_describe_why_not(record, stamp->event), fields);
    else
        record_describe_describer_of(record->type)(&body, &view, fields);
}
