/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "symbol/table/name-choice.h"

/*
 * The rules of perf, so that the same name is shown: one with a size, not weak, global, with fewer
 * underscores in front, with the longer name; of the old aliases of system calls ("SyS_read") the
 * other one. perf compares the demangled names, which differ in length from each other as their
 * mangled forms do, but for templates that are abbreviated differently.
 */

static Bytes name_choice_name(const Buffer *strings, const NameEntry *e) {
    return (Bytes){.data = strings->data + e->name, .size = e->name_size};
}

static size_t name_choice_underscores(Bytes name) {
    size_t n = 0;

    while (n < name.size && name.data[n] == '_')
        n++;
    return n;
}

static bool name_choice_is_alias(Bytes name) {
    static const char syscall[] = "SyS", compat[] = "compat_SyS";

    return (name.size > sizeof(syscall) - 1 &&
            memcmp(name.data, syscall, sizeof(syscall) - 1) == 0) ||
           (name.size > sizeof(compat) - 1 && memcmp(name.data, compat, sizeof(compat) - 1) == 0);
}

bool name_choice_second(const Buffer *strings, const NameEntry *a, const NameEntry *b) {
    Bytes name_a = name_choice_name(strings, a), name_b = name_choice_name(strings, b);
    size_t under_a = name_choice_underscores(name_a), under_b = name_choice_underscores(name_b);

    if ((a->end > a->start) != (b->end > b->start))
        return b->end > b->start;
    if ((a->binding == NAME_WEAK) != (b->binding == NAME_WEAK))
        return a->binding == NAME_WEAK;
    if ((a->binding == NAME_GLOBAL) != (b->binding == NAME_GLOBAL))
        return b->binding == NAME_GLOBAL;
    if (under_a != under_b)
        return under_b < under_a;
    if (name_a.size != name_b.size)
        return name_b.size > name_a.size;
    return name_choice_is_alias(name_a);
}
