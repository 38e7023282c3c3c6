/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "s3/s3-problem.h"

#include <stdio.h>
#include <string.h>

#include "s3/s3-answer.h"
#include "util/macro.h"
#include "util/text.h"

/*
 * The errors of S3, in a table: the code that a store sends, what it means for us, and what an
 * administrator can do. Codes that are not in the table go by the status of HTTP.
 */

/* clang-format off */
static const struct {
    const char *code;
    S3Verdict verdict;
    const char *sentence;
} s3_problem_rows[] = {
    { "SignatureDoesNotMatch", S3_WAIT,
      "The store refuses the signature: the secret is not that of the access key, or Region= is wrong." },
    { "InvalidAccessKeyId", S3_WAIT,
      "The store does not know the access key: correct it in the file or credential of the destination." },
    { "AccessDenied", S3_WAIT,
      "The store denies access: the access key needs the right to put objects into the bucket, and to "
      "list and abort multipart uploads." },
    { "InvalidToken", S3_WAIT, "The store refuses the access key: its session has ended." },
    { "ExpiredToken", S3_WAIT, "The store refuses the access key: its session has ended." },
    { "AuthorizationHeaderMalformed", S3_WAIT,
      "The store refuses the signature: Region= is not the region of the bucket." },
    { "RequestTimeTooSkewed", S3_WAIT,
      "The clocks of this host and of the store differ too much: set the clock of this host." },
    { "NoSuchBucket", S3_WAIT, "The bucket of URL= does not exist: create it, or correct URL=." },
    { "InvalidBucketName", S3_WAIT, "The path of URL= is not the name of a bucket." },
    { "PermanentRedirect", S3_WAIT, "The bucket has another address: correct URL= and Region=." },
    { "TemporaryRedirect", S3_WAIT, "The bucket has another address for now: URL= has to name it." },
    { "AllAccessDisabled", S3_WAIT, "The store has disabled the account of the access key." },
    { "AccountProblem", S3_WAIT, "The store has a problem with the account of the access key." },
    { "NotImplemented", S3_WAIT, "The store cannot do what the gateway asks of it." },
    { "QuotaExceeded", S3_WAIT, "The quota of the bucket is used up: raise it, or delete objects." },
    { "XMinioStorageFull", S3_WAIT, "The disks of the store are full." },
    { "NoSuchUpload", S3_RESTART, "The store has dropped a multipart upload before it was complete." },
    { "InvalidPart", S3_RESTART, "The store has lost a part of a multipart upload." },
    { "InvalidPartOrder", S3_RESTART, "The store has mixed up the parts of a multipart upload." },
    { "EntityTooSmall", S3_REFUSED, "The store wants larger parts of a multipart upload." },
    { "EntityTooLarge", S3_REFUSED, "The store does not accept objects of this size." },
    { "KeyTooLongError", S3_REFUSED, "The store does not accept keys of this length: shorten KeyTemplate=." },
    { "XMinioInvalidObjectName", S3_REFUSED, "The store does not accept this key: change KeyTemplate=." },
    { "InvalidArgument", S3_REFUSED, "The store does not accept a request for this object (InvalidArgument)." },
    { "MalformedXML", S3_REFUSED, "The store does not accept the list of the parts of this object." },
    { "MetadataTooLarge", S3_REFUSED, "The store does not accept headers of this length." },
    { "BadDigest", S3_AGAIN, "The data changed on its way to the store." },
    { "XAmzContentSHA256Mismatch", S3_AGAIN, "The data changed on its way to the store." },
    { "IncompleteBody", S3_AGAIN, "The store got a part of the data only." },
    { "RequestTimeout", S3_AGAIN, "The store waited too long for the data." },
    { "SlowDown", S3_AGAIN, "The store gets too many requests." },
    { "InternalError", S3_AGAIN, "The store has an internal error." },
    { "ServiceUnavailable", S3_AGAIN, "The store is not available for now." },
    { "OperationAborted", S3_AGAIN, "The store works on the same object." },
};
/* clang-format on */

static S3Verdict s3_problem_by_status(long status) {
    if (status >= 200 && status < 300)
        return S3_DONE;
    if (status == 408 || status == 409 || status == 425 || status == 429 ||
        (status >= 500 && status != 501))
        return S3_AGAIN;
    return status == 413 || status == 414 ? S3_REFUSED : S3_WAIT;
}

/* For a code that is not in the table: with what the store says itself. */
static void s3_problem_describe(const TransportAnswer *answer, const S3AnswerError *error,
                                char sentence[S3_SENTENCE_MAX]) {
    _cleanup_(buffer_done) Buffer text = {};
    const char *said = error->message[0] ? error->message : error->code;

    text_escape_str(&text, said);
    text_putc(&text, '\0');
    if (*said && buffer_error(&text) == 0)
        (void)snprintf(sentence, S3_SENTENCE_MAX, "The store answers with status %ld: %s",
                       answer->status, (const char *)text.data);
    else
        (void)snprintf(sentence, S3_SENTENCE_MAX, "The store answers with status %ld.",
                       answer->status);
}

S3Verdict s3_problem_judge(const TransportAnswer *answer, char sentence[S3_SENTENCE_MAX]) {
    S3AnswerError error = {};

    sentence[0] = '\0';
    if (answer->error != 0) {
        (void)snprintf(sentence, S3_SENTENCE_MAX, "The store does not answer: %.200s.",
                       answer->problem[0] ? answer->problem : strerror(-answer->error));
        return S3_AGAIN;
    }
    if (s3_problem_by_status(answer->status) == S3_DONE)
        return S3_DONE;
    (void)s3_answer_error((Bytes){.data = answer->data, .size = answer->size}, &error);
    for (size_t i = 0; i < ARRAY_SIZE(s3_problem_rows); i++)
        if (strcmp(error.code, s3_problem_rows[i].code) == 0) {
            (void)snprintf(sentence, S3_SENTENCE_MAX, "%s", s3_problem_rows[i].sentence);
            return s3_problem_rows[i].verdict;
        }
    s3_problem_describe(answer, &error, sentence);
    return s3_problem_by_status(answer->status);
}
