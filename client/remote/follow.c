/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/remote/follow.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "client/remote/remote.h"
#include "client/remote/reply.h"
#include "perfdata/order/order.h"
#include "protocol/connection.h"
#include "protocol/value.h"
#include "util/clock.h"

/*
 * The reading end of Follow(): an upgraded connection whose descriptor a reader takes over. Records
 * come through a PdOrder, marks directly. A stream that ended early is continued over a new
 * connection at its last watermark; samples that were returned already are left out, which is exact
 * since all of them come in order of time.
 */

enum { SILENCE_S = 60, BOOT_ID_MAX = 64 };

/* The wall clock is adjusted while a segment is written, whose marks know one difference only. */
#define CLOCKS_DIFFER_US (5 * US_PER_SECOND)

struct Follow {
    char *session; /* NULL: "default" */
    uint64_t until_us;
    int fd; /* of the reader, to interrupt it */
    PdReader *reader;
    PdOrder *order;
    char boot_id[BOOT_ID_MAX];
    uint64_t watermark_ns, real_offset;
    uint64_t sample_ns;   /* of the last sample that was returned */
    uint64_t returned_ns; /* samples up to here were returned by an earlier connection; 0: none */
    bool marked;
};

Follow *follow_free(Follow *follow) {
    if (!follow)
        return NULL;
    pd_order_free(follow->order);
    pd_reader_free(follow->reader);
    free(follow->session);
    free(follow);
    return NULL;
}

static json_t *follow_parameters(const Follow *follow, uint64_t since_us) {
    json_t *parameters = json_object();
    char position[BOOT_ID_MAX + 32];

    if (follow->session)
        value_set(&parameters, "session", remote_word(follow->session));
    if (follow->marked) {
        snprintf(position, sizeof(position), "%" PRIx64 ":%s", follow->watermark_ns,
                 follow->boot_id);
        value_set(&parameters, "position", remote_word(position));
    } else if (since_us > 0) {
        value_set(&parameters, "sinceUsec", json_integer((json_int_t)since_us));
    }
    if (follow->until_us > 0)
        value_set(&parameters, "untilUsec", json_integer((json_int_t)follow->until_us));
    return parameters;
}

/* Makes a reader of the connection; it waits for the first bytes of the stream. */
static int follow_begin(Follow *follow, Remote *remote) {
    _cleanup_(pd_reader_freep) PdReader *reader = NULL;
    _cleanup_(pd_order_freep) PdOrder *order = NULL;
    _cleanup_close_ int fd = remote_take_fd(remote, SILENCE_S);
    int used = fd, r = fd < 0 ? fd : pd_reader_open_fd(fd, NULL, &reader, NULL);

    if (r < 0)
        return r == -EAGAIN ? -ETIMEDOUT : r;
    (void)TAKE_FD(fd);
    r = pd_order_new(reader, NULL, &order);
    if (r < 0)
        return r;
    pd_order_free(follow->order);
    pd_reader_free(follow->reader);
    follow->order = TAKE_PTR(order);
    follow->reader = TAKE_PTR(reader);
    follow->fd = used;
    return 0;
}

int follow_open(const Context *c, const FollowRequest *request, Follow **ret) {
    _cleanup_(follow_freep) Follow *follow = calloc(1, sizeof(*follow));
    _cleanup_(remote_freep) Remote *remote = NULL;
    _cleanup_json_ json_t *reply = NULL;
    int r, status;

    if (follow && request->session)
        follow->session = strdup(request->session);
    if (!follow || (request->session && !follow->session))
        return complain(STATUS_FAILED, "Failed to ask profd: %s.", strerror(ENOMEM));
    follow->until_us = request->until_us;
    status = remote_open(c, &remote);
    if (status == STATUS_OK && request->may_be_absent)
        remote_expect(remote, "WindowUnavailable");
    if (status == STATUS_OK)
        status =
            remote_upgrade(remote, "Follow", follow_parameters(follow, request->since_us), &reply);
    if (status != STATUS_OK)
        return status;
    snprintf(follow->boot_id, sizeof(follow->boot_id), "%s", reply_string(reply, "bootId"));
    r = follow_begin(follow, remote);
    if (r < 0)
        return complain(r == -ETIMEDOUT ? STATUS_TIMED_OUT : STATUS_FAILED,
                        "Failed to read what profd records: %s.", strerror(-r));
    *ret = TAKE_PTR(follow);
    return STATUS_OK;
}

int follow_resume(const Context *c, Follow *follow) {
    _cleanup_(remote_freep) Remote *remote = NULL;
    Connection *connection;
    Reply reply;
    int r;

    if (!follow->marked)
        return STATUS_FAILED;
    r = remote_try(c, &remote);
    if (r < 0)
        return r == -EACCES || r == -EPERM ? STATUS_FAILED : STATUS_NOT_RUNNING;
    connection = remote_connection(remote);
    r = connection_call(connection, "io.profd.Control.Follow", follow_parameters(follow, 0),
                        CALL_UPGRADE, REMOTE_TIMEOUT_NS);
    if (r >= 0)
        r = connection_receive(connection, REMOTE_TIMEOUT_NS, &reply);
    if (r < 0)
        return STATUS_NOT_RUNNING;
    if (reply.error || strcmp(reply_string(reply.parameters, "bootId"), follow->boot_id) != 0)
        return STATUS_FAILED;
    r = follow_begin(follow, remote);
    if (r < 0)
        return STATUS_NOT_RUNNING;
    follow->returned_ns = follow->sample_ns;
    return STATUS_OK;
}

/* Whether a record is a mark, which is noted. */
static bool follow_take_mark(Follow *follow, FollowItem *item) {
    if (!pd_stream_mark_read(&item->record, &item->mark))
        return false;
    item->what = item->mark.is_gap ? FOLLOW_GAP : FOLLOW_WATERMARK;
    if (item->mark.is_gap)
        return true;
    follow->marked = true;
    follow->watermark_ns = MAX(follow->watermark_ns, item->mark.time);
    follow->real_offset = item->mark.real_offset;
    return true;
}

int follow_next(Follow *follow, FollowItem *ret) {
    int r;

    while ((r = pd_order_next(follow->order, &ret->record, &ret->stamp)) > 0) {
        bool is_sample = ret->record.type == PD_RECORD_SAMPLE && ret->stamp.has_time;

        ret->what = FOLLOW_RECORD;
        if (is_sample && ret->stamp.time <= follow->returned_ns)
            continue;
        if (is_sample)
            follow->sample_ns = MAX(follow->sample_ns, ret->stamp.time);
        else if (follow_take_mark(follow, ret))
            return 0;
        return 0;
    }
    ret->what = FOLLOW_END;
    return r == -EAGAIN ? -ETIMEDOUT : r == -ECONNRESET ? 0 : r;
}

void follow_interrupt(const Follow *follow) {
    if (follow)
        (void)shutdown(follow->fd, SHUT_RDWR);
}

PdReader *follow_reader(Follow *follow) {
    return follow->reader;
}

uint64_t follow_sent_ns(const Follow *follow) {
    return follow->marked ? follow->watermark_ns + follow->real_offset : 0;
}

bool follow_is_whole(const Follow *follow) {
    return !pd_reader_damage(follow->reader) && follow->until_us > 0 && follow->marked &&
           follow_sent_ns(follow) / NS_PER_US + CLOCKS_DIFFER_US >= follow->until_us;
}
