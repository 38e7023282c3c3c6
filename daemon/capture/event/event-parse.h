/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What the files of the event grammar share: the position in the text, the list that grows, the
 * sentence about a failure, and the functions that each file offers to the others.
 */

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "capture/event/event-near.h"
#include "capture/event/event-spec.h"
#include "util/bytes.h"
#include "util/macro.h"

typedef struct EventParser {
    const char *text, *at; /* NUL at the end */
    const char *event;     /* where the current event begins */
    const EventHost *host;
    EventList *list;
    char *error;
    size_t error_size;
    EventListBad on_bad; /* NULL: the first failure ends the parsing */
    void *userdata;
} EventParser;

/* -- event-parse.c -- */

/* Writes "Event 'TEXT' at offset N " and the rest to the error; returns r. */
int event_fail(EventParser *p, int r, const char *format, ...) _printf_(3, 4);
/* Appends a zeroed spec, which excludes guests as perf record does. NULL: there is no memory or
 * there are too many; *ret_error is the reason, and the sentence is written. */
EventSpec *event_list_add(EventParser *p, int *ret_error);
static inline char *event_strdup(Bytes b) {
    return strndup((const char *)b.data, b.size);
}
/* The whole text must be a number: "0x1f" or "31". */
int event_number(Bytes text, uint64_t *ret);

/* -- event-modifier.c -- */

/* Parses letters at p->at (there may be none) for the specs from `first` on; `add` appends them to
 * the letters of a group. */
int event_modifiers(EventParser *p, size_t first, bool add);

/* -- event-term.c -- */

/* Parses "/term,term/" at p->at, or nothing, for the specs from `first` on. */
int event_terms(EventParser *p, size_t first);
/* Applies the terms that a PMU's folder `events` has for this event to one spec of that PMU. */
int event_alias_terms(EventParser *p, EventSpec *spec, Bytes alias);

/* -- event-sysfs.c: /sys/bus/event_source/devices -- */

enum { EVENT_VALUE_MAX = 4096 }; /* bytes of a file of a PMU */

/* The text of a file of a PMU, or of one in its `folder`; -ENOENT: there is none. */
int event_pmu_value(const EventHost *host, const char *pmu, const char *folder, Bytes name,
                    char *ret, size_t size);
/* "event=0x3c,umask=1" of an event of that PMU; -ENOENT: there is none. */
int event_pmu_alias(const EventHost *host, const char *pmu, Bytes name, char *ret, size_t size);

typedef struct EventFormat {
    unsigned word; /* 0: config, 1: config1 … */
    uint64_t bits;
} EventFormat;

/* The bits that a term of that PMU sets; -ENOENT: the PMU has no such term. */
int event_pmu_format(const EventHost *host, const char *pmu, Bytes name, EventFormat *ret);
/* The names in a folder of a PMU ("format", "events"), or with pmu NULL all PMUs, in order. */
int event_pmu_names(const EventHost *host, const char *pmu, const char *folder, char ***ret);

/* -- event-pmu.c: PMUs by name -- */

/* Adds a spec for the PMU of this name, or one for each whose name begins with it (`uncore_imc` for
 * uncore_imc_0 …) or matches. -ENOENT, without a sentence: there is none. */
int event_add_pmus(EventParser *p, Bytes name);
/* Adds a spec for each PMU that has an event of this name, and applies the event's terms. -ENOENT,
 * without a sentence: none has. */
int event_add_alias(EventParser *p, Bytes name);
/* On machines with several kinds of CPU, replaces the only spec from `first` on, which counts
 * something that every PMU has, by one for each kind. */
int event_spread(EventParser *p, size_t first);
/* -- event-module.c -- */

/* Whether the name of a tracepoint's system or of a PMU is that of an installed kernel module that
 * is not loaded, so that nobody knows whether it has the event. */
bool event_module_is_missing(const EventHost *host, Bytes name);

/* -- event-names.c -- */

/* The names in a folder for which is_wanted() holds, sorted, with a NULL at the end. Closes
 * `dir`. */
int event_names_read(DIR *dir, bool (*is_wanted)(const struct dirent *entry, const void *userdata),
                     const void *userdata, int (*compare)(const char *a, const char *b),
                     char ***ret);
void event_names_free(char **names);
/* Matches a glob of *, ? and [set] in time bounded by the product of both lengths. */
bool event_glob(const char *pattern, const char *name);

/* -- event-tracepoint.c -- */

/* Adds tracepoints and resolves globs. -ENOENT, without a sentence: no such system or tracepoint
 * exists; `near` has similar names. */
int event_add_tracepoints(EventParser *p, Bytes system, Bytes name, EventNear *near);

/* -- event-pfm.c -- */

/* Asks libpfm4 for `text`, with all its modifiers. -ENOENT: it does not know the event, or is not
 * built in. */
int event_pfm(const char *text, EventSpec *spec);
