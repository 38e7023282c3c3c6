/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Writes records of kernel types that a tool generates: processes that ran before the recording
 * began, losses, the marks between rounds. Each is appended to a Buffer complete and in host byte
 * order, with the trailer that the recording's event requires. Strings too long for a record are
 * cut. Without a trailer (NULL) the record ends with its body.
 */

#include "perfdata/record/record.h"
#include "util/buffer.h"

typedef struct PdTrailer {
    uint64_t
        sample_type; /* of the event; the trailer holds TID, TIME, ID, STREAM_ID, CPU, IDENTIFIER */
    uint64_t id;
    uint64_t time;
    uint32_t pid, tid, cpu;
} PdTrailer;

void pd_emit_comm(Buffer *out, const PdTrailer *trailer, const PdComm *comm);
/* misc: PD_MISC_USER or PD_MISC_KERNEL, and PD_MISC_MMAP_DATA. */
void pd_emit_mmap(Buffer *out, const PdTrailer *trailer, uint16_t misc, const PdMmap *mmap);
/* MISC_MMAP_BUILD_ID is set when the mapping has a build id. */
void pd_emit_mmap2(Buffer *out, const PdTrailer *trailer, uint16_t misc, const PdMmap *mmap);
/* type: PD_RECORD_FORK or PD_RECORD_EXIT. */
void pd_emit_task(Buffer *out, const PdTrailer *trailer, PdRecordType type, uint16_t misc,
                  const PdTask *task);
void pd_emit_ksymbol(Buffer *out, const PdTrailer *trailer, const PdKsymbol *symbol);
void pd_emit_lost_samples(Buffer *out, const PdTrailer *trailer, uint64_t lost);
void pd_emit_cgroup(Buffer *out, const PdTrailer *trailer, const PdCgroup *cgroup);
void pd_emit_namespaces(Buffer *out, const PdTrailer *trailer, const PdNamespaces *namespaces);
/* Appends a trailer to an existing record, header and body. Its size must be a multiple of 8. */
void pd_emit_record(Buffer *out, const PdTrailer *trailer, Bytes record);
/* A record without body or trailer: FINISHED_ROUND, FINISHED_INIT. */
void pd_emit_mark(Buffer *out, PdRecordType type);
