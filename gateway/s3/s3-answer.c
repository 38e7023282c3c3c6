/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "s3/s3-answer.h"

#include <errno.h>
#include <string.h>

#include "s3/s3-xml.h"
#include "util/macro.h"

/* Reads the few elements that the gateway needs; all others are skipped. */

static int s3_answer_on_error(void *userdata, const S3XmlPath *path, Bytes text) {
    S3AnswerError *error = userdata;

    if (s3_xml_is(path, "Error/Code") && s3_xml_text(text, error->code, S3_CODE_MAX) < 0)
        error->code[0] = '\0';
    if (s3_xml_is(path, "Error/Message") && s3_xml_text(text, error->message, S3_MESSAGE_MAX) < 0)
        error->message[0] = '\0';
    return 0;
}

bool s3_answer_error(Bytes answer, S3AnswerError *ret) {
    S3AnswerError error = {};

    if (s3_xml_walk(answer, s3_answer_on_error, &error) < 0 || error.code[0] == '\0')
        return false;
    *ret = error;
    return true;
}

/* An id goes into our state and into URLs. */
static bool s3_answer_is_id(const char *id) {
    const char *p = id;

    while (*p > 0x20 && *p < 0x7f)
        p++;
    return p > id && *p == '\0';
}

static int s3_answer_on_upload(void *userdata, const S3XmlPath *path, Bytes text) {
    if (!s3_xml_is(path, "InitiateMultipartUploadResult/UploadId"))
        return 0;
    return s3_xml_text(text, userdata, S3_UPLOAD_ID_MAX);
}

int s3_answer_upload_id(Bytes answer, char ret[S3_UPLOAD_ID_MAX]) {
    char id[S3_UPLOAD_ID_MAX] = "";
    int r = s3_xml_walk(answer, s3_answer_on_upload, id);

    if (r < 0 || !s3_answer_is_id(id))
        return -EBADMSG;
    memcpy(ret, id, sizeof(id));
    return 0;
}

static int s3_answer_on_complete(void *userdata, const S3XmlPath *path, Bytes text _unused_) {
    bool *is_complete = userdata;

    *is_complete |= s3_xml_is(path, "CompleteMultipartUploadResult");
    return 0;
}

bool s3_answer_is_complete(Bytes answer) {
    bool is_complete = false;

    return s3_xml_walk(answer, s3_answer_on_complete, &is_complete) == 0 && is_complete;
}

/* The elements of an Upload come in any order. */
typedef struct S3AnswerList {
    const char *key;
    S3Uploads *uploads;
    char id[S3_UPLOAD_ID_MAX];
    bool is_ours;
} S3AnswerList;

static int s3_answer_on_list(void *userdata, const S3XmlPath *path, Bytes text) {
    static const char row[] = "ListMultipartUploadsResult/Upload";
    S3AnswerList *list = userdata;
    char key[S3_KEY_MAX];

    if (s3_xml_is(path, "ListMultipartUploadsResult/Upload/Key")) {
        list->is_ours = s3_xml_text(text, key, sizeof(key)) == 0 && strcmp(key, list->key) == 0;
    } else if (s3_xml_is(path, "ListMultipartUploadsResult/Upload/UploadId")) {
        if (s3_xml_text(text, list->id, sizeof(list->id)) < 0)
            list->id[0] = '\0';
    } else if (s3_xml_is(path, row)) {
        if (list->is_ours && s3_answer_is_id(list->id) && list->uploads->n < S3_UPLOADS_MAX)
            memcpy(list->uploads->ids[list->uploads->n++], list->id, sizeof(list->id));
        list->is_ours = false;
        list->id[0] = '\0';
    }
    return 0;
}

int s3_answer_uploads(Bytes answer, const char *key, S3Uploads *ret) {
    S3AnswerList list = {.key = key, .uploads = ret};

    ret->n = 0;
    return s3_xml_walk(answer, s3_answer_on_list, &list);
}
