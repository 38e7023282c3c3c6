/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Inside lib/perfdata: the rows of the record types, and the parsers that they point to. */

#include "perfdata/record/record.h"

/* What a parser may need besides the bytes. Its cursor ends at the trailer. */
typedef struct RecordContext {
    const PdRecord *record;
    const PdEvent *event; /* may be NULL */
} RecordContext;

/* A parser reads everything it needs; the cursor fails if the body is too short. */
typedef void RecordParse(Cursor *c, const RecordContext *in, PdBody *ret);

typedef struct RecordRow {
    uint32_t type;
    const char *name;
    bool tasks; /* the body has its own pid and tid, which differ in meaning from those of the
                 * stamp */
    RecordParse *parse; /* NULL: the body is shown as bytes */
} RecordRow;

/* NULL for a type without a row. */
const RecordRow *record_row(uint32_t type);

/* pd_record_parse() and pd_sample_parse() without the guarantee that *ret is unchanged on failure,
 * which would cost a copy of half a kilobyte each. */
int record_parse_into(const RecordRow *row, const PdRecord *record, const PdEvent *event,
                      PdBody *ret);
int sample_parse_into(const PdRecord *record, const PdEvent *event, PdSample *ret);

RecordParse record_parse_mmap, record_parse_mmap2, record_parse_comm, record_parse_task,
    record_parse_lost, record_parse_lost_samples, record_parse_throttle, record_parse_read,
    record_parse_sample, record_parse_aux, record_parse_pid_tid, record_parse_nothing,
    record_parse_namespaces, record_parse_ksymbol, record_parse_bpf_event, record_parse_cgroup,
    record_parse_text_poke, record_parse_hw_id, record_parse_callchain_deferred;

RecordParse record_parse_header_attr, record_parse_event_type, record_parse_tracing_data,
    record_parse_build_id, record_parse_id_index, record_parse_auxtrace_info, record_parse_auxtrace,
    record_parse_auxtrace_error, record_parse_thread_map, record_parse_cpu_map,
    record_parse_stat_config, record_parse_stat, record_parse_stat_round, record_parse_event_update,
    record_parse_time_conv, record_parse_header_feature, record_parse_compressed,
    record_parse_compressed2, record_parse_bpf_metadata, record_parse_schedstat;
