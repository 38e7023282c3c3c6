/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What the text of Event= asks for. One EventSpec is one event that is opened on each of its CPUs;
 * event-attr.h adds what the session defines (rate, call graph, clock).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    EVENT_TEXT_MAX = 1024, /* of Event=, with its NUL */
    EVENT_LIST_MAX = 1024, /* events of one text, globs resolved */
};

/* Where events are looked up. */
typedef struct EventHost {
    const char *sysfs;   /* "/sys" */
    const char *modules; /* modules.dep of the running kernel; NULL: unknown */
    /* Opens a file or folder below tracefs' events folder: "sched/sched_switch/id", "sched/" (the
     * names of a system), "./" (the systems). NULL: there are no tracepoints. */
    int (*open_tracefs)(void *userdata, const char *path, int *ret_fd);
    void *userdata;
    bool no_vendor_names; /* libpfm4 is not used */
} EventHost;

typedef enum EventCallGraph {
    EVENT_CALL_GRAPH_UNSET, /* the session's call graph */
    EVENT_CALL_GRAPH_NONE,
    EVENT_CALL_GRAPH_FP,
    EVENT_CALL_GRAPH_DWARF,
    EVENT_CALL_GRAPH_LBR,
    EVENT_CALL_GRAPH_UNWIND, /* like dwarf, and unwound before it is stored */
} EventCallGraph;

typedef struct EventSpec {
    char *name;                /* perf's name for it: the text, or the value of name= */
    char *pmu;                 /* its PMU in sysfs; NULL: the text names none */
    char *cpus;                /* on which the PMU counts, as "0-3,8"; NULL: all */
    char *system, *tracepoint; /* NULL: it is no tracepoint */
    uint32_t type;
    uint32_t bp_type;
    uint64_t config, config1, config2, config3;
    uint64_t flags;       /* PD_ATTR_*: exclusions, pinned, exclusive */
    unsigned precise;     /* precise_ip */
    bool precise_is_most; /* `P`: the most that the PMU can do, so less is no loss */
    bool sample_read;     /* `S` */
    bool weak;            /* `W`: a group that does not fit is split */
    bool no_inherit;
    bool is_auto;            /* `auto`: a clock replaces a missing counter */
    bool guest_is_set;       /* by `G` or `H` */
    uint64_t period;         /* the event's own; 0: none */
    uint64_t default_period; /* used when neither event nor session has one; 0: by frequency */
    uint64_t frequency_hz;   /* the event's own; 0: none */
    EventCallGraph call_graph;
    uint32_t stack_bytes; /* with EVENT_CALL_GRAPH_DWARF; 0: the default */
    uint16_t max_stack;   /* frames; 0: the kernel's default */
    uint64_t branch_type; /* PERF_SAMPLE_BRANCH_*; 0: none */
    size_t leader;        /* the event that leads its group; itself without one */
    size_t n_members;     /* of a leader, including itself */
} EventSpec;

typedef struct EventList {
    EventSpec *specs;
    size_t n;
} EventList;

/* Called for an event or group that is skipped, with a negative errno (-ENOPKG: its module is not
 * loaded) and one sentence. A negative return ends the parsing and is returned. */
typedef int (*EventListBad)(void *userdata, int error, const char *sentence);
