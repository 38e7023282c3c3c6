/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "capture/plan/cpu-list.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "util/file.h"

/*
 * Lists of CPUs go through a bitmap, so that ranges which overlap or come in no order give the
 * same list as tidy ones.
 */

void cpu_list_done(CpuList *list) {
    free(list->cpus);
    *list = (CpuList){};
}

static int cpu_list_parse_number(const char **at, unsigned *ret) {
    unsigned v = 0;

    if (!isdigit((unsigned char)**at))
        return -EINVAL;
    for (; isdigit((unsigned char)**at); (*at)++) {
        v = v * 10 + (unsigned)(**at - '0');
        if (v >= CPU_LIST_MAX)
            return -ERANGE;
    }
    *ret = v;
    return 0;
}

static int cpu_list_parse_range(const char **at, bool *set) {
    unsigned first, last;
    int r = cpu_list_parse_number(at, &first);

    if (r < 0)
        return r;
    last = first;
    if (**at == '-') {
        (*at)++;
        r = cpu_list_parse_number(at, &last);
    }
    if (r < 0 || last < first)
        return r < 0 ? r : -EINVAL;
    for (; first <= last; first++)
        set[first] = true;
    return 0;
}

static int cpu_list_from_set(const bool *set, CpuList *ret) {
    CpuList list = {};

    for (unsigned cpu = 0; cpu < CPU_LIST_MAX; cpu++)
        list.n += set[cpu];
    list.cpus = calloc(list.n + 1, sizeof(*list.cpus));
    if (!list.cpus)
        return -ENOMEM;
    list.n = 0;
    for (unsigned cpu = 0; cpu < CPU_LIST_MAX; cpu++)
        if (set[cpu])
            list.cpus[list.n++] = cpu;
    *ret = list;
    return 0;
}

int cpu_list_parse(const char *text, CpuList *ret) {
    _cleanup_free_ bool *set = calloc(CPU_LIST_MAX, sizeof(*set));

    if (!set)
        return -ENOMEM;
    while (*text) {
        int r = cpu_list_parse_range(&text, set);

        if (r < 0)
            return r;
        if (*text && (*text != ',' || !text[1]))
            return -EINVAL;
        text += *text == ',';
    }
    return cpu_list_from_set(set, ret);
}

int cpu_list_read(const char *path, CpuList *ret) {
    char text[CPU_LIST_TEXT_MAX];
    int r = file_read_text(path, text, sizeof(text));

    if (r < 0)
        return r;
    return text[0] == '\0' || cpu_list_parse(text, ret) < 0 ? -EBADMSG : 0;
}

int cpu_list_copy(const CpuList *list, CpuList *ret) {
    unsigned *cpus = calloc(list->n + 1, sizeof(*cpus));

    if (!cpus)
        return -ENOMEM;
    if (list->n > 0)
        memcpy(cpus, list->cpus, list->n * sizeof(*cpus));
    *ret = (CpuList){.cpus = cpus, .n = list->n};
    return 0;
}

bool cpu_list_has(const CpuList *list, unsigned cpu) {
    size_t low = 0, high = list->n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (list->cpus[middle] == cpu)
            return true;
        if (list->cpus[middle] < cpu)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

bool cpu_list_equal(const CpuList *a, const CpuList *b) {
    return a->n == b->n && (a->n == 0 || memcmp(a->cpus, b->cpus, a->n * sizeof(*a->cpus)) == 0);
}
