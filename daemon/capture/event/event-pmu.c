/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>

#include "capture/event/event-parse.h"
#include "capture/event/event-symbol.h"

/*
 * Events that name a PMU: one spec for each PMU that matches. A driver may come or go while the
 * text is parsed.
 */

/* -- one PMU ------------------------------------------------------------------------------------
 */

static int event_pmu_read_type(const EventHost *host, const char *pmu, uint32_t *ret) {
    char text[64];
    uint64_t type;
    int r = event_pmu_value(host, pmu, "type", (Bytes){}, text, sizeof(text));

    if (r < 0)
        return r;
    if (event_number((Bytes){.data = (const uint8_t *)text, .size = strlen(text)}, &type) < 0 ||
        type > UINT32_MAX)
        return -ENOENT;
    *ret = (uint32_t)type;
    return 0;
}

static int event_pmu_add(EventParser *p, const char *pmu) {
    char cpus[EVENT_VALUE_MAX] = "";
    EventSpec *s;
    uint32_t type;
    int r = event_pmu_read_type(p->host, pmu, &type);

    if (r < 0)
        return r;
    s = event_list_add(p, &r);
    if (!s)
        return r;
    s->type = type;
    s->pmu = strdup(pmu);
    /* The CPUs are either of one kind, or one of each package that counts for all of it. */
    if (event_pmu_value(p->host, pmu, "cpumask", (Bytes){}, cpus, sizeof(cpus)) < 0)
        (void)event_pmu_value(p->host, pmu, "cpus", (Bytes){}, cpus, sizeof(cpus));
    s->cpus = cpus[0] ? strdup(cpus) : NULL;
    if (!s->pmu || (cpus[0] && !s->cpus))
        return event_fail(p, -ENOMEM, "does not fit into memory");
    return 0;
}

/* -- several PMUs -------------------------------------------------------------------------------
 */

/* `uncore_imc` and `imc` mean uncore_imc_0, uncore_imc_1 … */
static bool event_pmu_is_meant(const char *pmu, const char *pattern) {
    return event_glob(pattern, pmu) || (strncmp(pmu, "uncore_", strlen("uncore_")) == 0 &&
                                        event_glob(pattern, pmu + strlen("uncore_")));
}

int event_add_pmus(EventParser *p, Bytes name) {
    char word[EVENT_WORD_MAX], pattern[EVENT_WORD_MAX + 1], **names = NULL;
    bool found = false;
    int r;

    if (name.data[0] == '.' || name.size >= sizeof(word))
        return -ENOENT;
    memcpy(word, name.data, name.size);
    word[name.size] = '\0';
    r = event_pmu_add(p, word);
    if (r != -ENOENT)
        return r;
    (void)snprintf(pattern, sizeof(pattern), "%s*", word);
    if (event_pmu_names(p->host, NULL, NULL, &names) < 0)
        return -ENOENT;
    r = 0;
    for (size_t i = 0; names[i] && r == 0; i++)
        if (event_pmu_is_meant(names[i], pattern)) {
            r = event_pmu_add(p, names[i]);
            found |= r == 0;
        }
    event_names_free(names);
    return r < 0 || found ? r : -ENOENT;
}

int event_add_alias(EventParser *p, Bytes name) {
    char **names = NULL;
    bool found = false;
    int r = 0;

    if (event_pmu_names(p->host, NULL, NULL, &names) < 0)
        return -ENOENT;
    for (size_t i = 0; names[i] && r == 0; i++) {
        char text[EVENT_VALUE_MAX];

        if (event_pmu_alias(p->host, names[i], name, text, sizeof(text)) < 0)
            continue;
        r = event_pmu_add(p, names[i]);
        if (r == 0)
            r = event_alias_terms(p, &p->list->specs[p->list->n - 1], name);
        found |= r == 0;
    }
    event_names_free(names);
    return r < 0 || found ? r : -ENOENT;
}

/* -- several kinds of CPU -----------------------------------------------------------------------
 */

/* PMUs of a kind of CPU have a file `cpus`. */
static int event_pmu_core_pmus(const EventHost *host, char ***ret) {
    char **names = NULL;
    size_t n = 0;
    int r = event_pmu_names(host, NULL, NULL, &names);

    if (r < 0)
        return r;
    for (size_t i = 0; names[i]; i++) {
        char cpus[EVENT_VALUE_MAX];

        if (event_pmu_value(host, names[i], "cpus", (Bytes){}, cpus, sizeof(cpus)) == 0 && cpus[0])
            names[n++] = names[i];
        else
            free(names[i]);
    }
    names[n] = NULL;
    *ret = names;
    return (int)n;
}

/* "cpu_core/cycles/u" out of "cycles:u". */
static char *event_pmu_spread_name(const char *pmu, const EventParser *p, bool is_auto) {
    Bytes word = {.data = (const uint8_t *)p->event, .size = (size_t)(p->at - p->event)};
    size_t n = strcspn(p->at, ",{}/");
    _cleanup_free_ char *counter = NULL;
    char *name = NULL;

    if (*p->at == '/')
        return NULL;
    counter = is_auto ? event_auto_name(word) : event_strdup(word);
    if (!counter)
        return NULL;
    return asprintf(&name, "%s/%s/%.*s", pmu, counter, (int)n - (n > 0 ? 1 : 0), p->at + 1) < 0
               ? NULL
               : name;
}

int event_spread(EventParser *p, size_t first) {
    EventSpec meant = p->list->specs[first];
    char **pmus = NULL;
    int n, r = 0;

    if (meant.type != PERF_TYPE_HARDWARE && meant.type != PERF_TYPE_HW_CACHE &&
        meant.type != PERF_TYPE_RAW)
        return 0;
    n = event_pmu_core_pmus(p->host, &pmus);
    if (n > 1)
        p->list->n = first;
    for (int i = 0; i < n && n > 1 && r == 0; i++) {
        EventSpec *s;

        r = event_pmu_add(p, pmus[i]);
        if (r < 0)
            break;
        s = &p->list->specs[first + (size_t)i];
        s->is_auto = meant.is_auto;
        s->name = event_pmu_spread_name(pmus[i], p, meant.is_auto);
        s->config = meant.config;
        if (meant.type != PERF_TYPE_RAW) {
            /* The kernel reads the PMU from the upper half. */
            s->config |= (uint64_t)s->type << 32;
            s->type = meant.type;
        }
    }
    if (n >= 0)
        event_names_free(pmus);
    return r == -ENOENT ? event_fail(p, -EINVAL, "is counted by a PMU that was just removed") : r;
}
