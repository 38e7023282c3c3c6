/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "capture/event/event-symbol.h"

#include <ctype.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>

#include "util/macro.h"

/*
 * Events that have a name on every machine: software, hardware, and caches. The name of a cache
 * event consists of a cache, an operation and a result, each with several spellings.
 */

/* clang-format off */
static const struct {
    const char *name;
    uint32_t type;
    uint64_t config;
} symbols[] = {
    { "cpu-clock",               PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK               },
    { "task-clock",              PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK              },
    { "page-faults",             PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS             },
    { "faults",                  PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS             },
    { "minor-faults",            PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MIN         },
    { "major-faults",            PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MAJ         },
    { "context-switches",        PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES        },
    { "cs",                      PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES        },
    { "cpu-migrations",          PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS          },
    { "migrations",              PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS          },
    { "alignment-faults",        PERF_TYPE_SOFTWARE, PERF_COUNT_SW_ALIGNMENT_FAULTS        },
    { "emulation-faults",        PERF_TYPE_SOFTWARE, PERF_COUNT_SW_EMULATION_FAULTS        },
    { "dummy",                   PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY                   },
    { "bpf-output",              PERF_TYPE_SOFTWARE, PERF_COUNT_SW_BPF_OUTPUT              },
    { "cgroup-switches",         PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CGROUP_SWITCHES         },
    { "auto",                    PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES              },
    { "cycles",                  PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES              },
    { "cpu-cycles",              PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES              },
    { "instructions",            PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS            },
    { "cache-references",        PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES        },
    { "cache-misses",            PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES            },
    { "branches",                PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS     },
    { "branch-instructions",     PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS     },
    { "branch-misses",           PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES           },
    { "bus-cycles",              PERF_TYPE_HARDWARE, PERF_COUNT_HW_BUS_CYCLES              },
    { "stalled-cycles-frontend", PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_FRONTEND },
    { "idle-cycles-frontend",    PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_FRONTEND },
    { "stalled-cycles-backend",  PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_BACKEND  },
    { "idle-cycles-backend",     PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_BACKEND  },
    { "ref-cycles",              PERF_TYPE_HARDWARE, PERF_COUNT_HW_REF_CPU_CYCLES          },
};

/* Stands for the first of these that can be opened: CPU cycles, cpu-clock. */
static const char auto_name[] = "auto", auto_counter[] = "cycles";

static const char *const tools[] = { "duration_time", "user_time", "system_time" };

enum {
    OP_READ     = 1 << PERF_COUNT_HW_CACHE_OP_READ,
    OP_WRITE    = 1 << PERF_COUNT_HW_CACHE_OP_WRITE,
    OP_PREFETCH = 1 << PERF_COUNT_HW_CACHE_OP_PREFETCH,
    OP_ALL      = OP_READ | OP_WRITE | OP_PREFETCH,
};

/* The first spelling is the usual one. */
static const struct {
    const char *spellings[5];
    unsigned ops;
} caches[] = {
    [PERF_COUNT_HW_CACHE_L1D]  = { { "L1-dcache", "l1-d", "l1d", "L1-data" },        OP_ALL                },
    [PERF_COUNT_HW_CACHE_L1I]  = { { "L1-icache", "l1-i", "l1i", "L1-instruction" }, OP_READ | OP_PREFETCH },
    [PERF_COUNT_HW_CACHE_LL]   = { { "LLC", "L2" },                                  OP_ALL                },
    [PERF_COUNT_HW_CACHE_DTLB] = { { "dTLB", "d-tlb", "Data-TLB" },                  OP_ALL                },
    [PERF_COUNT_HW_CACHE_ITLB] = { { "iTLB", "i-tlb", "Instruction-TLB" },           OP_READ               },
    [PERF_COUNT_HW_CACHE_BPU]  = { { "branch", "branches", "bpu", "btb", "bpc" },    OP_READ               },
    [PERF_COUNT_HW_CACHE_NODE] = { { "node" },                                       OP_ALL                },
};

static const struct {
    const char *name;
    bool is_result;
    unsigned value;
} cache_words[] = {
    { "load",             false, PERF_COUNT_HW_CACHE_OP_READ       },
    { "loads",            false, PERF_COUNT_HW_CACHE_OP_READ       },
    { "read",             false, PERF_COUNT_HW_CACHE_OP_READ       },
    { "store",            false, PERF_COUNT_HW_CACHE_OP_WRITE      },
    { "stores",           false, PERF_COUNT_HW_CACHE_OP_WRITE      },
    { "write",            false, PERF_COUNT_HW_CACHE_OP_WRITE      },
    { "prefetch",         false, PERF_COUNT_HW_CACHE_OP_PREFETCH   },
    { "prefetches",       false, PERF_COUNT_HW_CACHE_OP_PREFETCH   },
    { "speculative-read", false, PERF_COUNT_HW_CACHE_OP_PREFETCH   },
    { "speculative-load", false, PERF_COUNT_HW_CACHE_OP_PREFETCH   },
    { "refs",             true,  PERF_COUNT_HW_CACHE_RESULT_ACCESS },
    { "Reference",        true,  PERF_COUNT_HW_CACHE_RESULT_ACCESS },
    { "ops",              true,  PERF_COUNT_HW_CACHE_RESULT_ACCESS },
    { "access",           true,  PERF_COUNT_HW_CACHE_RESULT_ACCESS },
    { "misses",           true,  PERF_COUNT_HW_CACHE_RESULT_MISS   },
    { "miss",             true,  PERF_COUNT_HW_CACHE_RESULT_MISS   },
};

static const struct {
    unsigned op;
    const char *accesses, *misses;
} cache_names[] = {
    { OP_READ,     "loads",      "load-misses"     },
    { OP_WRITE,    "stores",     "store-misses"    },
    { OP_PREFETCH, "prefetches", "prefetch-misses" },
};
/* clang-format on */

/* Returns the text behind `prefix` and a dash, which may be empty; NULL: it does not begin with
 * `prefix`. */
static const char *event_symbol_after(const char *text, const char *prefix) {
    size_t n = strlen(prefix);

    if (strncmp(text, prefix, n) != 0 || (text[n] != '-' && text[n] != '\0'))
        return NULL;
    return text + n + (text[n] == '-');
}

/* An operation and a result, in either order ("load-misses"); both may be missing: reads. */
static int event_symbol_parse_cache_words(const char *rest, unsigned cache, EventSpec *spec) {
    int op = -1, result = -1;

    while (*rest) {
        const char *next = NULL;

        for (size_t i = 0; i < ARRAY_SIZE(cache_words) && !next; i++) {
            int *slot = cache_words[i].is_result ? &result : &op;

            next = *slot < 0 ? event_symbol_after(rest, cache_words[i].name) : NULL;
            if (next)
                *slot = (int)cache_words[i].value;
        }
        if (!next)
            return -ENOENT;
        rest = next;
    }
    op = MAX(op, (int)PERF_COUNT_HW_CACHE_OP_READ);
    result = MAX(result, (int)PERF_COUNT_HW_CACHE_RESULT_ACCESS);
    if (!(caches[cache].ops & 1U << op))
        return -ENOENT;
    spec->type = PERF_TYPE_HW_CACHE;
    spec->config = cache | (uint64_t)op << 8 | (uint64_t)result << 16;
    return 0;
}

static int event_symbol_parse_cache(const char *name, EventSpec *spec) {
    for (unsigned cache = 0; cache < ARRAY_SIZE(caches); cache++)
        for (size_t i = 0; i < ARRAY_SIZE(caches[0].spellings); i++) {
            const char *spelling = caches[cache].spellings[i];
            const char *rest = spelling ? event_symbol_after(name, spelling) : NULL;

            if (rest && event_symbol_parse_cache_words(rest, cache, spec) == 0)
                return 0;
        }
    return -ENOENT;
}

int event_symbol(Bytes name, EventSpec *spec) {
    char word[EVENT_WORD_MAX];

    if (name.size >= sizeof(word))
        return -ENOENT;
    memcpy(word, name.data, name.size);
    word[name.size] = '\0';
    for (size_t i = 0; i < ARRAY_SIZE(symbols); i++)
        if (strcmp(word, symbols[i].name) == 0) {
            spec->type = symbols[i].type;
            spec->config = symbols[i].config;
            spec->is_auto = strcmp(word, auto_name) == 0;
            /* Each output of a BPF program is a sample. */
            spec->default_period = symbols[i].type == PERF_TYPE_SOFTWARE &&
                                   symbols[i].config == PERF_COUNT_SW_BPF_OUTPUT;
            return 0;
        }
    return event_symbol_parse_cache(word, spec);
}

char *event_auto_name(Bytes text) {
    size_t n = strlen(auto_name);
    char *name;

    return asprintf(&name, "%s%.*s", auto_counter, (int)(text.size - n),
                    (const char *)text.data + n) < 0
               ? NULL
               : name;
}

int event_raw(Bytes name, uint64_t *ret_config) {
    uint64_t v = 0;
    size_t i = 1;

    if (name.size < 2 || name.data[0] != 'r')
        return -ENOENT;
    if (name.size > 3 && name.data[1] == '0' && name.data[2] == 'x')
        i = 3;
    if (name.size - i > 16)
        return -ENOENT;
    for (; i < name.size; i++) {
        uint8_t c = name.data[i];

        if (!isxdigit(c))
            return -ENOENT;
        v = v << 4 | (unsigned)(isdigit(c) ? c - '0' : tolower(c) - 'a' + 10);
    }
    *ret_config = v;
    return 0;
}

bool event_is_tool(Bytes name) {
    for (size_t i = 0; i < ARRAY_SIZE(tools); i++)
        if (bytes_equal_str(name, tools[i]))
            return true;
    return false;
}

void event_each_symbol(void (*on_name)(void *userdata, const char *name), void *userdata) {
    for (size_t i = 0; i < ARRAY_SIZE(symbols); i++)
        on_name(userdata, symbols[i].name);
    for (size_t i = 0; i < ARRAY_SIZE(caches); i++)
        for (size_t j = 0; j < ARRAY_SIZE(cache_names); j++) {
            char name[64];

            if (!(caches[i].ops & cache_names[j].op))
                continue;
            snprintf(name, sizeof(name), "%s-%s", caches[i].spellings[0], cache_names[j].accesses);
            on_name(userdata, name);
            snprintf(name, sizeof(name), "%s-%s", caches[i].spellings[0], cache_names[j].misses);
            on_name(userdata, name);
        }
}

static void event_symbol_offer(void *userdata, const char *name) {
    event_near_offer(userdata, name);
}

void event_near_offer_symbols(EventNear *near) {
    event_each_symbol(event_symbol_offer, near);
}
