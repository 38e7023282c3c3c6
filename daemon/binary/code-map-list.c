/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "binary/code-map-list.h"

#include <unistd.h>

#include "util/clock.h"
#include "util/macro.h"

/*
 * A process is looked for at its first sample in code of no file. Where it has no map, or one that
 * is refused, it is looked for again later, each time later than before: it may begin to write one.
 * The file of a living process is read again when it has changed, and for the last time when the
 * process has ended. One that could not be read is tried again, each time later than before, and a
 * few times if the process has ended.
 */

#define READ_AGAIN_NS  (5 * NS_PER_SECOND)
#define RETRY_FIRST_NS (5 * NS_PER_SECOND)
#define RETRY_LAST_NS  (600 * NS_PER_SECOND)

enum { ENDED_FAILURES_MAX = 4 };

void code_map_list_init(CodeMapList *list) {
    for (size_t i = 0; i < CODE_MAPS_MAX; i++)
        list->items[i] = (CodeMap){.known = {.source = -1, .fd = -1}};
}

void code_map_list_done(CodeMapList *list) {
    for (size_t i = 0; i < CODE_MAPS_MAX; i++)
        code_map_list_drop(&list->items[i]);
}

void code_map_list_drop(CodeMap *map) {
    closep(&map->known.source);
    *map = (CodeMap){.known = {.source = -1, .fd = -1}};
}

CodeMap *code_map_list_find(CodeMapList *list, uint32_t pid) {
    for (size_t i = 0; i < CODE_MAPS_MAX; i++)
        if (list->items[i].pid == pid)
            return &list->items[i];
    return NULL;
}

CodeMap *code_map_list_add(CodeMapList *list, uint32_t pid) {
    CodeMap *free_place = code_map_list_find(list, 0);

    for (size_t i = 0; !free_place && i < CODE_MAPS_MAX; i++)
        if (list->items[i].known.source < 0 && !list->items[i].is_asked)
            free_place = &list->items[i];
    if (!free_place)
        return NULL;
    code_map_list_drop(free_place);
    free_place->pid = pid;
    return free_place;
}

static void code_map_list_fail(CodeMap *map, uint64_t now_ns) {
    uint64_t delay_ns = RETRY_FIRST_NS << MIN(map->failures, 10U);

    map->failures++;
    map->due_ns = now_ns + MIN(delay_ns, (uint64_t)RETRY_LAST_NS);
}

bool code_map_list_answer(CodeMap *map, CodeMapAnswer *answer, uint64_t now_ns) {
    bool has_names = answer->fd >= 0;

    map->is_asked = false;
    if (map->known.source < 0 && answer->source >= 0 && !answer->has_ended) {
        map->known = *answer;
        map->known.fd = -1;
        answer->source = -1;
        map->start_real_ns = clock_booted_ns() + map->known.start_ns;
    }
    if (map->known.source < 0) {
        code_map_list_fail(map, now_ns);
        return false;
    }
    map->known.size = answer->size;
    map->known.mtime_ns = answer->mtime_ns;
    map->known.has_ended = answer->has_ended;
    map->known.is_unread = answer->is_unread;
    if (answer->is_unread) {
        code_map_list_fail(map, now_ns);
        return false;
    }
    map->failures = 0;
    map->due_ns = now_ns + READ_AGAIN_NS;
    return has_names;
}

bool code_map_list_is_over(const CodeMap *map) {
    return map->known.has_ended && (!map->known.is_unread || map->failures >= ENDED_FAILURES_MAX);
}

CodeMap *code_map_list_due(CodeMapList *list, uint64_t now_ns, size_t *at) {
    while (*at < CODE_MAPS_MAX) {
        CodeMap *map = &list->items[(*at)++];

        if (map->known.source >= 0 && !map->is_asked && map->due_ns <= now_ns)
            return map;
    }
    return NULL;
}
