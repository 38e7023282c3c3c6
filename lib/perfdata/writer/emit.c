/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/writer/emit.h"

#include <string.h>

#include "perfdata/record/record-row.h"

/*
 * Writes the few types that we make ourselves, by the fields of their row. A record is begun with
 * its header, filled, and ended with the trailer, when its size is set in the header.
 */

enum {
    FILENAME_MAX_BYTES = 4095, /* PATH_MAX minus the NUL */
    COMM_MAX_BYTES = 15,       /* TASK_COMM_LEN minus the NUL */
    SYMBOL_MAX_BYTES = 511,    /* KSYM_NAME_LEN minus the NUL */
    BUILD_ID_MAX = 20,
    MMAP2_IDENTITY_AT = 32, /* in the body */
};

/* Returns the start of the record, for emit_end(). */
static size_t emit_begin(Buffer *out, uint32_t type, uint16_t misc) {
    size_t start = out->size;

    buffer_u32(out, type, false);
    buffer_u16(out, misc, false);
    buffer_u16(out, 0, false);
    return start;
}

static void emit_end(Buffer *out, size_t start, const PdTrailer *t) {
    uint64_t type = t ? t->sample_type : 0;

    if (type & PD_SAMPLE_TID) {
        buffer_u32(out, t->pid, false);
        buffer_u32(out, t->tid, false);
    }
    if (type & PD_SAMPLE_TIME)
        buffer_u64(out, t->time, false);
    if (type & PD_SAMPLE_ID)
        buffer_u64(out, t->id, false);
    if (type & PD_SAMPLE_STREAM_ID)
        buffer_u64(out, t->id, false);
    if (type & PD_SAMPLE_CPU) {
        buffer_u32(out, t->cpu, false);
        buffer_u32(out, 0, false);
    }
    if (type & PD_SAMPLE_IDENTIFIER)
        buffer_u64(out, t->id, false);
    if (buffer_error(out) == 0)
        store_u16(out->data + start + 6, (uint16_t)(out->size - start), false);
}

static void emit_body(Buffer *out, const PdTrailer *trailer, uint32_t type, uint16_t misc,
                      const void *body, size_t text_max) {
    size_t start = emit_begin(out, type, misc);

    record_append_body(out, type, body, text_max);
    emit_end(out, start, trailer);
}

void pd_emit_comm(Buffer *out, const PdTrailer *trailer, const PdComm *comm) {
    emit_body(out, trailer, PD_RECORD_COMM, comm->exec ? PD_MISC_COMM_EXEC : 0, comm,
              COMM_MAX_BYTES);
}

void pd_emit_mmap(Buffer *out, const PdTrailer *trailer, uint16_t misc, const PdMmap *mmap) {
    emit_body(out, trailer, PD_RECORD_MMAP, misc, mmap, FILENAME_MAX_BYTES);
}

/* The build id, or what identifies the file on its host. */
static void emit_store_identity(uint8_t *p, const PdMmap *m) {
    if (m->build_id_size > 0) {
        p[0] = (uint8_t)MIN((size_t)m->build_id_size, (size_t)BUILD_ID_MAX);
        memcpy(p + 4, m->build_id, p[0]);
        return;
    }
    store_u32(p, m->major, false);
    store_u32(p + 4, m->minor, false);
    store_u64(p + 8, m->inode, false);
    store_u64(p + 16, m->generation, false);
}

void pd_emit_mmap2(Buffer *out, const PdTrailer *trailer, uint16_t misc, const PdMmap *mmap) {
    size_t start = out->size;

    if (mmap->build_id_size > 0)
        misc |= PD_MISC_MMAP_BUILD_ID;
    emit_body(out, trailer, PD_RECORD_MMAP2, misc, mmap, FILENAME_MAX_BYTES);
    if (buffer_error(out) == 0)
        emit_store_identity(out->data + start + PD_RECORD_HEADER_SIZE + MMAP2_IDENTITY_AT, mmap);
}

void pd_emit_task(Buffer *out, const PdTrailer *trailer, PdRecordType type, uint16_t misc,
                  const PdTask *task) {
    emit_body(out, trailer, type, misc, task, 0);
}

void pd_emit_ksymbol(Buffer *out, const PdTrailer *trailer, const PdKsymbol *symbol) {
    emit_body(out, trailer, PD_RECORD_KSYMBOL, 0, symbol, SYMBOL_MAX_BYTES);
}

void pd_emit_lost_samples(Buffer *out, const PdTrailer *trailer, uint64_t lost) {
    emit_body(out, trailer, PD_RECORD_LOST_SAMPLES, 0, &(PdLost){.lost = lost}, 0);
}

void pd_emit_cgroup(Buffer *out, const PdTrailer *trailer, const PdCgroup *cgroup) {
    emit_body(out, trailer, PD_RECORD_CGROUP, 0, cgroup, FILENAME_MAX_BYTES);
}

void pd_emit_namespaces(Buffer *out, const PdTrailer *trailer, const PdNamespaces *namespaces) {
    emit_body(out, trailer, PD_RECORD_NAMESPACES, 0, namespaces, 0);
}

void pd_emit_record(Buffer *out, const PdTrailer *trailer, Bytes record) {
    size_t start = out->size;

    buffer_append(out, record.data, record.size);
    emit_end(out, start, trailer);
}

void pd_emit_mark(Buffer *out, PdRecordType type) {
    emit_end(out, emit_begin(out, type, 0), NULL);
}
