/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What the text of Event= asks for. One EventSpec is one event to open on each of its CPUs; what
 * the session adds to it (rate, call graph, clock) is in event-attr.h.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    EVENT_TEXT_MAX = 1024, /* of Event=, with its NUL */
    EVENT_LIST_MAX = 1024, /* events that one text may come to, globs resolved */
};

/* Where events are looked up. */
typedef struct EventHost {
    const char *sysfs;   /* "/sys" */
    const char *modules; /* modules.dep of the kernel that runs; NULL: none is known */
    /* Opens a file or folder below tracefs' events folder: "sched/sched_switch/id", "sched/" (the
     * names of a system), "./" (the systems). NULL: there are no tracepoints. */
    int (*open_tracefs)(void *userdata, const char *path, int *ret_fd);
    void *userdata;
    bool no_vendor_names; /* libpfm4 is not asked */
} EventHost;

typedef enum EventCallGraph {
    EVENT_CALL_GRAPH_UNSET, /* as the session has it */
    EVENT_CALL_GRAPH_NONE,
    EVENT_CALL_GRAPH_FP,
    EVENT_CALL_GRAPH_DWARF,
    EVENT_CALL_GRAPH_LBR,
    EVENT_CALL_GRAPH_UNWIND, /* as dwarf, and unwound before it is stored */
} EventCallGraph;

typedef struct EventSpec {
    char *name;                /* as perf names it: the text, or that of name= */
    char *pmu;                 /* of sysfs; NULL: none was named */
    char *cpus;                /* that the PMU counts on, as "0-3,8"; NULL: all */
    char *system, *tracepoint; /* NULL: it is none */
    uint32_t type;
    uint32_t bp_type;
    uint64_t config, config1, config2, config3;
    uint64_t flags;       /* PD_ATTR_*: exclusions, pinned, exclusive */
    unsigned precise;     /* precise_ip */
    bool precise_is_most; /* `P`: as much as the PMU can, so stepping down is no loss */
    bool sample_read;     /* `S` */
    bool weak;            /* `W`: a group that does not fit is broken up */
    bool no_inherit;
    bool is_auto;            /* `auto`: a clock will do where there is no counter */
    bool guest_is_set;       /* `G` or `H` */
    uint64_t period;         /* of its own; 0: none */
    uint64_t default_period; /* where neither event nor session says one; 0: by frequency */
    uint64_t frequency_hz;   /* of its own; 0: none */
    EventCallGraph call_graph;
    uint32_t stack_bytes; /* with EVENT_CALL_GRAPH_DWARF; 0: the usual */
    uint16_t max_stack;   /* frames; 0: as the kernel has it */
    uint64_t branch_type; /* PERF_SAMPLE_BRANCH_*; 0: none */
    size_t leader;        /* the event that leads its group; itself without one */
    size_t n_members;     /* of a leader, itself counted */
} EventSpec;

typedef struct EventList {
    EventSpec *specs;
    size_t n;
} EventList;

/* An event or group that is left out: a negative errno (-ENOPKG: its module is not loaded) and one
 * sentence about it. A negative return ends the parsing and is returned. */
typedef int (*EventListBad)(void *userdata, int error, const char *sentence);
