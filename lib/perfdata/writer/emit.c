/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/writer/emit.h"

#include <errno.h>
#include <string.h>

/*
 * The inverse of record-kernel.c for the few types that we write ourselves. A record is begun with
 * its header, filled, and ended with the trailer, when its size is set in the header.
 */

enum {
    FILENAME_MAX_BYTES = 4095, /* PATH_MAX minus the NUL */
    COMM_MAX_BYTES = 15,       /* TASK_COMM_LEN minus the NUL */
    SYMBOL_MAX_BYTES = 511,    /* KSYM_NAME_LEN minus the NUL */
    BUILD_ID_MAX = 20,
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

/* The string, at least one NUL, and zeros up to a multiple of 8. */
static void emit_put_string(Buffer *out, Bytes s, size_t max) {
    size_t n = MIN(s.size, max);

    buffer_append(out, s.data, n);
    buffer_zero(out, ALIGN8(n + 1) - n);
}

void pd_emit_comm(Buffer *out, const PdTrailer *trailer, const PdComm *comm) {
    size_t start = emit_begin(out, PD_RECORD_COMM, comm->exec ? PD_MISC_COMM_EXEC : 0);

    buffer_u32(out, comm->pid, false);
    buffer_u32(out, comm->tid, false);
    emit_put_string(out, comm->comm, COMM_MAX_BYTES);
    emit_end(out, start, trailer);
}

static void emit_put_range(Buffer *out, const PdMmap *m) {
    buffer_u32(out, m->pid, false);
    buffer_u32(out, m->tid, false);
    buffer_u64(out, m->start, false);
    buffer_u64(out, m->length, false);
    buffer_u64(out, m->pgoff, false);
}

void pd_emit_mmap(Buffer *out, const PdTrailer *trailer, uint16_t misc, const PdMmap *mmap) {
    size_t start = emit_begin(out, PD_RECORD_MMAP, misc);

    emit_put_range(out, mmap);
    emit_put_string(out, mmap->filename, FILENAME_MAX_BYTES);
    emit_end(out, start, trailer);
}

void pd_emit_mmap2(Buffer *out, const PdTrailer *trailer, uint16_t misc, const PdMmap *mmap) {
    bool identified = mmap->build_id_size > 0;
    size_t n = MIN((size_t)mmap->build_id_size, (size_t)BUILD_ID_MAX);
    size_t start = emit_begin(out, PD_RECORD_MMAP2,
                              (uint16_t)(misc | (identified ? PD_MISC_MMAP_BUILD_ID : 0)));

    emit_put_range(out, mmap);
    if (identified) {
        buffer_append(out, (const uint8_t[4]){(uint8_t)n}, 4);
        buffer_append(out, mmap->build_id, n);
        buffer_zero(out, BUILD_ID_MAX - n);
    } else {
        buffer_u32(out, mmap->major, false);
        buffer_u32(out, mmap->minor, false);
        buffer_u64(out, mmap->inode, false);
        buffer_u64(out, mmap->generation, false);
    }
    buffer_u32(out, mmap->prot, false);
    buffer_u32(out, mmap->flags, false);
    emit_put_string(out, mmap->filename, FILENAME_MAX_BYTES);
    emit_end(out, start, trailer);
}

void pd_emit_task(Buffer *out, const PdTrailer *trailer, PdRecordType type, uint16_t misc,
                  const PdTask *task) {
    size_t start = emit_begin(out, type, misc);

    buffer_u32(out, task->pid, false);
    buffer_u32(out, task->ppid, false);
    buffer_u32(out, task->tid, false);
    buffer_u32(out, task->ptid, false);
    buffer_u64(out, task->time, false);
    emit_end(out, start, trailer);
}

void pd_emit_ksymbol(Buffer *out, const PdTrailer *trailer, const PdKsymbol *symbol) {
    size_t start = emit_begin(out, PD_RECORD_KSYMBOL, 0);

    buffer_u64(out, symbol->addr, false);
    buffer_u32(out, symbol->length, false);
    buffer_u16(out, symbol->ksym_type, false);
    buffer_u16(out, symbol->flags, false);
    emit_put_string(out, symbol->name, SYMBOL_MAX_BYTES);
    emit_end(out, start, trailer);
}

void pd_emit_lost_samples(Buffer *out, const PdTrailer *trailer, uint64_t lost) {
    size_t start = emit_begin(out, PD_RECORD_LOST_SAMPLES, 0);

    buffer_u64(out, lost, false);
    emit_end(out, start, trailer);
}

void pd_emit_cgroup(Buffer *out, const PdTrailer *trailer, const PdCgroup *cgroup) {
    size_t start = emit_begin(out, PD_RECORD_CGROUP, 0);

    buffer_u64(out, cgroup->id, false);
    emit_put_string(out, cgroup->path, FILENAME_MAX_BYTES);
    emit_end(out, start, trailer);
}

void pd_emit_namespaces(Buffer *out, const PdTrailer *trailer, const PdNamespaces *namespaces) {
    size_t start = emit_begin(out, PD_RECORD_NAMESPACES, 0);

    buffer_u32(out, namespaces->pid, false);
    buffer_u32(out, namespaces->tid, false);
    buffer_u64(out, namespaces->n, false);
    buffer_append(out, namespaces->links.data, namespaces->links.size);
    emit_end(out, start, trailer);
}

void pd_emit_record(Buffer *out, const PdTrailer *trailer, Bytes record) {
    size_t start = out->size;

    buffer_append(out, record.data, record.size);
    emit_end(out, start, trailer);
}

void pd_emit_mark(Buffer *out, PdRecordType type) {
    emit_end(out, emit_begin(out, type, 0), NULL);
}
