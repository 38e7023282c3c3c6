/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The processes that generate code, each with the file in which it names that code. The file is
 * held open, since nobody can open it when the process and its namespace are gone. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "scan/symbols-answer.h"

enum { CODE_MAPS_MAX = 256 };

typedef struct CodeMap {
    uint32_t pid;    /* 0: free */
    bool is_asked;   /* its file is being opened or read */
    uint64_t due_ns; /* when to look at it again, in CLOCK_MONOTONIC */
    unsigned failures;
    CodeMapAnswer known; /* the file that is held, if source is not -1; without a result */
    uint64_t start_real_ns;
} CodeMap;

typedef struct CodeMapList {
    CodeMap items[CODE_MAPS_MAX];
} CodeMapList;

void code_map_list_init(CodeMapList *list);
void code_map_list_done(CodeMapList *list);
CodeMap *code_map_list_find(CodeMapList *list, uint32_t pid);
/* A place for a process that has none yet; takes that of one without a file if there is none free.
 * NULL: all hold files. */
CodeMap *code_map_list_add(CodeMapList *list, uint32_t pid);
/* Closes the file. */
void code_map_list_drop(CodeMap *map);
/* Takes over what the scanner found. Returns whether there are names to be kept. */
bool code_map_list_answer(CodeMap *map, CodeMapAnswer *answer, uint64_t now_ns);
/* Whether nothing more is to be read of the file that is held. */
bool code_map_list_is_over(const CodeMap *map);
/* The next one with a file that is due; NULL: there is none. */
CodeMap *code_map_list_due(CodeMapList *list, uint64_t now_ns, size_t *at);
