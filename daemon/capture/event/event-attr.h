/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Turns what Event= asks for into the attrs of a session's sampling events, as perf record opens
 * them for the same text, plus what every recorder of profd needs: one clock, a watermark, an
 * identifier in each sample, the control group. Nothing is opened here.
 */

#include "capture/event/event-spec.h"
#include "perfdata/event/event.h"

enum { EVENT_STACK_BYTES_USUAL = 8192 };

/* The session and the machine define this for all events of the session. */
typedef struct EventPolicy {
    uint64_t frequency_hz;     /* of events that have no rate of their own */
    uint64_t max_frequency_hz; /* the kernel's limit, for any event; 0: not known */
    bool
        frequency_is_set; /* the user set it: it then replaces periods that events have by nature */
    uint64_t period;      /* instead of a frequency, for all events; 0: none */
    EventCallGraph call_graph; /* UNSET is none */
    uint32_t stack_bytes;      /* with EVENT_CALL_GRAPH_DWARF or _UNWIND; 0: the usual */
    uint64_t pointers_max_hz;  /* up to this rate, samples that are unwound also bring the chain by
                                * frame pointers */
    bool exclude_idle;         /* only for clocks: some PMUs refuse it */
    bool exclude_user, exclude_kernel;
    bool inherit;   /* the target is a process, not CPUs */
    bool no_lost;   /* the kernel has no PERF_FORMAT_LOST (before 6.0) */
    bool no_cgroup; /* the kernel has no PERF_SAMPLE_CGROUP (before 5.7, or without cgroups) */
    uint32_t watermark_bytes;
} EventPolicy;

/* Whether the machine allows to sample stacks along with the registers of user code. */
bool event_attr_has_registers(void);
/* The attr in a recording of an event whose stacks are unwound before they are stored. */
PdAttr event_attr_unwound(const PdAttr *attr);
/* Whether samples of `attr`, which was made of the spec, are unwound. */
bool event_attr_is_for_unwinding(const EventSpec *spec, const EventPolicy *policy,
                                 const PdAttr *attr);
/* ret holds list->n attrs. -EINVAL: `error` has one sentence about the event *ret_bad. As in perf,
 * an event that excludes user code gets the call graph `fp` instead of `lbr`. */
int event_attrs_settle(const EventList *list, const EventPolicy *policy, PdAttr *ret,
                       size_t *ret_bad, char *error, size_t error_size);

/*
 * The kernel refused `attr` with `error` (negative errno): gives up one thing and names it for
 * people ("precise_ip 3", "kernel samples"). Returns 1 when the caller must try again, 0 when there
 * is nothing left to give up. Without a PMU cycles become cpu-clock: an attr whose type has changed
 * is named by pd_attr_name() and no longer by its text.
 */
int event_attr_fallback(PdAttr *attr, const EventPolicy *policy, int error,
                        const char **ret_given_up);
