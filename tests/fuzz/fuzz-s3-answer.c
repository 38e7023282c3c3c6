/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "s3/s3-answer.h"
#include "s3/s3-problem.h"
#include "util/macro.h"

/* An answer of a store is read in each way that the gateway reads one; what comes out is bounded
 * and may be sent back. */

static void check_id(const char *id) {
    size_t n = strnlen(id, S3_UPLOAD_ID_MAX);

    if (n == 0 || n == S3_UPLOAD_ID_MAX)
        abort();
    for (size_t i = 0; i < n; i++)
        if (id[i] <= 0x20 || id[i] >= 0x7f)
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const Bytes answer = {.data = data, .size = MIN(size, (size_t)65536)};
    TransportAnswer transport = {.status = 400, .data = data, .size = answer.size};
    char id[S3_UPLOAD_ID_MAX], sentence[S3_SENTENCE_MAX];
    S3Uploads uploads;

    if (s3_answer_upload_id(answer, id) == 0)
        check_id(id);
    if (s3_answer_uploads(answer, "a/b.perf.data", &uploads) == 0)
        for (size_t i = 0; i < uploads.n; i++)
            check_id(uploads.ids[i]);
    (void)s3_answer_is_complete(answer);
    if (s3_problem_judge(&transport, sentence) == S3_DONE || !sentence[0] ||
        strnlen(sentence, sizeof(sentence)) == sizeof(sentence))
        abort();
    return 0;
}
