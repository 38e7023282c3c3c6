/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The numbers of the perf.data format under our own names, because the kernel headers of the base
 * platform are older than the files we read. They mirror include/uapi/linux/perf_event.h and
 * tools/perf/util/{header,event}.h; the values never change.
 */

#include <stdint.h>

#define PD_MAGIC_2 0x32454c4946524550ULL /* "PERFILE2", read in the writer's byte order */

enum {
    PD_HEADER_SIZE = 104,     /* struct perf_file_header */
    PD_PIPE_HEADER_SIZE = 16, /* struct perf_pipe_file_header */
    PD_FEATURE_BITS = 256,
    PD_RECORD_HEADER_SIZE = 8,
    PD_RECORD_SIZE_MAX = 65528, /* the largest multiple of 8 that a u16 holds */
    PD_ATTR_SIZE_MIN = 64,      /* PERF_ATTR_SIZE_VER0 */
    PD_ATTR_SIZE_KNOWN = 144,   /* PERF_ATTR_SIZE_VER9, the newest version that we know */
};

/* struct perf_event_header.type: the kernel's, then (from 64) perf's own, then simpleperf's. */
typedef enum PdRecordType {
    PD_RECORD_MMAP = 1,
    PD_RECORD_LOST = 2,
    PD_RECORD_COMM = 3,
    PD_RECORD_EXIT = 4,
    PD_RECORD_THROTTLE = 5,
    PD_RECORD_UNTHROTTLE = 6,
    PD_RECORD_FORK = 7,
    PD_RECORD_READ = 8,
    PD_RECORD_SAMPLE = 9,
    PD_RECORD_MMAP2 = 10,
    PD_RECORD_AUX = 11,
    PD_RECORD_ITRACE_START = 12,
    PD_RECORD_LOST_SAMPLES = 13,
    PD_RECORD_SWITCH = 14,
    PD_RECORD_SWITCH_CPU_WIDE = 15,
    PD_RECORD_NAMESPACES = 16,
    PD_RECORD_KSYMBOL = 17,
    PD_RECORD_BPF_EVENT = 18,
    PD_RECORD_CGROUP = 19,
    PD_RECORD_TEXT_POKE = 20,
    PD_RECORD_AUX_OUTPUT_HW_ID = 21,
    PD_RECORD_CALLCHAIN_DEFERRED = 22,

    PD_RECORD_USER = 64, /* types from here on are written by tools, without a sample_id trailer */
    PD_RECORD_HEADER_ATTR = 64,
    PD_RECORD_EVENT_TYPE = 65,
    PD_RECORD_TRACING_DATA = 66,
    PD_RECORD_BUILD_ID = 67,
    PD_RECORD_FINISHED_ROUND = 68,
    PD_RECORD_ID_INDEX = 69,
    PD_RECORD_AUXTRACE_INFO = 70,
    PD_RECORD_AUXTRACE = 71,
    PD_RECORD_AUXTRACE_ERROR = 72,
    PD_RECORD_THREAD_MAP = 73,
    PD_RECORD_CPU_MAP = 74,
    PD_RECORD_STAT_CONFIG = 75,
    PD_RECORD_STAT = 76,
    PD_RECORD_STAT_ROUND = 77,
    PD_RECORD_EVENT_UPDATE = 78,
    PD_RECORD_TIME_CONV = 79,
    PD_RECORD_HEADER_FEATURE = 80,
    PD_RECORD_COMPRESSED = 81,
    PD_RECORD_FINISHED_INIT = 82,
    PD_RECORD_COMPRESSED2 = 83,
    PD_RECORD_BPF_METADATA = 84,
    PD_RECORD_SCHEDSTAT_CPU = 85,
    PD_RECORD_SCHEDSTAT_DOMAIN = 86,

    PD_RECORD_SIMPLEPERF = 32768, /* from here on misc holds the upper 16 bits of the size */
} PdRecordType;

/* struct perf_event_header.misc */
enum {
    PD_MISC_CPUMODE_MASK = 7,
    PD_MISC_CPUMODE_UNKNOWN = 0,
    PD_MISC_KERNEL = 1,
    PD_MISC_USER = 2,
    PD_MISC_HYPERVISOR = 3,
    PD_MISC_GUEST_KERNEL = 4,
    PD_MISC_GUEST_USER = 5,
    PD_MISC_PROC_MAP_PARSE_TIMEOUT = 1 << 12,
    PD_MISC_MMAP_DATA = 1 << 13,  /* MMAP, MMAP2 */
    PD_MISC_COMM_EXEC = 1 << 13,  /* COMM */
    PD_MISC_FORK_EXEC = 1 << 13,  /* FORK, perf's own */
    PD_MISC_SWITCH_OUT = 1 << 13, /* SWITCH, SWITCH_CPU_WIDE */
    PD_MISC_EXACT_IP = 1 << 14,   /* SAMPLE */
    PD_MISC_SWITCH_OUT_PREEMPT = 1 << 14,
    PD_MISC_MMAP_BUILD_ID = 1 << 14, /* MMAP2 */
    PD_MISC_BUILD_ID_SIZE = 1 << 15, /* BUILD_ID */
};

/* perf_event_attr.sample_type */
#define PD_SAMPLE_IP             (1ULL << 0)
#define PD_SAMPLE_TID            (1ULL << 1)
#define PD_SAMPLE_TIME           (1ULL << 2)
#define PD_SAMPLE_ADDR           (1ULL << 3)
#define PD_SAMPLE_READ           (1ULL << 4)
#define PD_SAMPLE_CALLCHAIN      (1ULL << 5)
#define PD_SAMPLE_ID             (1ULL << 6)
#define PD_SAMPLE_CPU            (1ULL << 7)
#define PD_SAMPLE_PERIOD         (1ULL << 8)
#define PD_SAMPLE_STREAM_ID      (1ULL << 9)
#define PD_SAMPLE_RAW            (1ULL << 10)
#define PD_SAMPLE_BRANCH_STACK   (1ULL << 11)
#define PD_SAMPLE_REGS_USER      (1ULL << 12)
#define PD_SAMPLE_STACK_USER     (1ULL << 13)
#define PD_SAMPLE_WEIGHT         (1ULL << 14)
#define PD_SAMPLE_DATA_SRC       (1ULL << 15)
#define PD_SAMPLE_IDENTIFIER     (1ULL << 16)
#define PD_SAMPLE_TRANSACTION    (1ULL << 17)
#define PD_SAMPLE_REGS_INTR      (1ULL << 18)
#define PD_SAMPLE_PHYS_ADDR      (1ULL << 19)
#define PD_SAMPLE_AUX            (1ULL << 20)
#define PD_SAMPLE_CGROUP         (1ULL << 21)
#define PD_SAMPLE_DATA_PAGE_SIZE (1ULL << 22)
#define PD_SAMPLE_CODE_PAGE_SIZE (1ULL << 23)
#define PD_SAMPLE_WEIGHT_STRUCT  (1ULL << 24)

/* perf_event_attr.read_format */
enum {
    PD_FORMAT_TOTAL_TIME_ENABLED = 1 << 0,
    PD_FORMAT_TOTAL_TIME_RUNNING = 1 << 1,
    PD_FORMAT_ID = 1 << 2,
    PD_FORMAT_GROUP = 1 << 3,
    PD_FORMAT_LOST = 1 << 4,
};

/* perf_event_attr.branch_sample_type, the bits that change the shape of a sample */
#define PD_BRANCH_CALL_STACK (1ULL << 11)
#define PD_BRANCH_HW_INDEX   (1ULL << 17)
#define PD_BRANCH_COUNTERS   (1ULL << 19)

/* The bit-field of perf_event_attr as a number: bit 0 is `disabled` in both byte orders. */
#define PD_ATTR_DISABLED                 (1ULL << 0)
#define PD_ATTR_INHERIT                  (1ULL << 1)
#define PD_ATTR_PINNED                   (1ULL << 2)
#define PD_ATTR_EXCLUSIVE                (1ULL << 3)
#define PD_ATTR_EXCLUDE_USER             (1ULL << 4)
#define PD_ATTR_EXCLUDE_KERNEL           (1ULL << 5)
#define PD_ATTR_EXCLUDE_HV               (1ULL << 6)
#define PD_ATTR_EXCLUDE_IDLE             (1ULL << 7)
#define PD_ATTR_MMAP                     (1ULL << 8)
#define PD_ATTR_COMM                     (1ULL << 9)
#define PD_ATTR_FREQ                     (1ULL << 10)
#define PD_ATTR_INHERIT_STAT             (1ULL << 11)
#define PD_ATTR_ENABLE_ON_EXEC           (1ULL << 12)
#define PD_ATTR_TASK                     (1ULL << 13)
#define PD_ATTR_WATERMARK                (1ULL << 14)
#define PD_ATTR_PRECISE_IP_SHIFT         15 /* two bits */
#define PD_ATTR_MMAP_DATA                (1ULL << 17)
#define PD_ATTR_SAMPLE_ID_ALL            (1ULL << 18)
#define PD_ATTR_EXCLUDE_HOST             (1ULL << 19)
#define PD_ATTR_EXCLUDE_GUEST            (1ULL << 20)
#define PD_ATTR_EXCLUDE_CALLCHAIN_KERNEL (1ULL << 21)
#define PD_ATTR_EXCLUDE_CALLCHAIN_USER   (1ULL << 22)
#define PD_ATTR_MMAP2                    (1ULL << 23)
#define PD_ATTR_COMM_EXEC                (1ULL << 24)
#define PD_ATTR_USE_CLOCKID              (1ULL << 25)
#define PD_ATTR_CONTEXT_SWITCH           (1ULL << 26)
#define PD_ATTR_WRITE_BACKWARD           (1ULL << 27)
#define PD_ATTR_NAMESPACES               (1ULL << 28)
#define PD_ATTR_KSYMBOL                  (1ULL << 29)
#define PD_ATTR_BPF_EVENT                (1ULL << 30)
#define PD_ATTR_AUX_OUTPUT               (1ULL << 31)
#define PD_ATTR_CGROUP                   (1ULL << 32)
#define PD_ATTR_TEXT_POKE                (1ULL << 33)
#define PD_ATTR_BUILD_ID                 (1ULL << 34)
#define PD_ATTR_INHERIT_THREAD           (1ULL << 35)
#define PD_ATTR_REMOVE_ON_EXEC           (1ULL << 36)
#define PD_ATTR_SIGTRAP                  (1ULL << 37)
#define PD_ATTR_DEFER_CALLCHAIN          (1ULL << 38)
#define PD_ATTR_DEFER_OUTPUT             (1ULL << 39)

/* perf_event_attr.type */
enum {
    PD_TYPE_HARDWARE = 0,
    PD_TYPE_SOFTWARE = 1,
    PD_TYPE_TRACEPOINT = 2,
    PD_TYPE_HW_CACHE = 3,
    PD_TYPE_RAW = 4,
    PD_TYPE_BREAKPOINT = 5,
};

/* Markers inside a callchain, as numbers from the top of u64. */
#define PD_CONTEXT_HV            ((uint64_t)-32)
#define PD_CONTEXT_KERNEL        ((uint64_t)-128)
#define PD_CONTEXT_USER          ((uint64_t)-512)
#define PD_CONTEXT_USER_DEFERRED ((uint64_t)-640)
#define PD_CONTEXT_GUEST         ((uint64_t)-2048)
#define PD_CONTEXT_GUEST_KERNEL  ((uint64_t)-2176)
#define PD_CONTEXT_GUEST_USER    ((uint64_t)-2560)
#define PD_CONTEXT_MAX           ((uint64_t)-4095)

/* Bits of the feature bitmap (HEADER_*). simpleperf's start at 128. */
typedef enum PdFeature {
    PD_FEATURE_TRACING_DATA = 1,
    PD_FEATURE_BUILD_ID = 2,
    PD_FEATURE_HOSTNAME = 3,
    PD_FEATURE_OSRELEASE = 4,
    PD_FEATURE_VERSION = 5,
    PD_FEATURE_ARCH = 6,
    PD_FEATURE_NRCPUS = 7,
    PD_FEATURE_CPUDESC = 8,
    PD_FEATURE_CPUID = 9,
    PD_FEATURE_TOTAL_MEM = 10,
    PD_FEATURE_CMDLINE = 11,
    PD_FEATURE_EVENT_DESC = 12,
    PD_FEATURE_CPU_TOPOLOGY = 13,
    PD_FEATURE_NUMA_TOPOLOGY = 14,
    PD_FEATURE_BRANCH_STACK = 15,
    PD_FEATURE_PMU_MAPPINGS = 16,
    PD_FEATURE_GROUP_DESC = 17,
    PD_FEATURE_AUXTRACE = 18,
    PD_FEATURE_STAT = 19,
    PD_FEATURE_CACHE = 20,
    PD_FEATURE_SAMPLE_TIME = 21,
    PD_FEATURE_MEM_TOPOLOGY = 22,
    PD_FEATURE_CLOCKID = 23,
    PD_FEATURE_DIR_FORMAT = 24,
    PD_FEATURE_BPF_PROG_INFO = 25,
    PD_FEATURE_BPF_BTF = 26,
    PD_FEATURE_COMPRESSED = 27,
    PD_FEATURE_CPU_PMU_CAPS = 28,
    PD_FEATURE_CLOCK_DATA = 29,
    PD_FEATURE_HYBRID_TOPOLOGY = 30,
    PD_FEATURE_PMU_CAPS = 31,
    PD_FEATURE_CPU_DOMAIN_INFO = 32,
    PD_FEATURE_E_MACHINE = 33,
    PD_FEATURE_CLN_SIZE = 34,
    PD_FEATURE_SIMPLEPERF_FILE = 128,
    PD_FEATURE_SIMPLEPERF_META_INFO = 129,
    PD_FEATURE_SIMPLEPERF_DEBUG_UNWIND = 130,
    PD_FEATURE_SIMPLEPERF_DEBUG_UNWIND_FILE = 131,
    PD_FEATURE_SIMPLEPERF_FILE2 = 132,
    PD_FEATURE_PROFD_COVERAGE = 192, /* profd's own; perf ignores bits that it does not know */
} PdFeature;

/* COMPRESSED feature body: struct perf_header_compressed of perf: version, type, level, ratio,
 * mmap_len */
enum {
    PD_COMPRESSED_ZSTD = 1,
};

/* EVENT_UPDATE types */
enum {
    PD_EVENT_UPDATE_UNIT = 0,
    PD_EVENT_UPDATE_SCALE = 1,
    PD_EVENT_UPDATE_NAME = 2,
    PD_EVENT_UPDATE_CPUS = 3,
};
