/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What the files of the event grammar share: the place in the text, the list that grows, the
 * sentence about a failure; and what each of these files has for the others.
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
    const char *event;     /* where the event at hand begins */
    const EventHost *host;
    EventList *list;
    char *error;
    size_t error_size;
    EventListBad on_bad; /* NULL: the first failure ends the parsing */
    void *userdata;
} EventParser;

/* -- event-parse.c -- */

/* Writes "Event 'TEXT' at offset N " and the rest; r. */
int event_fail(EventParser *p, int r, const char *format, ...) _printf_(3, 4);
/* A zeroed spec at the end, excluding guests as perf record does; NULL: no memory, or too many,
 * and *ret_error (told) is why. */
EventSpec *event_list_add(EventParser *p, int *ret_error);
static inline char *event_strdup(Bytes b) {
    return strndup((const char *)b.data, b.size);
}
/* "0x1f" or "31", all of it. */
int event_number(Bytes text, uint64_t *ret);

/* -- event-modifier.c -- */

/* Letters at p->at, none being fine, for the specs from `first` on; `add` to what they have (a
 * group's). */
int event_modifiers(EventParser *p, size_t first, bool add);

/* -- event-term.c -- */

/* "/term,term/" at p->at, or nothing, for the specs from `first` on. */
int event_terms(EventParser *p, size_t first);
/* What a PMU has in its folder `events`, for one spec of that PMU. */
int event_alias_terms(EventParser *p, EventSpec *spec, Bytes alias);

/* -- event-sysfs.c: /sys/bus/event_source/devices -- */

enum { EVENT_VALUE_MAX = 4096 }; /* bytes of a file there */

/* The text of a file of a PMU, or of one in its `folder`; -ENOENT: there is none. */
int event_pmu_value(const EventHost *host, const char *pmu, const char *folder, Bytes name,
                    char *ret, size_t size);
/* "event=0x3c,umask=1" of an event of that PMU; -ENOENT: there is none. */
int event_pmu_alias(const EventHost *host, const char *pmu, Bytes name, char *ret, size_t size);

typedef struct EventFormat {
    unsigned word; /* 0: config, 1: config1 … */
    uint64_t bits;
} EventFormat;

/* The bits that a term of that PMU sets; -ENOENT: there is none of that name. */
int event_pmu_format(const EventHost *host, const char *pmu, Bytes name, EventFormat *ret);
/* The names in a folder of a PMU ("format", "events"), or with pmu NULL all PMUs, in order. */
int event_pmu_names(const EventHost *host, const char *pmu, const char *folder, char ***ret);

/* -- event-pmu.c: PMUs by name -- */

/* Adds a spec for a PMU by its name, or one for each whose name begins so (`uncore_imc` for
 * uncore_imc_0 …) or is matched; -ENOENT (not told) when there is none. */
int event_add_pmus(EventParser *p, Bytes name);
/* Adds a spec for each PMU that has an event of this name, taken in; -ENOENT (not told). */
int event_add_alias(EventParser *p, Bytes name);
/* On machines with several kinds of CPU, makes one spec for each kind out of the only one from
 * `first` on, which counts something that every PMU has. */
int event_spread(EventParser *p, size_t first);
/* -- event-module.c -- */

/* The name of a tracepoint's system or of a PMU is that of a kernel module that is installed and
 * not loaded: so it is not known whether the module has the event. */
bool event_module_is_missing(const EventHost *host, Bytes name);

/* -- event-names.c -- */

/* The names in a folder that are wanted, in order, up to a NULL. Closes `dir`. */
int event_names_read(DIR *dir, bool (*is_wanted)(const struct dirent *entry, const void *userdata),
                     const void *userdata, int (*compare)(const char *a, const char *b),
                     char ***ret);
void event_names_free(char **names);
/* A glob of *, ? and [set], in time bounded by the product of both lengths. */
bool event_glob(const char *pattern, const char *name);

/* -- event-tracepoint.c -- */

/* Adds tracepoints, globs resolved; -ENOENT (not told) when there is no such system, or no such
 * tracepoint, about which `near` then knows more. */
int event_add_tracepoints(EventParser *p, Bytes system, Bytes name, EventNear *near);

/* -- event-pfm.c -- */

/* The event that libpfm4 knows by `text`, modifiers and all; -ENOENT: none, or it is not built in.
 */
int event_pfm(const char *text, EventSpec *spec);
