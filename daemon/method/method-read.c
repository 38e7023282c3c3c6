/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "call/errand.h"
#include "method/method-private.h"
#include "store/window/listing.h"

/*
 * Read(): sends a segment or a file of a snapshot. What a client reads is leased until its
 * connection ends, so retention does not count on space that is not free yet. A snapshot counts
 * against its owner's limit as long as it is read, so removing snapshots while they are read frees
 * nothing.
 */

enum { FILE_NAME_MAX = 16 };

/* What a connection reads, or a transient snapshot that exists until it closes. */
struct Reading {
    LIST_ENTRY(Reading) list;
    uint64_t connection;
    StoreLease *lease; /* for a segment */
    char snapshot[SNAPSHOT_NAME_MAX];
    bool reads, keeps; /* for a snapshot: it is being read; it is removed when the connection
                        * closes */
};

static Reading *method_read_reader_of(Daemon *daemon, const char *snapshot) {
    Reading *reading;

    LIST_FOREACH(reading, &daemon->readings, list)
        if (reading->reads && strcmp(reading->snapshot, snapshot) == 0)
            break;
    return reading;
}

bool method_is_read(Daemon *daemon, const char *snapshot) {
    return method_read_reader_of(daemon, snapshot) != NULL;
}

/* A connection that still reads the snapshot becomes responsible for removing it. */
static void method_read_let_go(Daemon *daemon, const char *snapshot) {
    Reading *heir = method_read_reader_of(daemon, snapshot);
    SnapshotInfo info;

    if (heir)
        heir->keeps = true;
    /* Check first: it may have been removed and its name reused. */
    else if (snapshot_find(daemon->snapshots, snapshot, &info) == 0 && info.transient)
        snapshot_doom(daemon->snapshots, snapshot);
}

/* The reading must not be in the list. */
static void method_read_reading_free(Daemon *daemon, Reading *reading) {
    store_lease_free(reading->lease);
    if (reading->keeps)
        method_read_let_go(daemon, reading->snapshot);
    free(reading);
}

void method_forget_connection(Daemon *daemon, uint64_t connection) {
    for (Reading *reading = LIST_FIRST(&daemon->readings), *next; reading; reading = next) {
        next = LIST_NEXT(reading, list);
        if (reading->connection != connection)
            continue;
        LIST_REMOVE(reading, list);
        method_read_reading_free(daemon, reading);
    }
}

void method_forget_connections(Daemon *daemon) {
    for (Reading *reading; (reading = LIST_FIRST(&daemon->readings));) {
        LIST_REMOVE(reading, list);
        method_read_reading_free(daemon, reading);
    }
}

static void method_read_add_reading(Daemon *daemon, Reading *reading) {
    LIST_INSERT_HEAD(&daemon->readings, reading, list);
}

int method_hold_snapshot(Daemon *daemon, const Call *call, const char *name) {
    Reading *reading = calloc(1, sizeof(*reading));

    if (!reading)
        return -ENOMEM;
    *reading = (Reading){.connection = call_connection(call), .keeps = true};
    snprintf(reading->snapshot, sizeof(reading->snapshot), "%s", name);
    method_read_add_reading(daemon, reading);
    return 0;
}

/* A Read() call that waits until its file is opened. */
typedef struct Opening {
    Daemon *daemon;
    bool of_snapshot;
    SnapshotInfo info;
    char session[CONFIG_NAME_MAX], segment[SEGMENT_NAME_MAX], file[FILE_NAME_MAX];
    StoreLease *lease;
    bool sensitive;
    int fd, error;
    uint64_t bytes;
} Opening;

static void method_read_open_file(void *userdata) {
    Opening *o = userdata;

    if (o->of_snapshot)
        o->error = snapshot_open_file(o->daemon->snapshots, &o->info, o->file, &o->fd, &o->bytes);
    else
        o->error = store_open_segment(o->daemon->store, o->session, o->segment, o->file, &o->fd,
                                      &o->bytes, &o->sensitive, &o->lease);
}

static void method_read_opening_free(void *userdata) {
    Opening *o = userdata;

    store_lease_free(o->lease);
    housekeeper_close(o->daemon->housekeeper, &o->fd);
    free(o);
}

static int method_read_fail_opening(Call *call, const Opening *o) {
    if (o->error != -ENOENT)
        return call_fail_reason(call, o->error, NULL);
    if (o->of_snapshot)
        return method_fail_no_snapshot(o->daemon, call, o->info.name);
    return call_fail(call, "NoSuchSegment",
                     json_pack("{s:o, s:o}", "session", answer_echo(o->session), "segment",
                               answer_echo(o->segment)));
}

/* The lease is kept only if the transfer begins: a client may be refused any number of times. */
static void method_read_answer_opening(void *userdata, Call *call) {
    Opening *o = userdata;
    Daemon *daemon = o->daemon;
    Reading *reading;

    if (o->error < 0) {
        (void)method_read_fail_opening(call, o);
        return;
    }
    if (o->sensitive && call_peer(call)->right < RIGHT_ADMIN) {
        (void)call_fail_permission(call);
        return;
    }
    reading = calloc(1, sizeof(*reading));
    if (!reading) {
        (void)call_fail_reason(call, -ENOMEM, NULL);
        return;
    }
    *reading = (Reading){
        .connection = call_connection(call), .lease = TAKE_PTR(o->lease), .reads = o->of_snapshot};
    if (o->of_snapshot)
        memcpy(reading->snapshot, o->info.name, sizeof(reading->snapshot));
    if (errand_reply_file(call, o->fd, o->bytes) > 0)
        method_read_add_reading(daemon, reading);
    else
        method_read_reading_free(daemon, reading);
}

/* Takes ownership of `o`. */
static int method_read_open_later(Daemon *daemon, Call *call, Opening *o) {
    o->daemon = daemon;
    o->fd = -1;
    return errand_run(daemon->waits, daemon->housekeeper, call,
                      &(ErrandOptions){.work = method_read_open_file,
                                       .answer = method_read_answer_opening,
                                       .release = method_read_opening_free,
                                       .userdata = o});
}

static bool method_read_fits(const char *text, char *ret, size_t size) {
    return (size_t)snprintf(ret, size, "%s", text) < size;
}

static int method_read_segment(Daemon *daemon, Call *call, const char *session, const char *segment,
                               const char *file) {
    Opening *o = calloc(1, sizeof(*o));

    if (!o)
        return -ENOMEM;
    if (method_read_fits(session, o->session, sizeof(o->session)) &&
        method_read_fits(segment, o->segment, sizeof(o->segment)) &&
        method_read_fits(file, o->file, sizeof(o->file)))
        return method_read_open_later(daemon, call, o);
    free(o);
    return call_fail(
        call, "NoSuchSegment",
        json_pack("{s:o, s:o}", "session", answer_echo(session), "segment", answer_echo(segment)));
}

static int method_read_snapshot(Daemon *daemon, Call *call, const char *name, const char *file) {
    Opening *o = calloc(1, sizeof(*o));
    int r = o ? method_find_snapshot(daemon, call, name, &o->info) : -ENOMEM;

    if (r == 0 && !method_read_fits(file, o->file, sizeof(o->file)))
        r = -ENOENT;
    if (r == 0 && !(o->info.sensitive && call_peer(call)->right < RIGHT_ADMIN)) {
        o->of_snapshot = true;
        return method_read_open_later(daemon, call, o);
    }
    free(o);
    if (r == 0)
        return call_fail_permission(call);
    return r == -ENOENT ? method_fail_no_snapshot(daemon, call, name) : r;
}

int method_read(void *userdata, Call *call) {
    const char *snapshot = NULL, *session = NULL, *segment = NULL, *binary = NULL, *file = "";

    (void)ask_text(call, "snapshot", &snapshot);
    (void)ask_text(call, "session", &session);
    (void)ask_text(call, "segment", &segment);
    (void)ask_text(call, "file", &file);
    (void)ask_text(call, "binary", &binary);
    if (binary)
        return snapshot || session || segment
                   ? call_fail_parameter(call, "binary", "it excludes the others")
                   : method_read_binary(userdata, call, binary);
    if (snapshot)
        return session || segment ? call_fail_parameter(call, session ? "session" : "segment",
                                                        "it excludes 'snapshot'")
                                  : method_read_snapshot(userdata, call, snapshot, file);
    if (!session || !segment)
        return call_fail_parameter(call, session ? "segment" : "snapshot", "it is missing");
    return method_read_segment(userdata, call, session, segment, file);
}
