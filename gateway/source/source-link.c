/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "source/source-link.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "util/clock.h"
#include "util/text.h"

/*
 * Connects to profd and makes sentences of errors. A copy of the descriptor stays here, so that
 * another thread can shut the socket down and wake up the thread that waits for it, even if the
 * original is closed meanwhile.
 */

#define LINK_TIMEOUT_NS (10 * NS_PER_SECOND)

void source_link_init(SourceLink *link, const char *socket) {
    *link = (SourceLink){.socket = socket, .fd = -1};
    (void)pthread_mutex_init(&link->lock, NULL);
}

void source_link_done(SourceLink *link) {
    if (link->fd >= 0)
        (void)close(link->fd);
    (void)pthread_mutex_destroy(&link->lock);
}

void source_link_break(SourceLink *link) {
    (void)pthread_mutex_lock(&link->lock);
    link->is_broken = true;
    if (link->fd >= 0)
        (void)shutdown(link->fd, SHUT_RDWR);
    (void)pthread_mutex_unlock(&link->lock);
}

void source_link_mend(SourceLink *link) {
    (void)pthread_mutex_lock(&link->lock);
    link->is_broken = false;
    (void)pthread_mutex_unlock(&link->lock);
}

/* Puts a copy of the new descriptor in the place of the last one. */
static int source_link_note(SourceLink *link, const Connection *connection) {
    int copy = fcntl(connection_fd(connection), F_DUPFD_CLOEXEC, 0), r = copy < 0 ? -errno : 0;

    if (r < 0)
        return r;
    (void)pthread_mutex_lock(&link->lock);
    if (link->fd >= 0)
        (void)close(link->fd);
    link->fd = copy;
    if (link->is_broken)
        r = -ECANCELED;
    (void)pthread_mutex_unlock(&link->lock);
    return r;
}

int source_link_open(SourceLink *link, Connection **ret) {
    _cleanup_(connection_freep) Connection *connection = NULL;
    int r = connection_open(link->socket, &connection);

    if (r == 0)
        r = source_link_note(link, connection);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(connection);
    return 0;
}

static bool source_link_is_cancelled(SourceLink *link) {
    bool is_broken;

    (void)pthread_mutex_lock(&link->lock);
    is_broken = link->is_broken;
    (void)pthread_mutex_unlock(&link->lock);
    return is_broken;
}

static const char *source_link_path(const SourceLink *link) {
    return link->socket ? link->socket : CONNECTION_DEFAULT_PATH;
}

/* Words why there is no connection, and returns what the callers distinguish. */
static int source_link_failed(const SourceLink *link, int r, char ret_problem[SOURCE_PROBLEM_MAX]) {
    const char *path = source_link_path(link);

    switch (r) {
    case -ENOMEM:
    case -ECANCELED:
    case -ESTALE:
        snprintf(ret_problem, SOURCE_PROBLEM_MAX, "Failed to follow profd: %s.", strerror(-r));
        return r;
    case -EACCES:
    case -EPERM:
        snprintf(ret_problem, SOURCE_PROBLEM_MAX,
                 "The gateway may not connect to profd at '%s': its user has to be a member of "
                 "profd-read.",
                 path);
        return -EACCES;
    case -ENOENT:
    case -ECONNREFUSED:
        snprintf(ret_problem, SOURCE_PROBLEM_MAX, "profd does not run: nothing listens at '%s'.",
                 path);
        return -ENOTCONN;
    case -ETIMEDOUT:
        snprintf(ret_problem, SOURCE_PROBLEM_MAX,
                 "profd at '%s' does not answer: it is starting, or stuck.", path);
        return -ENOTCONN;
    case -EBADMSG:
    case -EPROTO:
        snprintf(ret_problem, SOURCE_PROBLEM_MAX,
                 "The program that listens at '%s' does not answer as profd does.", path);
        return -ENOTCONN;
    default:
        snprintf(ret_problem, SOURCE_PROBLEM_MAX, "The connection to profd at '%s' failed: %s.",
                 path, strerror(-r));
        return -ENOTCONN;
    }
}

/* The name of an error comes from the process that listens at the socket. */
static int source_link_refused(const char *error, char ret_problem[SOURCE_PROBLEM_MAX]) {
    _cleanup_(buffer_done) Buffer shown = {};
    bool is_denied = strcmp(error, "PermissionDenied") == 0 ||
                     strcmp(error, "org.varlink.service.PermissionDenied") == 0;

    if (strcmp(error, "WindowUnavailable") == 0) {
        snprintf(ret_problem, SOURCE_PROBLEM_MAX, "profd has no recording of this time.");
        return -ENODATA;
    }
    text_escape_str(&shown, error);
    text_putc(&shown, '\0');
    if (strcmp(error, "NoSuchSession") == 0)
        snprintf(ret_problem, SOURCE_PROBLEM_MAX,
                 "profd has no session of this name; 'profctl list' shows the sessions.");
    else if (is_denied)
        snprintf(ret_problem, SOURCE_PROBLEM_MAX,
                 "profd refuses to be read: the user of the gateway has to be a member of "
                 "profd-read, and a sensitive session is for administrators alone.");
    else
        snprintf(ret_problem, SOURCE_PROBLEM_MAX, "profd refuses to be followed: %s.",
                 buffer_error(&shown) ? "no memory" : (const char *)shown.data);
    return is_denied ? -EACCES : -EREMOTEIO;
}

int source_link_follow(SourceLink *link, Follow *follow, char ret_problem[SOURCE_PROBLEM_MAX]) {
    _cleanup_(connection_freep) Connection *connection = NULL;
    char error[FOLLOW_ERROR_MAX] = "";
    int r = source_link_open(link, &connection);

    if (r == 0)
        r = follow_connect(follow, connection, LINK_TIMEOUT_NS, error);
    if (r == 0)
        return 0;
    if (source_link_is_cancelled(link))
        r = -ECANCELED;
    return r == -EREMOTEIO ? source_link_refused(error, ret_problem)
                           : source_link_failed(link, r, ret_problem);
}

bool source_link_may_follow(SourceLink *link, const char *session) {
    _cleanup_(connection_freep) Connection *connection = NULL;
    _cleanup_(follow_freep) Follow *follow = NULL;
    Reply reply;
    int r = follow_new(&(FollowOptions){.session = session}, &follow);

    if (r == 0)
        r = source_link_open(link, &connection);
    if (r == 0)
        r = connection_call(connection, "io.profd.Control.Follow", follow_parameters(follow),
                            CALL_UPGRADE, LINK_TIMEOUT_NS);
    if (r >= 0)
        r = connection_receive(connection, LINK_TIMEOUT_NS, &reply);
    return r >= 0 && !reply.error;
}

int source_link_ask_binaries(SourceLink *link, char **ret) {
    _cleanup_(connection_freep) Connection *connection = NULL;
    const char *path;
    Reply reply;
    int r = source_link_open(link, &connection);

    if (r == 0)
        r = connection_call(connection, "io.profd.Control.GetStatus", NULL, 0, LINK_TIMEOUT_NS);
    if (r >= 0)
        r = connection_receive(connection, LINK_TIMEOUT_NS, &reply);
    if (r < 0)
        return r;
    *ret = NULL;
    path = reply.error ? NULL
                       : json_string_value(
                             json_object_get(json_object_get(reply.parameters, "store"), "path"));
    if (path && path[0] == '/' && asprintf(ret, "%s/binaries", path) < 0) {
        *ret = NULL;
        return -ENOMEM;
    }
    return 0;
}
