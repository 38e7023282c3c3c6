/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdlib.h>
#include <string.h>

#include "engine/engine-format.h"
#include "fuzz.h"
#include "send/answer-text.h"
#include "util/text.h"

/*
 * An answer of an engine of OTLP is read, and its sentence is made. The message lies within the
 * answer, the sentence is text that fits, a message that is sent twice says the same, and one that
 * is broken at its end says nothing.
 */

enum { ANSWER_MAX = 65536, PROFILES = 7, SENTENCE_MAX = 256 };

static void check_sentence(const EngineRejection *rejection) {
    char sentence[SENTENCE_MAX];
    const uint8_t *p = (const uint8_t *)sentence;
    size_t n, length;
    uint32_t code;

    answer_rejection_text(rejection, PROFILES, "http://a/b?key=c", sentence, sizeof(sentence));
    n = strnlen(sentence, sizeof(sentence));
    if (n == 0 || n == sizeof(sentence))
        abort();
    for (size_t i = 0; i < n; i += length) {
        length = text_code_point(p + i, n - i, &code);
        if (length == 0 || code < 0x20 || code == 0x7f)
            abort();
    }
}

static bool is_same(const EngineRejection *a, const EngineRejection *b) {
    return a->profiles == b->profiles && a->message.size == b->message.size &&
           (a->message.size == 0 || memcmp(a->message.data, b->message.data, a->message.size) == 0);
}

/* `copy` is the answer twice. */
static void check_copies(const EngineRejection *rejection, uint8_t *copy, size_t size) {
    EngineRejection twice = otlp_rejection((Bytes){.data = copy, .size = 2 * size}), broken;

    if (!is_same(&twice, rejection))
        abort();
    copy[size] = 7; /* a type of field that does not exist */
    broken = otlp_rejection((Bytes){.data = copy, .size = size + 1});
    if (broken.profiles != 0 || broken.message.size != 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const Bytes answer = {.data = data, .size = MIN(size, (size_t)ANSWER_MAX)};
    EngineRejection rejection = otlp_rejection(answer);
    Bytes message = rejection.message;
    _cleanup_free_ uint8_t *copy = malloc(2 * answer.size + 1);

    if (!copy || rejection.profiles > INT64_MAX)
        abort();
    if (message.size > 0 && (message.data < data || message.size > answer.size ||
                             message.data + message.size > data + answer.size))
        abort();
    fuzz_touch(message.data, message.size);
    check_sentence(&rejection);
    /* One that says something is whole. */
    if (rejection.profiles > 0 || message.size > 0) {
        memcpy(copy, data, answer.size);
        memcpy(copy + answer.size, data, answer.size);
        check_copies(&rejection, copy, answer.size);
    }
    return 0;
}
