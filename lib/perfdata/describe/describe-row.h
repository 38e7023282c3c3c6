/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Inside lib/perfdata: the functions that show what the fields of a row cannot say. */

#include "perfdata/record/record.h"
#include "perfdata/tracing/tracing.h"

/* What a describer may need besides the body. */
typedef struct RecordView {
    const PdRecord *record;
    const PdStamp *stamp;
    const PdTracing *tracing; /* may be NULL */
} RecordView;

/* Adds fields to the object that already has the members of the header and the stamp. A body must
 * not reuse their names. */
typedef void RecordDescribe(const PdBody *body, const RecordView *in, Fields *f);

RecordDescribe record_describe_mmap2, record_describe_read, record_describe_sample,
    record_describe_switch, record_describe_switch_cpu_wide, record_describe_namespaces,
    record_describe_text_poke, record_describe_callchain_deferred, record_describe_header_attr,
    record_describe_build_id, record_describe_id_index, record_describe_auxtrace_info,
    record_describe_auxtrace_error, record_describe_thread_map, record_describe_cpu_map,
    record_describe_stat_config, record_describe_event_update, record_describe_time_conv,
    record_describe_header_feature, record_describe_compressed, record_describe_bpf_metadata;

/* Used by SAMPLE and by records that contain a part of one. */
void describe_read(const PdRead *read, Fields *f);
void describe_callchain(const char *name, const PdCallchain *chain, Fields *f);
/* Thread ids are signed: -1 means a task that is gone, or all tasks. */
static inline void describe_id(Fields *f, const char *name, uint32_t id) {
    fields_i64(f, name, (int32_t)id);
}
