/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Inside lib/perfdata: the row of each record type, and the parsers that the rows point to. */

#include "perfdata/record/record.h"

/* What a parser may need beside the bytes. The cursor it gets ends where the trailer begins. */
typedef struct RecordContext {
    const PdRecord *record;
    const PdEvent *event; /* may be NULL */
} RecordContext;

/* A parser reads all it needs and lets the cursor fail on what does not fit. */
typedef void RecordParse(Cursor *c, const RecordContext *in, PdBody *ret);

typedef struct RecordRow {
    uint32_t type;
    const char *name;
    bool tasks; /* the body says pid and tid itself, and those of the stamp are another thing */
    RecordParse *parse; /* NULL: nothing but bytes is known of it */
} RecordRow;

/* NULL for a type without a row. */
const RecordRow *record_row(uint32_t type);

/* pd_record_parse() and pd_sample_parse() without the promise to leave *ret alone on failure, which
 * would cost a copy of half a kilobyte each. */
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
