/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Where and how a recording was made: the header features, decoded. One table in environment.c has
 * a row a feature {bit, name, read, write, print, json}. A feature that is not there leaves its
 * `has` bit unset. A PdEnvironment owns everything it points to; strings are NUL-terminated and
 * may hold any other byte.
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
    uint8_t *raw; /* the attr's bytes as on disk; NULL: made on this host */
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
    uint8_t size;  /* bytes of build_id that count: 16 or 20 mostly */
    uint32_t type; /* of the record: 0, or PD_RECORD_HEADER_BUILD_ID */
    uint16_t room; /* what the padded filename took on disk; 0: as much as perf gives */
    char *filename;
} PdBuildIdEntry;

typedef struct PdCpuPlace { /* of a CPU, in the newer revisions of CPU_TOPOLOGY */
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

typedef struct PdPmuCaps { /* of one PMU; name "" or "cpu" for CPU_PMU_CAPS */
    char *pmu;
    PdStrings names, values;
} PdPmuCaps;

typedef struct PdHybrid {
    char *pmu, *cpus;
} PdHybrid;

typedef struct PdBpfProg { /* the fixed part that people look at, and all of the bytes */
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
    bool has[PD_FEATURE_BITS]; /* read, and makes sense */

    uint8_t *tracing_data; /* whole; see tracing.h */
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
    PdCpuPlace *cpu_places; /* nrcpus_available of them, or NULL in the oldest revision */
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
    bool auxtrace_bare; /* without a count in front, as simpleperf has it */
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
    PdCoverage coverage;       /* by CLOCK_REALTIME */
    PdUnknownFeature *unknown; /* bits that nobody named, or whose body makes no sense */
    size_t n_unknown;
    PdUnknownFeature *tails; /* what followed the part of a body that we understand */
    size_t n_tails;
} PdEnvironment;

int pd_environment_new(PdEnvironment **ret);
PdEnvironment *pd_environment_free(PdEnvironment *env);
DEFINE_CLEANUP(PdEnvironment *, pd_environment_free);

/* "HOSTNAME", …; NULL for a bit that has no name. */
const char *pd_feature_name(unsigned bit);

/* Takes in the body of a feature, in place of what was there. -EBADMSG: it does not hold what it
 * announces; the bytes are then kept as unknown. Bounded by the body: no count is believed that
 * the body cannot hold. CPU_TOPOLOGY needs NRCPUS to have been read before. */
int pd_environment_read(PdEnvironment *env, unsigned bit, Bytes body, bool swap);
/* Appends the body; -ENOENT when the feature is not there. What was kept as bytes (unknown ones,
 * tails, tracing data, arrays of BPF programs) is written as it was, whatever the byte order. */
int pd_environment_write(const PdEnvironment *env, unsigned bit, Buffer *out, bool swap);

/* Lines as `perf report --header-only -I` prints them, `# hostname : x`; all outside bytes escaped.
 */
void pd_environment_print(const PdEnvironment *env, Buffer *out);
/* Members, named in lower case, into an open object. */
void pd_environment_describe(const PdEnvironment *env, Fields *fields);

typedef struct PdReader PdReader;
typedef struct PdDamage PdDamage;
/* What to say of a feature that pd_environment_read() refused, and where it is. */
void pd_feature_damage(const PdReader *reader, unsigned bit, int error, PdDamage *ret);
/* Reads every feature that a reader has. Returns 0, or the first negative errno that is not about
 * the file (damaged features are counted in *ret_damaged and named in ret_why). */
int pd_environment_from_reader(PdEnvironment *env, PdReader *reader, unsigned *ret_damaged,
                               PdDamage *ret_why);
