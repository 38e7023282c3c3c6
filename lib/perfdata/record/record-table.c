/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/record/record.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "perfdata/record/record-row.h"

/*
 * The table of record types, and the functions that use it: names, and parsing of a record's body.
 * The parsers are in record-kernel.c and record-tool.c. A parser gets a cursor over the body
 * without header and trailer and cannot read beyond it, so the worst result of a hostile record is
 * -EBADMSG.
 */

/* clang-format off */
static const RecordRow rows[] = {
    {PD_RECORD_MMAP,                "MMAP",               true,  record_parse_mmap},
    {PD_RECORD_LOST,                "LOST",               false, record_parse_lost},
    {PD_RECORD_COMM,                "COMM",               true,  record_parse_comm},
    {PD_RECORD_EXIT,                "EXIT",               true,  record_parse_task},
    {PD_RECORD_THROTTLE,            "THROTTLE",           false, record_parse_throttle},
    {PD_RECORD_UNTHROTTLE,          "UNTHROTTLE",         false, record_parse_throttle},
    {PD_RECORD_FORK,                "FORK",               true,  record_parse_task},
    {PD_RECORD_READ,                "READ",               true,  record_parse_read},
    {PD_RECORD_SAMPLE,              "SAMPLE",             false, record_parse_sample},
    {PD_RECORD_MMAP2,               "MMAP2",              true,  record_parse_mmap2},
    {PD_RECORD_AUX,                 "AUX",                false, record_parse_aux},
    {PD_RECORD_ITRACE_START,        "ITRACE_START",       true,  record_parse_pid_tid},
    {PD_RECORD_LOST_SAMPLES,        "LOST_SAMPLES",       false, record_parse_lost_samples},
    {PD_RECORD_SWITCH,              "SWITCH",             false, record_parse_nothing},
    {PD_RECORD_SWITCH_CPU_WIDE,     "SWITCH_CPU_WIDE",    false, record_parse_pid_tid},
    {PD_RECORD_NAMESPACES,          "NAMESPACES",         true,  record_parse_namespaces},
    {PD_RECORD_KSYMBOL,             "KSYMBOL",            false, record_parse_ksymbol},
    {PD_RECORD_BPF_EVENT,           "BPF_EVENT",          false, record_parse_bpf_event},
    {PD_RECORD_CGROUP,              "CGROUP",             false, record_parse_cgroup},
    {PD_RECORD_TEXT_POKE,           "TEXT_POKE",          false, record_parse_text_poke},
    {PD_RECORD_AUX_OUTPUT_HW_ID,    "AUX_OUTPUT_HW_ID",   false, record_parse_hw_id},
    {PD_RECORD_CALLCHAIN_DEFERRED,  "CALLCHAIN_DEFERRED", false, record_parse_callchain_deferred},

    {PD_RECORD_HEADER_ATTR,         "HEADER_ATTR",        false, record_parse_header_attr},
    {PD_RECORD_EVENT_TYPE,          "EVENT_TYPE",         false, record_parse_event_type},
    {PD_RECORD_TRACING_DATA,        "TRACING_DATA",       false, record_parse_tracing_data},
    {PD_RECORD_BUILD_ID,            "BUILD_ID",           false, record_parse_build_id},
    {PD_RECORD_FINISHED_ROUND,      "FINISHED_ROUND",     false, record_parse_nothing},
    {PD_RECORD_ID_INDEX,            "ID_INDEX",           false, record_parse_id_index},
    {PD_RECORD_AUXTRACE_INFO,       "AUXTRACE_INFO",      false, record_parse_auxtrace_info},
    {PD_RECORD_AUXTRACE,            "AUXTRACE",           false, record_parse_auxtrace},
    {PD_RECORD_AUXTRACE_ERROR,      "AUXTRACE_ERROR",     false, record_parse_auxtrace_error},
    {PD_RECORD_THREAD_MAP,          "THREAD_MAP",         false, record_parse_thread_map},
    {PD_RECORD_CPU_MAP,             "CPU_MAP",            false, record_parse_cpu_map},
    {PD_RECORD_STAT_CONFIG,         "STAT_CONFIG",        false, record_parse_stat_config},
    {PD_RECORD_STAT,                "STAT",               false, record_parse_stat},
    {PD_RECORD_STAT_ROUND,          "STAT_ROUND",         false, record_parse_stat_round},
    {PD_RECORD_EVENT_UPDATE,        "EVENT_UPDATE",       false, record_parse_event_update},
    {PD_RECORD_TIME_CONV,           "TIME_CONV",          false, record_parse_time_conv},
    {PD_RECORD_HEADER_FEATURE,      "HEADER_FEATURE",     false, record_parse_header_feature},
    {PD_RECORD_COMPRESSED,          "COMPRESSED",         false, record_parse_compressed},
    {PD_RECORD_FINISHED_INIT,       "FINISHED_INIT",      false, record_parse_nothing},
    {PD_RECORD_COMPRESSED2,         "COMPRESSED2",        false, record_parse_compressed2},
    {PD_RECORD_BPF_METADATA,        "BPF_METADATA",       false, record_parse_bpf_metadata},
    {PD_RECORD_SCHEDSTAT_CPU,       "SCHEDSTAT_CPU",      false, record_parse_schedstat},
    {PD_RECORD_SCHEDSTAT_DOMAIN,    "SCHEDSTAT_DOMAIN",   false, record_parse_schedstat},

    {PD_RECORD_SIMPLEPERF + 1,       "SIMPLEPERF_KERNEL_SYMBOL",      false, NULL},
    {PD_RECORD_SIMPLEPERF + 2,       "SIMPLEPERF_DSO",                false, NULL},
    {PD_RECORD_SIMPLEPERF + 3,       "SIMPLEPERF_SYMBOL",             false, NULL},
    {PD_RECORD_SIMPLEPERF + 4,       "SIMPLEPERF_SPLIT",              false, NULL},
    {PD_RECORD_SIMPLEPERF + 5,       "SIMPLEPERF_SPLIT_END",          false, NULL},
    {PD_RECORD_SIMPLEPERF + 6,       "SIMPLEPERF_EVENT_ID",           false, NULL},
    {PD_RECORD_SIMPLEPERF + 7,       "SIMPLEPERF_CALLCHAIN",          false, NULL},
    {PD_RECORD_SIMPLEPERF + 8,       "SIMPLEPERF_UNWINDING_RESULT",   false, NULL},
    {PD_RECORD_SIMPLEPERF + 9,       "SIMPLEPERF_TRACING_DATA",       false, NULL},
    {PD_RECORD_SIMPLEPERF + 10,      "SIMPLEPERF_DEBUG",              false, NULL},
};
/* clang-format on */

enum {
    KERNEL_ROWS = PD_RECORD_CALLCHAIN_DEFERRED,
    TOOL_ROWS = PD_RECORD_SCHEDSTAT_DOMAIN - PD_RECORD_USER + 1,
};

const RecordRow *record_row(uint32_t type) {
    size_t i = type;

    if (type > PD_RECORD_SIMPLEPERF)
        i = KERNEL_ROWS + TOOL_ROWS + (type - PD_RECORD_SIMPLEPERF - 1);
    else if (type >= PD_RECORD_USER)
        i = KERNEL_ROWS + (type - PD_RECORD_USER);
    else
        i = type - (size_t)1;
    return i < ARRAY_SIZE(rows) && rows[i].type == type ? &rows[i] : NULL;
}

const char *pd_record_type_name(uint32_t type) {
    const RecordRow *row = record_row(type);

    return row ? row->name : NULL;
}

static const char *record_table_without_prefix(const char *name, const char *prefix) {
    size_t n = strlen(prefix);

    return strncasecmp(name, prefix, n) == 0 ? name + n : name;
}

static int record_table_number_from_name(const char *name, uint32_t *ret) {
    char *end;
    unsigned long v;

    if (name[0] < '0' || name[0] > '9')
        return -EINVAL;
    errno = 0;
    v = strtoul(name, &end, 0);
    if (errno || *end || v > UINT32_MAX)
        return -EINVAL;
    *ret = (uint32_t)v;
    return 0;
}

int pd_record_type_from_name(const char *name, uint32_t *ret) {
    /* perf prints ATTR for what its headers call HEADER_ATTR. */
    name =
        record_table_without_prefix(record_table_without_prefix(name, "PERF_RECORD_"), "HEADER_");
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        if (strcasecmp(name, record_table_without_prefix(rows[i].name, "HEADER_")) != 0)
            continue;
        *ret = rows[i].type;
        return 0;
    }
    return record_table_number_from_name(name, ret);
}

int record_parse_into(const RecordRow *row, const PdRecord *record, const PdEvent *event,
                      PdBody *ret) {
    RecordContext context = {.record = record, .event = event};
    Cursor c;

    if (!row || !row->parse)
        return -EOPNOTSUPP;
    if (record->size < PD_RECORD_HEADER_SIZE)
        return -EBADMSG;
    c = pd_record_cursor(record);
    if (event && record->type < PD_RECORD_USER && record->type != PD_RECORD_SAMPLE) {
        if (event->trailer_size > cursor_left(&c))
            return -EBADMSG;
        c.end -= event->trailer_size;
    }
    row->parse(&c, &context, ret);
    return c.failed ? -EBADMSG : 0;
}

int pd_record_parse(const PdRecord *record, const PdEvent *event, PdBody *ret) {
    PdBody body;
    int r;

    r = record_parse_into(record_row(record->type), record, event, &body);
    if (r < 0)
        return r;
    *ret = body;
    return 0;
}
