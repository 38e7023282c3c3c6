/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "s3/s3-profd.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "protocol/connection.h"
#include "transport/retry.h"
#include "util/clock.h"
#include "util/text.h"

/*
 * Calls profd, over a connection for each call. A reply is waited for in short steps, so that the
 * gateway can stop. Replies are those of a daemon that we did not start, so what becomes part of a
 * key or of a call is checked.
 */

#define S3_INTERFACE   "io.profd.Control."
#define S3_STEP_NS     (NS_PER_SECOND / 2)
#define S3_PATIENCE_NS (120 * NS_PER_SECOND) /* a window of hours takes profd a while */

static int s3_profd_fail_as(S3Profd *profd, long status, int error, const char *sentence) {
    (void)snprintf(profd->problem, sizeof(profd->problem), "%s", sentence);
    profd->problem_status = status;
    return error;
}

static int s3_profd_fail(S3Profd *profd, int error, const char *sentence) {
    return s3_profd_fail_as(profd, SEND_STATUS_SOURCE, error, sentence);
}

/* profd gives a recording, and the folder does not take it. */
static int s3_profd_fail_to_keep(S3Profd *profd, int error) {
    char sentence[S3_SENTENCE_MAX];

    if (error == -EFBIG)
        return s3_profd_fail_as(profd, SEND_STATUS_LOST, error,
                                "A recording is larger than a store takes.");
    if (error == -ENOSPC)
        (void)snprintf(sentence, sizeof(sentence),
                       "The folder '%.128s' has no space for a recording, of which it needs twice "
                       "the size.",
                       profd->folder);
    else
        (void)snprintf(sentence, sizeof(sentence),
                       "A recording cannot be kept in '%.128s' until it is uploaded: %s.",
                       profd->folder, strerror(-error));
    return s3_profd_fail_as(profd, SEND_STATUS_LOCAL, error, sentence);
}

static int s3_profd_open(S3Profd *profd, Connection **ret) {
    int r = connection_open(profd->socket, ret);

    if (r == -EACCES || r == -EPERM)
        return s3_profd_fail(
            profd, -ENOTCONN,
            "The gateway may not connect to profd: its user has to be in the group "
            "profd-read.");
    if (r == -ENOENT || r == -ECONNREFUSED || r == -EAGAIN)
        return s3_profd_fail(profd, -ENOTCONN, "profd is not running, or starts.");
    return r < 0 ? s3_profd_fail(profd, r, "The connection to profd fails.") : 0;
}

static const struct {
    const char *name;
    long status;
    int error;
    const char *sentence;
} s3_profd_errors[] = {
    {"WindowUnavailable", SEND_STATUS_LOST, -ENODATA,
     "profd has nothing of a window of time: it cannot be read, or "
     "nobody knows whether it was recorded."},
    {"NoSuchSession", SEND_STATUS_SOURCE, -ENOTCONN,
     "profd has no session of the name of Session=."},
    {"NoSuchSnapshot", SEND_STATUS_LOST, -ENODATA,
     "A snapshot was removed before it was uploaded."},
    {"Busy", SEND_STATUS_SOURCE, -ENOTCONN, "profd has too much to do."},
    {"DiskBudget", SEND_STATUS_SOURCE, -EDQUOT,
     "The snapshots of profd take all the space that they may: remove "
     "some, or raise SnapshotMaxUse= in profd.conf."},
    {"DiskFull", SEND_STATUS_SOURCE, -ENOTCONN, "The disk of profd is full."},
};

/* The reasons of a gap, as profd words them, in which nothing could be lost. */
static S3Lack s3_profd_lack(const json_t *parameters) {
    static const char *const reasons[] = {"stopped",    "paused",   "down",   "offline",  "absent",
                                          "notStarted", "reloaded", "failed", "reopened", "asleep"};
    const char *reason = json_string_value(json_object_get(parameters, "reason")) ?: "";

    if (strcmp(reason, "deleted") == 0)
        return S3_LACK_DELETED;
    for (size_t i = 0; i < ARRAY_SIZE(reasons); i++)
        if (strcmp(reason, reasons[i]) == 0)
            return S3_LACK_NOT_RECORDED;
    return S3_LACK_UNKNOWN;
}

static int s3_profd_refused(S3Profd *profd, const char *error, const json_t *parameters) {
    size_t n = strlen(S3_INTERFACE);

    profd->lack = s3_profd_lack(parameters);

    if (strcmp(error, "org.varlink.service.PermissionDenied") == 0)
        return s3_profd_fail(profd, -EACCES, "profd refuses its recordings to the gateway.");
    for (size_t i = 0; i < ARRAY_SIZE(s3_profd_errors); i++)
        if (strncmp(error, S3_INTERFACE, n) == 0 && strcmp(error + n, s3_profd_errors[i].name) == 0)
            return s3_profd_fail_as(profd, s3_profd_errors[i].status, s3_profd_errors[i].error,
                                    s3_profd_errors[i].sentence);
    return s3_profd_fail(profd, -EIO, "profd fails to make a recording: its journal says why.");
}

/* Waits for the next reply. */
static int s3_profd_receive(S3Profd *profd, Connection *connection, Reply *ret) {
    uint64_t end_ns = clock_monotonic_ns() + S3_PATIENCE_NS;
    int r;

    do
        r = atomic_load(profd->stop) ? -ECANCELED : connection_receive(connection, S3_STEP_NS, ret);
    while (r == -ETIMEDOUT && clock_monotonic_ns() < end_ns);
    if (r == -EPIPE || r == -ETIMEDOUT)
        return s3_profd_fail(profd, -ENOTCONN,
                             "profd ended before it answered, or does not answer.");
    if (r < 0)
        return s3_profd_fail(profd, r, "profd gives no valid answer.");
    return ret->error ? s3_profd_refused(profd, ret->error, ret->parameters) : 0;
}

/* Takes ownership of the parameters. */
static int s3_profd_call(S3Profd *profd, Connection *connection, const char *method,
                         json_t *parameters, unsigned flags) {
    int r = parameters ? connection_call(connection, method, parameters, flags, NS_PER_SECOND)
                       : -ENOMEM;

    return r < 0 ? s3_profd_fail(profd, r == -ETIMEDOUT ? -ENOTCONN : r, "profd takes no call.")
                 : 0;
}

static uint64_t s3_profd_number(const json_t *object, const char *name) {
    return (uint64_t)MAX(json_integer_value(json_object_get(object, name)), (json_int_t)0);
}

typedef struct S3ProfdStream {
    S3Profd *profd;
    Connection *connection;
    bool has_failed;
} S3ProfdStream;

static ssize_t s3_profd_read(void *userdata, void *to, size_t n) {
    S3ProfdStream *stream = userdata;
    uint64_t end_ns = clock_monotonic_ns() + S3_PATIENCE_NS;
    ssize_t got;

    do
        got = atomic_load(stream->profd->stop)
                  ? -ECANCELED
                  : connection_read(stream->connection, to, n, S3_STEP_NS);
    while (got == -ETIMEDOUT && clock_monotonic_ns() < end_ns);
    if (got > 0)
        return got;
    stream->has_failed = true;
    return s3_profd_fail(stream->profd, got == -ECANCELED ? -ECANCELED : -ENOTCONN,
                         "profd ended before it sent all of a recording.");
}

/* Whether a denial is about all recordings. Nothing is given up for that: it ends when the user of
 * the gateway gets his group. */
static int s3_profd_explain_denial(S3Profd *profd) {
    _cleanup_(connection_freep) Connection *connection = NULL;
    Reply reply;
    int r = s3_profd_open(profd, &connection);

    if (r == 0)
        r = s3_profd_call(profd, connection, S3_INTERFACE "ListSessions", json_object(), CALL_MORE);
    if (r == 0)
        r = s3_profd_receive(profd, connection, &reply);
    if (r == -EACCES)
        return s3_profd_fail(
            profd, -ENOTCONN,
            "profd refuses all recordings to the gateway: its user has to be in the "
            "group profd-read.");
    if (r < 0)
        return r;
    return s3_profd_fail_as(profd, SEND_STATUS_LOST, -EACCES,
                            "A recording stays with profd: it holds stacks of user memory, which "
                            "are for administrators only.");
}

int s3_profd_snapshot(S3Profd *profd, const char *name, const char *file, S3Object *ret) {
    _cleanup_(connection_freep) Connection *connection = NULL;
    S3ProfdStream stream = {.profd = profd};
    Reply reply;
    int r = s3_profd_open(profd, &connection);

    if (r == 0)
        r = s3_profd_call(profd, connection, S3_INTERFACE "Read",
                          json_pack("{ss ss*}", "snapshot", name, "file", *file ? file : NULL),
                          CALL_UPGRADE);
    if (r == 0)
        r = s3_profd_receive(profd, connection, &reply);
    if (r < 0)
        return r == -EACCES ? s3_profd_explain_denial(profd) : r;
    stream.connection = connection;
    r = s3_object_read(profd->folder, s3_profd_number(reply.parameters, "bytes"), s3_profd_read,
                       &stream, ret);
    return r < 0 && !stream.has_failed ? s3_profd_fail_to_keep(profd, r) : r;
}

/* How much of the window gaps of all CPUs take, and where a boot cuts it. */
static void s3_profd_take_gaps(const json_t *snapshot, S3Window *window) {
    const json_t *gaps = json_object_get(json_object_get(snapshot, "coverage"), "gaps"), *gap;
    size_t i;

    json_array_foreach(gaps, i, gap) {
        uint64_t since = s3_profd_number(gap, "sinceUsec"),
                 until = s3_profd_number(gap, "untilUsec");
        const char *reason = json_string_value(json_object_get(gap, "reason"));

        if (json_is_integer(json_object_get(gap, "cpu")) || until <= since)
            continue;
        window->missing_ns += (until - since) * NS_PER_US;
        if (reason && strcmp(reason, "deleted") == 0)
            window->deleted_ns += (until - since) * NS_PER_US;
        if (reason && strcmp(reason, "rebooted") == 0)
            window->older_ns = until * NS_PER_US;
    }
}

int s3_profd_window(S3Profd *profd, uint64_t since_ns, uint64_t until_ns, S3Window *ret) {
    _cleanup_(connection_freep) Connection *connection = NULL;
    S3Window window = {.object.fd = -1};
    char name[S3_NAME_MAX];
    const json_t *snapshot;
    Reply reply;
    int r = s3_profd_open(profd, &connection);

    if (r == 0)
        r = s3_profd_call(profd, connection, S3_INTERFACE "Snapshot",
                          json_pack("{ss sI sI ss sb}", "session", profd->session, "sinceUsec",
                                    (json_int_t)(since_ns / NS_PER_US), "untilUsec",
                                    (json_int_t)(until_ns / NS_PER_US), "layout", "file",
                                    "transient", 1),
                          0);
    if (r == 0)
        r = s3_profd_receive(profd, connection, &reply);
    if (r < 0)
        return r == -EACCES ? s3_profd_explain_denial(profd) : r;
    snapshot = json_object_get(reply.parameters, "snapshot");
    (void)snprintf(name, sizeof(name), "%s",
                   json_string_value(json_object_get(snapshot, "name")) ?: "");
    window.samples = s3_profd_number(snapshot, "samples");
    s3_profd_take_gaps(snapshot, &window);
    window.missing_ns = MIN(window.missing_ns, until_ns - since_ns);
    window.deleted_ns = MIN(window.deleted_ns, window.missing_ns);
    /* The snapshot exists as long as this connection. */
    r = s3_profd_snapshot(profd, name, "", &window.object);
    if (r == 0)
        *ret = window;
    /* profd was restarted: the same window is there again. */
    return r == -ENODATA
               ? s3_profd_fail(profd, -ENOTCONN, "profd dropped a recording before it sent it.")
               : r;
}

/* "data" or "data.N": the file becomes part of a key. */
static bool s3_profd_is_file_name(const char *name) {
    size_t n = strlen(name);

    if (strcmp(name, "data") == 0)
        return true;
    return n > 5 && n < S3_FILE_NAME_MAX && strncmp(name, "data.", 5) == 0 &&
           strspn(name + 5, "0123456789") == n - 5;
}

static int s3_profd_take_files(const json_t *object, S3Snapshot *snapshot) {
    const json_t *files = json_object_get(object, "files"), *file;
    size_t i;

    if (!snapshot->is_folder)
        return 0;
    json_array_foreach(files, i, file) {
        const char *name = json_string_value(file);

        if (!name || !s3_profd_is_file_name(name) || i >= S3_FILES_MAX)
            return -EBADMSG;
        (void)snprintf(snapshot->files[i], S3_FILE_NAME_MAX, "%s", name);
        snapshot->n_files = i + 1;
    }
    return snapshot->n_files > 0 ? 0 : -EBADMSG;
}

static int s3_profd_take_snapshot(const json_t *object, S3Snapshot *ret) {
    const char *name = json_string_value(json_object_get(object, "name"));
    const char *layout = json_string_value(json_object_get(object, "layout"));

    *ret = (S3Snapshot){.created_us = s3_profd_number(object, "createdUsec"),
                        .samples = s3_profd_number(object, "samples"),
                        .is_folder = layout && strcmp(layout, "directory") == 0};
    if (!name || strlen(name) >= sizeof(ret->name))
        return -EBADMSG;
    (void)snprintf(ret->name, sizeof(ret->name), "%s", name);
    return s3_profd_take_files(object, ret);
}

int s3_profd_list(S3Profd *profd, int (*each)(void *userdata, const S3Snapshot *snapshot),
                  void *userdata) {
    _cleanup_(connection_freep) Connection *connection = NULL;
    Reply reply = {.continues = true};
    S3Snapshot snapshot;
    int r = s3_profd_open(profd, &connection);

    if (r == 0)
        r = s3_profd_call(profd, connection, S3_INTERFACE "ListSnapshots", json_object(),
                          CALL_MORE);
    while (r == 0 && reply.continues) {
        const json_t *object;

        r = s3_profd_receive(profd, connection, &reply);
        object = r == 0 ? json_object_get(reply.parameters, "snapshot") : NULL;
        if (!object || json_is_null(object))
            continue;
        r = s3_profd_take_snapshot(object, &snapshot);
        if (r < 0)
            return s3_profd_fail(profd, r, "profd lists a snapshot that is none.");
        r = each(userdata, &snapshot);
        if (r < 0)
            return s3_profd_fail_as(profd, SEND_STATUS_LOCAL, r,
                                    "There is no memory for the list of snapshots.");
    }
    return r == -EACCES ? s3_profd_explain_denial(profd) : r;
}
