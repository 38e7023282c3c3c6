/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>

#include "s3/s3-answer.h"
#include "s3/s3-problem.h"
#include "s3/s3-xml.h"
#include "test.h"
#include "util/macro.h"

/* What stores answer, also those that answer nonsense. */

static Bytes bytes_of(const char *text) {
    return (Bytes){.data = (const uint8_t *)text, .size = strlen(text)};
}

TEST(upload_id_is_found_in_any_namespace) {
    char id[S3_UPLOAD_ID_MAX];

    CHECK_OK(s3_answer_upload_id(
        bytes_of("<?xml version='1.0' encoding='UTF-8'?>\n"
                 "<InitiateMultipartUploadResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">"
                 "<Bucket>b</Bucket><Key>k</Key><UploadId>VXBs&amp;b2Fk-._~</UploadId>"
                 "</InitiateMultipartUploadResult>"),
        id));
    CHECK_STREQ(id, "VXBs&b2Fk-._~");
    CHECK_OK(s3_answer_upload_id(
        bytes_of("<s:InitiateMultipartUploadResult xmlns:s='x'><s:UploadId>1</s:UploadId>"
                 "</s:InitiateMultipartUploadResult>"),
        id));
    CHECK_STREQ(id, "1");
}

#define INITIATED                                                                                  \
    "<InitiateMultipartUploadResult><UploadId>1</UploadId></InitiateMultipartUploadResult>"

TEST(answer_without_a_usable_upload_id_is_refused) {
    static const char *const answers[] = {
        "",
        "no xml",
        "<html><UploadId>1</UploadId></html>",
        "<InitiateMultipartUploadResult><UploadId></UploadId></InitiateMultipartUploadResult>",
        "<InitiateMultipartUploadResult><UploadId/></InitiateMultipartUploadResult>",
        "<InitiateMultipartUploadResult><UploadId>a b</UploadId></InitiateMultipartUploadResult>",
        "<InitiateMultipartUploadResult><UploadId>a\nb</UploadId></InitiateMultipartUploadResult>",
        "<InitiateMultipartUploadResult><UploadId>\xff</UploadId></InitiateMultipartUploadResult>",
        "<InitiateMultipartUploadResult><UploadId>&x;</UploadId></InitiateMultipartUploadResult>",
        "<InitiateMultipartUploadResult><UploadId>1</UploadId>",
        ("<!DOCTYPE a [<!ENTITY x 'y'>]>" INITIATED),
    };
    char id[S3_UPLOAD_ID_MAX] = "unchanged";

    for (size_t i = 0; i < ARRAY_SIZE(answers); i++)
        CHECK_EQ(s3_answer_upload_id(bytes_of(answers[i]), id), -EBADMSG);
    CHECK_STREQ(id, "unchanged");
}

TEST(upload_id_longer_than_its_limit_is_refused) {
    char answer[2 * S3_UPLOAD_ID_MAX + 128] = "<InitiateMultipartUploadResult><UploadId>",
                                       id[S3_UPLOAD_ID_MAX];
    size_t n = strlen(answer);

    memset(answer + n, 'x', S3_UPLOAD_ID_MAX);
    strcpy(answer + n + S3_UPLOAD_ID_MAX, "</UploadId></InitiateMultipartUploadResult>");
    CHECK_EQ(s3_answer_upload_id(bytes_of(answer), id), -EBADMSG);
    memmove(answer + n, answer + n + 1, strlen(answer + n));
    CHECK_OK(s3_answer_upload_id(bytes_of(answer), id));
    CHECK_EQ(strlen(id), S3_UPLOAD_ID_MAX - 1);
}

TEST(uploads_of_other_keys_are_left_alone) {
    S3Uploads uploads;

    CHECK_OK(s3_answer_uploads(
        bytes_of(
            "<ListMultipartUploadsResult><Prefix>a/b</Prefix>"
            "<Upload><Key>a/b</Key><UploadId>one</UploadId></Upload>"
            "<Upload><Key>a/bc</Key><UploadId>two</UploadId></Upload>"
            "<Upload><UploadId>three</UploadId><Owner><ID>x</ID></Owner><Key>a/b</Key></Upload>"
            "<Upload><Key>a/b</Key></Upload>"
            "<Other><Key>a/b</Key><UploadId>four</UploadId></Other>"
            "</ListMultipartUploadsResult>"),
        "a/b", &uploads));
    CHECK_EQ(uploads.n, 2);
    CHECK_STREQ(uploads.ids[0], "one");
    CHECK_STREQ(uploads.ids[1], "three");
}

TEST(list_of_uploads_is_bounded) {
    _cleanup_free_ char *answer = calloc(1, 8192);
    S3Uploads uploads;

    CHECK(answer);
    strcpy(answer, "<ListMultipartUploadsResult>");
    for (int i = 0; i < 2 * S3_UPLOADS_MAX; i++)
        strcat(answer, "<Upload><Key>k</Key><UploadId>u</UploadId></Upload>");
    strcat(answer, "</ListMultipartUploadsResult>");
    CHECK_OK(s3_answer_uploads(bytes_of(answer), "k", &uploads));
    CHECK_EQ(uploads.n, S3_UPLOADS_MAX);
}

TEST(completion_is_known_from_its_document_and_not_from_its_status) {
    CHECK(s3_answer_is_complete(bytes_of("   <CompleteMultipartUploadResult><ETag>&quot;e&quot;"
                                         "</ETag></CompleteMultipartUploadResult>")));
    CHECK(!s3_answer_is_complete(bytes_of("<Error><Code>InternalError</Code></Error>")));
    CHECK(!s3_answer_is_complete(bytes_of("")));
    CHECK(!s3_answer_is_complete(bytes_of("<CompleteMultipartUploadResult>")));
}

static int count_elements(void *userdata, const S3XmlPath *path, Bytes text) {
    unsigned *n = userdata;

    ++*n;
    return path->n > S3_XML_DEPTH_MAX || text.size > 100 ? -EINVAL : 0;
}

TEST(deep_and_crossed_elements_are_refused) {
    unsigned n = 0;

    CHECK_OK(s3_xml_walk(bytes_of("<a><b><c><d><e><f><g><h/></g></f></e></d></c></b></a>"),
                         count_elements, &n));
    CHECK_EQ(n, 8);
    CHECK_EQ(s3_xml_walk(bytes_of("<a><b><c><d><e><f><g><h><i/></h></g></f></e></d></c></b></a>"),
                         count_elements, &n),
             -EBADMSG);
    CHECK_EQ(s3_xml_walk(bytes_of("<a><b></a></b>"), count_elements, &n), -EBADMSG);
    CHECK_EQ(s3_xml_walk(bytes_of("</a>"), count_elements, &n), -EBADMSG);
    CHECK_EQ(s3_xml_walk(bytes_of("<a b='>'"), count_elements, &n), -EBADMSG);
    CHECK_OK(s3_xml_walk(bytes_of("<a b='>' c=\"'\"><!-- <x> --></a>"), count_elements, &n));
}

/* The verdict on an answer with this status and error code ("": without one). */
static S3Verdict judge(long status, const char *code, char sentence[S3_SENTENCE_MAX]) {
    char body[256];
    TransportAnswer answer = {.status = status, .data = (const uint8_t *)body};

    snprintf(body, sizeof(body), "<?xml version='1.0'?>\n<Error><Code>%s</Code></Error>", code);
    answer.size = *code ? strlen(body) : 0;
    return s3_problem_judge(&answer, sentence);
}

TEST(wrong_secret_waits_for_an_administrator_and_says_so) {
    char sentence[S3_SENTENCE_MAX];

    CHECK_EQ(judge(403, "SignatureDoesNotMatch", sentence), S3_WAIT);
    CHECK(strstr(sentence, "secret"));
    CHECK_EQ(judge(403, "InvalidAccessKeyId", sentence), S3_WAIT);
    CHECK(strstr(sentence, "access key"));
    CHECK_EQ(judge(403, "RequestTimeTooSkewed", sentence), S3_WAIT);
    CHECK(strstr(sentence, "clock"));
    CHECK_EQ(judge(404, "NoSuchBucket", sentence), S3_WAIT);
    CHECK(strstr(sentence, "bucket"));
}

TEST(verdict_follows_the_code_before_the_status) {
    char sentence[S3_SENTENCE_MAX];

    CHECK_EQ(judge(200, "", sentence), S3_DONE);
    CHECK_STREQ(sentence, "");
    CHECK_EQ(judge(404, "NoSuchUpload", sentence), S3_RESTART);
    CHECK_EQ(judge(400, "XAmzContentSHA256Mismatch", sentence), S3_AGAIN);
    CHECK_EQ(judge(400, "EntityTooLarge", sentence), S3_REFUSED);
    CHECK_EQ(judge(400, "EntityTooSmall", sentence), S3_REFUSED);
    CHECK_EQ(judge(400, "InvalidArgument", sentence), S3_REFUSED);
    CHECK(strstr(sentence, "InvalidArgument"));
    CHECK_EQ(judge(400, "MalformedXML", sentence), S3_REFUSED);
    CHECK_EQ(judge(400, "XMinioInvalidObjectName", sentence), S3_REFUSED);
    CHECK_EQ(judge(414, "", sentence), S3_REFUSED);
    CHECK_EQ(judge(500, "", sentence), S3_AGAIN);
    CHECK_EQ(judge(429, "", sentence), S3_AGAIN);
    CHECK_EQ(judge(501, "", sentence), S3_WAIT);
    CHECK_EQ(judge(501, "NotImplemented", sentence), S3_WAIT);
    CHECK_EQ(judge(413, "", sentence), S3_REFUSED);
    CHECK_EQ(judge(301, "", sentence), S3_WAIT);
    CHECK_EQ(judge(400, "Unheard", sentence), S3_WAIT);
    CHECK(strstr(sentence, "Unheard"));
}

TEST(no_answer_is_tried_again) {
    TransportAnswer answer = {.error = -ECONNREFUSED, .problem = "nobody listens"};
    char sentence[S3_SENTENCE_MAX];

    CHECK_EQ(s3_problem_judge(&answer, sentence), S3_AGAIN);
    CHECK(strstr(sentence, "nobody listens"));
}

TEST(message_of_a_store_is_escaped) {
    TransportAnswer answer = {.status = 400};
    char sentence[S3_SENTENCE_MAX];
    const char *body = "<Error><Code>X</Code><Message>a\xe2\x80\xae"
                       "b</Message></Error>";

    answer.data = (const uint8_t *)body;
    answer.size = strlen(body);
    (void)s3_problem_judge(&answer, sentence);
    CHECK(!strstr(sentence, "\xe2\x80\xae"));
    CHECK(strstr(sentence, "a\\xe2\\x80\\xaeb"));
}

TEST_MAIN()
