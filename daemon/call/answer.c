/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "call/answer.h"

#include <string.h>

#include "protocol/value.h"
#include "util/clock.h"
#include "util/text.h"

/*
 * Replies contain no byte that could confuse a terminal or a parser: names of processes and paths
 * pass the same escape as everything else that we print. Times are in microseconds, which a double
 * represents exactly.
 */

#define NUMBER_MAX (1ULL << 53) /* the largest exact integer in JSON, where numbers are doubles */

static json_t *answer_buffer(const Buffer *text) {
    return buffer_error(text) < 0
               ? NULL
               : json_stringn(text->data ? (const char *)text->data : "", text->size);
}

json_t *answer_text(const char *text) {
    _cleanup_(buffer_done) Buffer escaped = {};

    text_escape_str(&escaped, text);
    return answer_buffer(&escaped);
}

json_t *answer_echo(const char *text) {
    _cleanup_(buffer_done) Buffer escaped = {};

    text_escape_again(&escaped, (Bytes){.data = (const uint8_t *)text, .size = strlen(text)});
    return answer_buffer(&escaped);
}

json_t *answer_text_or_null(const char *text) {
    return text && *text ? answer_text(text) : json_null();
}

json_t *answer_count(uint64_t n) {
    return json_integer((json_int_t)MIN(n, NUMBER_MAX));
}

json_t *answer_time(uint64_t ns) {
    return ns == 0 ? json_null() : answer_count(ns / NS_PER_US);
}

void answer_near(json_t **parameters, const NearNames *near) {
    json_t *list = near->n > 0 ? json_array() : NULL;

    for (size_t i = 0; i < near->n; i++)
        value_append(&list, answer_text(near->names[i].name));
    if (near->n > 0)
        value_set(parameters, "near", list);
}
