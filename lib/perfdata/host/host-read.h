/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Reads /proc and /sys below a root. Paths are formats that begin with a slash. File contents are
 * bounded and checked like any other bytes from outside.
 */

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>

#include "perfdata/feature/environment.h"
#include "util/macro.h"

enum {
    HOST_IDS_MAX = 8192,    /* CPUs and nodes are numbered below this */
    HOST_TEXT_SIZE = 4096,  /* of one file, or of one line of a larger one */
    HOST_NAMES_MAX = 65536, /* in one folder */
};

typedef struct Host {
    const char *root;
    const char *arch; /* as in uname */
} Host;

/* A set of CPUs or nodes, as "0-3,8" in sysfs. */
typedef struct HostIds {
    uint64_t bits[HOST_IDS_MAX / 64];
    uint32_t end; /* one above the highest */
    uint32_t n;
} HostIds;

static inline bool host_ids_has(const HostIds *ids, uint32_t id) {
    return id < ids->end && (ids->bits[id / 64] >> id % 64 & 1);
}

/* A short file without its last newline. */
int host_text(const Host *host, char ret[HOST_TEXT_SIZE], const char *format, ...) _printf_(3, 4);
/* A file with one string, one number (decimal, or any base with its prefix), or one list. */
int host_string(const Host *host, char **ret, const char *format, ...) _printf_(3, 4);
int host_u64(const Host *host, uint64_t *ret, unsigned base, const char *format, ...)
    _printf_(4, 5);
int host_u32(const Host *host, uint32_t *ret, const char *format, ...) _printf_(3, 4);
int host_ids(const Host *host, HostIds *ret, const char *format, ...) _printf_(3, 4);
/* The text after "key :" and one space in the first line that begins like that; for /proc/cpuinfo
 * and the like, of any length. */
int host_field(const Host *host, const char *path, const char *key, char ret[HOST_TEXT_SIZE]);
DIR *host_folder(const Host *host, const char *format, ...) _printf_(2, 3);
/* The next name that does not begin with a dot; NULL at the end, or past `*left` names. */
const char *host_next_name(DIR *dir, size_t *left);

/* "0-3,8" */
int host_parse_ids(const char *text, HostIds *ret);
/* The number in "node12" after "node"; false for any other name. */
bool host_numbered(const char *name, const char *prefix, uint32_t *ret);

/* Collect one part of an environment each; return 0 or a negative errno. After a failure the caller
 * frees what was collected of that part. */
int host_cpudesc(const Host *host, PdEnvironment *env);
int host_cpuid(const Host *host, PdEnvironment *env);
int host_nrcpus(const Host *host, PdEnvironment *env);
int host_cpu_topology(const Host *host, PdEnvironment *env);
int host_cache(const Host *host, PdEnvironment *env);
int host_numa_topology(const Host *host, PdEnvironment *env);
int host_mem_topology(const Host *host, PdEnvironment *env);
int host_pmu_mappings(const Host *host, PdEnvironment *env);
int host_cpu_pmu_caps(const Host *host, PdEnvironment *env);
int host_pmu_caps(const Host *host, PdEnvironment *env);
int host_hybrid_topology(const Host *host, PdEnvironment *env);
