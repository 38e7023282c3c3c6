/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * From what Event= asks for to what is opened: the attrs of a session's sampling events, as perf
 * record would open them for the same text, but for what a recorder of its own kind needs (one
 * clock, a watermark, an identifier in each sample, the cgroup). Pure: nothing is opened here.
 */

#include "capture/event/event-spec.h"
#include "perfdata/event/event.h"

enum { EVENT_STACK_BYTES_USUAL = 8192 };

/* What a session and the machine say for all of its events. */
typedef struct EventPolicy {
    uint64_t frequency_hz;     /* of events that have no rate of their own */
    uint64_t max_frequency_hz; /* the kernel's limit, for any event; 0: not known */
    bool frequency_is_set;     /* then it holds for events that have a period by nature, too */
    uint64_t period;           /* instead of a frequency, for all events; 0: none */
    EventCallGraph call_graph; /* UNSET is none */
    uint32_t stack_bytes;      /* with EVENT_CALL_GRAPH_DWARF or _UNWIND; 0: the usual */
    bool exclude_idle;         /* where the event is a clock: some PMUs refuse it */
    bool exclude_user, exclude_kernel;
    bool inherit;   /* the target is a process, not CPUs */
    bool no_lost;   /* the kernel has no PERF_FORMAT_LOST (before 6.0) */
    bool no_cgroup; /* the kernel has no PERF_SAMPLE_CGROUP (before 5.7, or without cgroups) */
    uint32_t watermark_bytes;
} EventPolicy;

/* Whether stacks can be taken along with the registers of user code. */
bool event_attr_has_registers(void);
/* The attr in a recording of an event whose stacks are unwound before they are stored. */
PdAttr event_attr_unwound(const PdAttr *attr);
/* Whether that is to happen to the samples of `attr`, which was made of the spec. */
bool event_attr_is_for_unwinding(const EventSpec *spec, const EventPolicy *policy,
                                 const PdAttr *attr);
/* ret holds list->n attrs. -EINVAL: `error` has one sentence about the event *ret_bad. An event
 * that leaves out user code and has the call graph of `lbr` gets that of `fp`, as with perf. */
int event_attrs_settle(const EventList *list, const EventPolicy *policy, PdAttr *ret,
                       size_t *ret_bad, char *error, size_t error_size);

/*
 * The kernel refused `attr` with `error` (negative errno): gives up one thing and tells which, for
 * people ("precise_ip 3", "kernel samples"). Returns 1 when it is to be tried again, 0 when there
 * is nothing left to give up. cycles become cpu-clock where there is no PMU: an attr whose type has
 * changed is no longer named by its text, but by pd_attr_name().
 */
int event_attr_fallback(PdAttr *attr, const EventPolicy *policy, int error,
                        const char **ret_given_up);
