/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Where and how a recording was made: the decoded header features. A table in environment-table.c
 * has a row for each feature {bit, name, read, write, print, json}. `has` is false for a missing
 * feature. A PdEnvironment owns everything it points to; strings are NUL-terminated and may contain
 * any other byte.
 */

#include <stdbool.h>
#include <stdint.h>

#include "perfdata/event/event.h"
#include "perfdata/event/format.h"
#include "perfdata/feature/coverage.h"
#include "util/buffer.h"
#include "util/bytes.h"
#include "util/fields.h"

typedef struct PdStrings {
    char **items;
    size_t n;
} PdStrings;

typedef struct PdEventDesc {
    PdAttr attr;
    uint8_t *raw; /* the attr's bytes as on disk; NULL: made here */
    size_t raw_size;
    bool raw_swapped; /* they are in the other byte order */
    char *name;
    uint64_t *ids;
    size_t n_ids;
} PdEventDesc;

typedef struct PdBuildIdEntry {
    uint32_t pid;
    uint16_t misc;
    uint8_t build_id[20];
    uint8_t size;  /* valid bytes of build_id: usually 16 or 20 */
    uint32_t type; /* of the record: 0, or PD_RECORD_HEADER_BUILD_ID */
    uint16_t room; /* size of the padded filename on disk; 0: as perf pads it */
    char *filename;
} PdBuildIdEntry;

typedef struct PdCpuPlace { /* the position of a CPU, in newer revisions of CPU_TOPOLOGY */
    uint32_t core, socket, die;
} PdCpuPlace;

typedef struct PdNumaNode {
    uint32_t node;
    uint64_t mem_total_kb, mem_free_kb;
    char *cpus;
} PdNumaNode;

typedef struct PdPmu {
    uint32_t type;
    char *name;
} PdPmu;

typedef struct PdGroup {
    char *name;
    uint32_t leader, n_members;
} PdGroup;

typedef struct PdCache {
    uint32_t level, line_size, sets, ways;
    char *type, *size, *map;
} PdCache;

typedef struct PdMemNode {
    uint64_t node;
    uint64_t n_bits;
    uint64_t *bits; /* (n_bits + 63) / 64 words */
} PdMemNode;

typedef struct PdPmuCaps { /* of one PMU; the name is "" or "cpu" in CPU_PMU_CAPS */
    char *pmu;
    PdStrings names, values;
} PdPmuCaps;

typedef struct PdHybrid {
    char *pmu, *cpus;
} PdHybrid;

typedef struct PdBpfProg { /* the fixed part that is printed, and all bytes */
    uint32_t type, id, jited_len, xlated_len;
    char name[17];
    uint8_t *raw; /* from info_len on: bpf_prog_info and its arrays, as on disk */
    size_t raw_size;
    bool raw_swapped; /* they are in the other byte order */
} PdBpfProg;

typedef struct PdBtf {
    uint32_t id;
    uint8_t *data;
    size_t size;
} PdBtf;

typedef struct PdCpuDomain {
    uint32_t level;
    char *name, *cpumask, *cpulist;
} PdCpuDomain;

typedef struct PdCpuDomains {
    uint32_t cpu;
    PdCpuDomain *domains;
    size_t n;
} PdCpuDomains;

typedef struct PdUnknownFeature {
    unsigned bit;
    uint8_t *body;
    size_t size;
} PdUnknownFeature;

typedef struct PdEnvironment {
    bool has[PD_FEATURE_BITS]; /* the feature was read and is valid */

    uint8_t *tracing_data; /* complete; see tracing.h */
    size_t tracing_data_size;
    PdBuildIdEntry *build_ids;
    size_t n_build_ids;
    char *hostname, *osrelease, *version, *arch, *cpudesc, *cpuid;
    uint32_t nrcpus_available, nrcpus_online;
    uint64_t total_mem_kb;
    PdStrings cmdline;
    PdEventDesc *event_descs;
    size_t n_event_descs;
    PdStrings core_siblings, thread_siblings, die_siblings; /* CPU_TOPOLOGY */
    PdCpuPlace *cpu_places; /* nrcpus_available items, or NULL in the oldest revision */
    size_t n_cpu_places;
    bool has_dies;
    PdNumaNode *numa_nodes;
    size_t n_numa_nodes;
    PdPmu *pmus;
    size_t n_pmus;
    PdGroup *groups;
    size_t n_groups;
    size_t n_auxtrace; /* words of the AUXTRACE index: an entry is {offset, size} */
    uint64_t *auxtrace;
    bool auxtrace_bare; /* without a leading count, as simpleperf writes it */
    PdCache *caches;
    size_t n_caches;
    uint32_t cache_version;
    uint64_t first_sample_time, last_sample_time;
    uint64_t mem_version, mem_block_size;
    PdMemNode *mem_nodes;
    size_t n_mem_nodes;
    uint64_t clockid_resolution_ns;
    uint64_t dir_version;
    PdBpfProg *bpf_progs;
    size_t n_bpf_progs;
    PdBtf *btfs;
    size_t n_btfs;
    uint32_t compressed_version, compressed_type, compressed_level, compressed_ratio,
        compressed_mmap_len;
    PdPmuCaps cpu_pmu_caps;
    uint32_t clock_data_version, clock_data_clockid;
    uint64_t clock_data_wall_ns, clock_data_clockid_ns;
    PdHybrid *hybrids;
    size_t n_hybrids;
    PdPmuCaps *pmu_caps;
    size_t n_pmu_caps;
    uint32_t schedstat_version, max_sched_domains;
    PdCpuDomains *cpu_domains;
    size_t n_cpu_domains;
    uint32_t e_machine, e_flags;
    uint32_t cln_size;
    PdStrings meta_info;       /* simpleperf: key, value, key, value … */
    PdCoverage coverage;       /* in CLOCK_REALTIME */
    PdUnknownFeature *unknown; /* unknown bits, or features with an invalid body */
    size_t n_unknown;
    PdUnknownFeature *tails; /* the rest of bodies that are longer than we understand */
    size_t n_tails;
} PdEnvironment;

int pd_environment_new(PdEnvironment **ret);
PdEnvironment *pd_environment_free(PdEnvironment *env);
DEFINE_CLEANUP(PdEnvironment *, pd_environment_free);

/* Whether profd made the recording, or it was cut out of one; PD_FEATURE_VERSION was read. */
bool pd_environment_is_of_profd(const PdEnvironment *env);

/* "HOSTNAME", …; NULL for an unknown bit. */
const char *pd_feature_name(unsigned bit);

/* Reads the body of a feature and replaces the old value. -EBADMSG: the body is shorter than it
 * claims; the bytes are then kept as unknown. Memory is bounded by the body, since a count is
 * accepted only if the body can hold it. CPU_TOPOLOGY requires that NRCPUS was read before. */
int pd_environment_read(PdEnvironment *env, unsigned bit, Bytes body, bool swap);
/* Appends the body; -ENOENT if the feature is missing. What was kept as bytes (unknown features,
 * tails, tracing data, arrays of BPF programs) is written unchanged in either byte order. */
int pd_environment_write(const PdEnvironment *env, unsigned bit, Buffer *out, bool swap);

/* Prints lines like `perf report --header-only -I`, `# hostname : x`; all bytes from outside are
 * escaped. */
void pd_environment_print(const PdEnvironment *env, Buffer *out);
/* Adds members, with lowercase names, to an open object: those of one feature, if it is there, or
 * of all. */
void pd_environment_describe_feature(const PdEnvironment *env, unsigned bit, Fields *fields);
void pd_environment_describe(const PdEnvironment *env, Fields *fields);

typedef struct PdReader PdReader;
typedef struct PdDamage PdDamage;
/* Describes why pd_environment_read() refused a feature, and its position. */
void pd_feature_damage(const PdReader *reader, unsigned bit, int error, PdDamage *ret);
/* Reads one feature of a reader. One that is missing, damaged or too large is no error:
 * env->has[bit] says whether it was read. */
int pd_environment_read_feature(PdEnvironment *env, PdReader *reader, unsigned bit);
/* Reads every feature of a reader. Returns 0, or the first negative errno that is not caused by the
 * file (damaged features are counted in *ret_damaged and described in ret_why). */
int pd_environment_from_reader(PdEnvironment *env, PdReader *reader, unsigned *ret_damaged,
                               PdDamage *ret_why);
