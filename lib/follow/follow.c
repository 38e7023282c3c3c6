/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "follow/follow.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "perfdata/order/order.h"
#include "protocol/value.h"
#include "util/clock.h"

/*
 * The reading end of Follow(): an upgraded connection whose descriptor a reader takes over. Records
 * come through a PdOrder, marks directly; a watermark releases the records before it. A stream that
 * ended early is continued over a new connection at its last watermark; samples that were returned
 * already are left out, which is exact since all of them come in order of time.
 */

enum { BOOT_ID_MAX = 64 };

#define INTERFACE "io.profd.Control."

/* The wall clock is adjusted while a segment is written, whose marks know one difference only. */
#define CLOCKS_DIFFER_US (5 * US_PER_SECOND)

struct Follow {
    char *session; /* NULL: "default" */
    uint64_t since_us, until_us, every_us;
    int fd; /* of the reader, to interrupt it */
    PdReader *reader;
    PdOrder *order;
    char boot_id[BOOT_ID_MAX];
    uint64_t watermark_ns, real_offset;
    uint64_t sample_ns;   /* of the last sample that was returned */
    uint64_t returned_ns; /* samples up to here were returned by an earlier connection; 0: none */
    bool marked;
    PdGapReason lack;
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

int follow_new(const FollowOptions *options, Follow **ret) {
    _cleanup_(follow_freep) Follow *follow = calloc(1, sizeof(*follow));

    if (!follow)
        return -ENOMEM;
    if (options->session) {
        follow->session = strdup(options->session);
        if (!follow->session)
            return -ENOMEM;
    }
    follow->since_us = options->since_us;
    follow->until_us = options->until_us;
    follow->every_us = options->every_us;
    follow->fd = -1;
    follow->lack = PD_GAP_UNKNOWN;
    *ret = TAKE_PTR(follow);
    return 0;
}

json_t *follow_parameters(const Follow *follow) {
    json_t *parameters = json_object();
    char position[BOOT_ID_MAX + 32];

    if (follow->session)
        value_set(&parameters, "session", value_word(follow->session));
    if (follow->marked) {
        snprintf(position, sizeof(position), "%" PRIx64 ":%s", follow->watermark_ns,
                 follow->boot_id);
        value_set(&parameters, "position", value_word(position));
    } else if (follow->since_us > 0) {
        value_set(&parameters, "sinceUsec", json_integer((json_int_t)follow->since_us));
    }
    if (follow->until_us > 0)
        value_set(&parameters, "untilUsec", json_integer((json_int_t)follow->until_us));
    if (follow->every_us > 0)
        value_set(&parameters, "everyUsec", json_integer((json_int_t)follow->every_us));
    return parameters;
}

int follow_begin(Follow *follow, int fd, const char *boot_id) {
    _cleanup_(pd_reader_freep) PdReader *reader = NULL;
    _cleanup_(pd_order_freep) PdOrder *order = NULL;
    _cleanup_close_ int own = fd;
    int r = pd_reader_open_fd(fd, NULL, &reader, NULL);

    if (r < 0)
        return r == -EAGAIN ? -ETIMEDOUT : r;
    (void)TAKE_FD(own);
    r = pd_order_new(reader, NULL, &order);
    if (r < 0)
        return r;
    snprintf(follow->boot_id, sizeof(follow->boot_id), "%s", boot_id);
    pd_order_free(follow->order);
    pd_reader_free(follow->reader);
    follow->order = TAKE_PTR(order);
    follow->reader = TAKE_PTR(reader);
    follow->fd = fd;
    follow->returned_ns = follow->sample_ns;
    return 0;
}

static const char *follow_boot_id(const Reply *reply) {
    const char *boot_id = json_string_value(json_object_get(reply->parameters, "bootId"));

    return boot_id ? boot_id : "";
}

static void follow_name_error(const char *error, char ret[FOLLOW_ERROR_MAX]) {
    size_t n = strlen(INTERFACE);

    snprintf(ret, FOLLOW_ERROR_MAX, "%s", strncmp(error, INTERFACE, n) == 0 ? error + n : error);
}

static PdGapReason follow_reason(const Reply *reply) {
    const char *name = json_string_value(json_object_get(reply->parameters, "reason"));
    PdGapReason reason = PD_GAP_UNKNOWN;

    if (name)
        (void)pd_gap_reason_from_name(name, &reason);
    return reason;
}

PdGapReason follow_lack(const Follow *follow) {
    return follow->lack;
}

int follow_connect(Follow *follow, Connection *connection, uint64_t timeout_ns,
                   char ret_error[FOLLOW_ERROR_MAX]) {
    char boot_id[BOOT_ID_MAX];
    json_t *parameters;
    Reply reply;
    int r;

    ret_error[0] = '\0';
    if (follow->reader && !follow->marked)
        return -ESTALE;
    parameters = follow_parameters(follow);
    if (!parameters)
        return -ENOMEM;
    r = connection_call(connection, INTERFACE "Follow", parameters, CALL_UPGRADE, timeout_ns);
    if (r >= 0)
        r = connection_receive(connection, timeout_ns, &reply);
    if (r < 0)
        return r;
    if (reply.error) {
        follow_name_error(reply.error, ret_error);
        follow->lack = follow_reason(&reply);
        return -EREMOTEIO;
    }
    snprintf(boot_id, sizeof(boot_id), "%s", follow_boot_id(&reply));
    if (follow->reader && strcmp(boot_id, follow->boot_id) != 0)
        return -ESTALE;
    r = connection_take_fd(connection, FOLLOW_SILENCE_S);
    return r < 0 ? r : follow_begin(follow, r, boot_id);
}

/* Whether a sample comes again, or came before. Samples behind the last watermark at the end of a
 * stream come again when it is continued; until then others between them may be missing. */
static bool follow_leaves_out(const Follow *follow, uint64_t time) {
    return time <= follow->returned_ns ||
           (follow->until_us == 0 && follow->marked && pd_order_at_end(follow->order));
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
    pd_order_release(follow->order, item->mark.time);
    return true;
}

int follow_next(Follow *follow, FollowItem *ret) {
    int r;

    while ((r = pd_order_next(follow->order, &ret->record, &ret->stamp)) > 0) {
        bool is_sample = ret->record.type == PD_RECORD_SAMPLE && ret->stamp.has_time;

        ret->what = FOLLOW_RECORD;
        if (is_sample && follow_leaves_out(follow, ret->stamp.time))
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
    if (follow && follow->fd >= 0)
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
