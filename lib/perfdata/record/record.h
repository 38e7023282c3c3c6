/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The records of a recording. pd_record_parse() turns a PdRecord (record-view.h) into a PdBody
 * whose strings and arrays point into the record. The table of types is in record-table.c.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "perfdata/event/event.h"
#include "perfdata/event/format.h"
#include "perfdata/event/record-view.h"
#include "perfdata/record/sample.h"
#include "util/bytes.h"
#include "util/fields.h"
#include "util/near.h"

typedef struct PdMmap { /* MMAP and MMAP2 */
    uint32_t pid, tid;
    uint64_t start, length, pgoff;
    uint32_t major, minor; /* MMAP2 without a build id */
    uint64_t inode, generation;
    uint8_t build_id_size; /* 0: none */
    const uint8_t *build_id;
    uint32_t prot, flags; /* MMAP2 */
    bool data;            /* MISC_MMAP_DATA: not code */
    Bytes filename;
} PdMmap;

/*
 * The suffix of the name of a mapping without a build id. perf would take symbols from whatever
 * file is at the path when the recording is read; no file has this name, so perf shows addresses
 * instead.
 */
#define PD_NO_BUILD_ID "[no-build-id]"

static inline bool pd_filename_is_marked(Bytes filename) {
    const size_t n = sizeof(PD_NO_BUILD_ID) - 1;

    return filename.size > n && memcmp(filename.data + filename.size - n, PD_NO_BUILD_ID, n) == 0;
}

/* The name without the mark. */
static inline Bytes pd_filename_unmark(Bytes filename) {
    if (pd_filename_is_marked(filename))
        filename.size -= sizeof(PD_NO_BUILD_ID) - 1;
    return filename;
}

typedef struct PdComm {
    uint32_t pid, tid;
    bool exec;
    Bytes comm;
} PdComm;

typedef struct PdTask { /* FORK and EXIT */
    uint32_t pid, ppid, tid, ptid;
    uint64_t time;
} PdTask;

typedef struct PdLost {
    uint64_t id, lost; /* LOST_SAMPLES has no id of its own */
} PdLost;

typedef struct PdThrottle {
    uint64_t time, id, stream_id;
} PdThrottle;

typedef struct PdReadRecord {
    uint32_t pid, tid;
    PdRead read;
} PdReadRecord;

typedef struct PdAux {
    uint64_t offset, size, flags;
} PdAux;

typedef struct PdPidTid { /* ITRACE_START, SWITCH_CPU_WIDE */
    uint32_t pid, tid;
} PdPidTid;

typedef struct PdNamespaces {
    uint32_t pid, tid;
    uint64_t n;
    Bytes links; /* n pairs of u64: device, inode */
} PdNamespaces;

typedef struct PdKsymbol {
    uint64_t addr;
    uint32_t length;
    uint16_t ksym_type, flags;
    Bytes name;
} PdKsymbol;

typedef struct PdBpfEvent {
    uint16_t bpf_type, flags;
    uint32_t id;
    const uint8_t *tag; /* 8 bytes */
} PdBpfEvent;

typedef struct PdCgroup {
    uint64_t id;
    Bytes path;
} PdCgroup;

typedef struct PdTextPoke {
    uint64_t addr;
    Bytes old_bytes, new_bytes;
} PdTextPoke;

typedef struct PdCallchainDeferred {
    uint64_t cookie;
    PdCallchain chain;
} PdCallchainDeferred;

typedef struct PdHeaderAttr {
    Bytes attr; /* attr.size bytes */
    uint64_t n_ids;
    Bytes ids; /* n_ids u64 */
} PdHeaderAttr;

typedef struct PdEventType {
    uint64_t id;
    Bytes name;
} PdEventType;

typedef struct PdBuildId { /* a BUILD_ID record, or an entry of the BUILD_ID feature */
    uint32_t pid;
    uint16_t misc;
    uint8_t size; /* 20 if the entry has no size */
    const uint8_t *build_id;
    Bytes filename;
} PdBuildId;

typedef struct PdIdIndex {
    uint64_t n;
    Bytes entries;  /* n times u64 id, idx, cpu, tid */
    Bytes machines; /* n times u64 machine_pid, vcpu, or empty */
} PdIdIndex;

typedef struct PdAuxtraceInfo {
    uint32_t auxtrace_type;
    Bytes priv; /* u64s */
} PdAuxtraceInfo;

typedef struct PdAuxtrace {
    uint64_t size, offset, reference;
    uint32_t idx, tid, cpu;
} PdAuxtrace;

typedef struct PdAuxtraceError {
    uint32_t error_type, code, cpu, pid, tid, fmt;
    uint64_t ip, time;
    Bytes message;
    uint32_t machine_pid, vcpu;
} PdAuxtraceError;

typedef struct PdThreadMap {
    uint64_t n;
    Bytes entries; /* n times u64 pid, char comm[16] */
} PdThreadMap;

typedef enum PdCpuMapKind {
    PD_CPU_MAP_LIST = 0,
    PD_CPU_MAP_MASK = 1,
    PD_CPU_MAP_RANGE = 2
} PdCpuMapKind;

typedef struct PdCpuMap {
    PdCpuMapKind kind;
    uint32_t n;         /* LIST: CPUs; MASK: longs */
    uint32_t long_size; /* MASK: 4 or 8 */
    Bytes data;         /* LIST: u16 each; MASK: the longs */
    bool any_cpu;       /* RANGE */
    uint16_t start, end;
} PdCpuMap;

typedef struct PdStatConfig {
    uint64_t n;
    Bytes entries; /* n times u64 tag, value */
} PdStatConfig;

typedef struct PdStat {
    uint64_t id;
    uint32_t cpu, thread;
    uint64_t value, enabled, running;
} PdStat;

typedef struct PdStatRound {
    uint64_t type, time;
} PdStatRound;

typedef struct PdEventUpdate {
    uint64_t update_type, id;
    Bytes text;    /* UNIT, NAME */
    double scale;  /* SCALE */
    PdCpuMap cpus; /* CPUS */
} PdEventUpdate;

typedef struct PdTimeConv {
    uint64_t shift, mult, zero, cycles, mask;
    bool has_cycles; /* the newer, longer form */
    uint8_t cap_user_time_zero, cap_user_time_short;
} PdTimeConv;

typedef struct PdHeaderFeature {
    uint64_t feature;
    Bytes body;
} PdHeaderFeature;

typedef struct PdCompressed {
    Bytes frame; /* the zstd frame */
} PdCompressed;

typedef struct PdBpfMetadata {
    Bytes prog_name;
    uint64_t n;
    Bytes entries; /* n times char key[64], value[256] */
} PdBpfMetadata;

typedef struct PdSchedstat { /* SCHEDSTAT_CPU and SCHEDSTAT_DOMAIN, of perf sched stats */
    uint64_t timestamp;
    uint32_t cpu;
    uint16_t version; /* of /proc/schedstat */
    uint16_t domain;  /* DOMAIN only */
    Bytes counters;   /* in the layout of the version */
} PdSchedstat;

typedef union PdBody {
    PdMmap mmap;
    PdComm comm;
    PdTask task;
    PdLost lost;
    PdThrottle throttle;
    PdReadRecord read;
    PdSample sample;
    PdAux aux;
    PdPidTid pid_tid;
    PdNamespaces namespaces;
    PdKsymbol ksymbol;
    PdBpfEvent bpf_event;
    PdCgroup cgroup;
    PdTextPoke text_poke;
    uint64_t hw_id; /* AUX_OUTPUT_HW_ID */
    PdCallchainDeferred callchain_deferred;
    PdHeaderAttr header_attr;
    PdEventType event_type;
    uint32_t tracing_data_size;
    PdBuildId build_id;
    PdIdIndex id_index;
    PdAuxtraceInfo auxtrace_info;
    PdAuxtrace auxtrace;
    PdAuxtraceError auxtrace_error;
    PdThreadMap thread_map;
    PdCpuMap cpu_map;
    PdStatConfig stat_config;
    PdStat stat;
    PdStatRound stat_round;
    PdEventUpdate event_update;
    PdTimeConv time_conv;
    PdHeaderFeature header_feature;
    PdCompressed compressed;
    PdBpfMetadata bpf_metadata;
    PdSchedstat schedstat;
} PdBody;

/* "MMAP2", "SAMPLE", …; NULL for an unknown type. */
const char *pd_record_type_name(uint32_t type);
/* The type by such a name in any case, with or without PERF_RECORD_, or by number; -EINVAL if it is
 * neither. */
int pd_record_type_from_name(const char *name, uint32_t *ret);
/* Offers the names of types that are similar to an unknown one. */
void pd_record_type_near(const char *name, NearNames *near);

/*
 * Parses the body. `event` is the one from pd_events_stamp(); it determines the format of SAMPLE,
 * READ and CALLCHAIN_DEFERRED and the size of the trailer of other records, and may be NULL for the
 * rest. Returns 0; -EOPNOTSUPP for a type without a row; -EBADMSG for a body that is shorter than
 * its type requires.
 */
int pd_record_parse(const PdRecord *record, const PdEvent *event, PdBody *ret);

/* How many bytes of payload follow the record (AUXTRACE, TRACING_DATA), as its body announces: any
 * number, and 0 for other types. The body must be there. */
uint64_t pd_record_payload_size(const PdRecord *record);
/* Whether record->payload is as long as the record announces. A stream may still end within it. */
bool pd_record_payload_is_whole(const PdRecord *record);
