/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/remote/remote.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "client/remote/remote-error.h"
#include "client/remote/reply.h"
#include "protocol/connection.h"
#include "protocol/value.h"
#include "util/text.h"

/*
 * The connection between a command and the daemon: one connection, one call at a time. Replies are
 * escaped before a command gets them. Every failure becomes one sentence, worded in remote-error.c,
 * so that all commands fail alike.
 */

#define INTERFACE "io.profd.Control."

enum { METHOD_MAX = 64 };

struct Remote {
    const char *path, *command;
    Connection *connection;
    uint64_t timeout_ns;
    char method[METHOD_MAX];
    const char *expected; /* see remote_expect() */
};

Remote *remote_free(Remote *remote) {
    if (!remote)
        return NULL;
    connection_free(remote->connection);
    free(remote);
    return NULL;
}

/* Tries a profd of this user, if the system has none. */
static int remote_open_own(Connection **ret) {
    const char *folder = getenv("XDG_RUNTIME_DIR");
    _cleanup_free_ char *path = NULL;

    if (!folder || folder[0] != '/' || geteuid() == 0)
        return -ENOENT;
    if (asprintf(&path, "%s/profd/io.profd.Control", folder) < 0) {
        path = NULL;
        return -ENOMEM;
    }
    return connection_open(path, ret);
}

int remote_try(const Context *c, Remote **ret) {
    _cleanup_(remote_freep) Remote *remote = calloc(1, sizeof(*remote));
    int r;

    if (!remote)
        return -ENOMEM;
    remote->path = c->socket;
    remote->command = c->command;
    remote->timeout_ns = REMOTE_TIMEOUT_NS;
    r = connection_open(c->socket, &remote->connection);
    if ((r == -ENOENT || r == -ECONNREFUSED) && !c->socket &&
        remote_open_own(&remote->connection) == 0)
        r = 0;
    if (r < 0)
        return r;
    *ret = TAKE_PTR(remote);
    return 0;
}

/* The path for messages. */
static const char *remote_path_of(const char *path) {
    return path ? path : CONNECTION_DEFAULT_PATH;
}

int remote_open(const Context *c, Remote **ret) {
    int r = remote_try(c, ret);

    switch (r) {
    case 0:
        return STATUS_OK;
    case -ENOENT:
    case -ECONNREFUSED:
        return complain(
            STATUS_NOT_RUNNING,
            "profd is not running: nothing listens at '%s'; 'systemctl start profd' starts it.",
            remote_path_of(c->socket));
    case -EACCES:
    case -EPERM:
        return complain(STATUS_NOT_PERMITTED,
                        "Permission denied: you may not connect to profd at '%s'; 'ls -l' shows "
                        "the permissions of the folder and of the socket.",
                        remote_path_of(c->socket));
    case -EAGAIN:
        return complain(STATUS_TIMED_OUT,
                        "profd at '%s' has too many connections that wait, try again.",
                        remote_path_of(c->socket));
    default:
        return complain(STATUS_FAILED, "Failed to connect to profd at '%s': %s.",
                        remote_path_of(c->socket), strerror(-r));
    }
}

json_t *remote_word(const char *word) {
    return value_word(word);
}

void remote_set_timeout(Remote *remote, uint64_t timeout_ns) {
    remote->timeout_ns = timeout_ns;
}

Connection *remote_connection(Remote *remote) {
    return remote->connection;
}

/* Reports that the connection failed, not the call. */
static int remote_lost(const Remote *remote, int r) {
    const char *method = remote->method;

    switch (r) {
    case -ETIMEDOUT:
        return complain(STATUS_TIMED_OUT,
                        "profd did not answer '%s' in time: it is starting, or stuck; 'systemctl "
                        "status profd' and 'journalctl -u profd' show more.",
                        method);
    case -EPIPE:
    case -ECONNRESET:
        return complain(STATUS_NOT_RUNNING,
                        "profd ended the connection before it answered '%s': it stopped, or has "
                        "too many connections; 'journalctl -u profd' shows more.",
                        method);
    case -EBADMSG:
        return complain(STATUS_FAILED,
                        "The program that listens at '%s' does not answer '%s' as profd does: it "
                        "is another service.",
                        remote_path_of(remote->path), method);
    case -EINTR:
        return STATUS_FAILED;
    default:
        return complain(STATUS_FAILED, "Failed to call '%s' of profd: %s.", method, strerror(-r));
    }
}

/* The version of a daemon that does not know the request; must be freed; may be NULL. */
static char *remote_ask_version(Remote *remote) {
    Reply reply;
    int r;

    r = connection_call(remote->connection, "org.varlink.service.GetInfo", json_object(), 0,
                        remote->timeout_ns);
    if (r >= 0)
        r = connection_receive(remote->connection, remote->timeout_ns, &reply);
    if (r < 0 || reply.error)
        return NULL;
    return strdup(reply_string(reply.parameters, "version"));
}

static bool remote_is_unknown(const char *error) {
    return strcmp(error, "org.varlink.service.MethodNotFound") == 0 ||
           strcmp(error, "org.varlink.service.InterfaceNotFound") == 0 ||
           strcmp(error, "org.varlink.service.MethodNotImplemented") == 0 ||
           strcmp(error, "org.varlink.service.InvalidParameter") == 0;
}

/* Reports an error of the daemon. The reply becomes invalid when the daemon is asked for more. */
static int remote_refused(Remote *remote, const Reply *reply) {
    _cleanup_(buffer_done) Buffer sentence = {};
    _cleanup_free_ char *version = NULL, *error = NULL;
    _cleanup_json_ json_t *parameters = reply->parameters ? reply_shown(reply->parameters) : NULL;
    size_t n = strlen(INTERFACE);
    int status;

    error = strdup(strncmp(reply->error, INTERFACE, n) == 0 ? reply->error + n : reply->error);
    if (!error)
        return remote_lost(remote, -ENOMEM);
    if (remote->expected && strcmp(error, remote->expected) == 0)
        return STATUS_NOT_FOUND;
    if (remote_is_unknown(error))
        version = remote_ask_version(remote);
    status = remote_error_describe(&(RemoteFailure){.method = remote->method,
                                                    .command = remote->command,
                                                    .error = error,
                                                    .parameters = parameters,
                                                    .version = version},
                                   &sentence);
    text_putc(&sentence, '\0');
    if (buffer_error(&sentence))
        return remote_lost(remote, -ENOMEM);
    return complain_shown(status, (const char *)sentence.data);
}

static int remote_begin(Remote *remote, const char *method, json_t *parameters, unsigned flags) {
    char name[METHOD_MAX + sizeof(INTERFACE)];
    int r;

    /* Building the parameters failed. Sending a different request would be worse than failing. */
    if (!parameters)
        return remote_lost(remote, -ENOMEM);
    snprintf(remote->method, sizeof(remote->method), "%s", method);
    snprintf(name, sizeof(name), INTERFACE "%s", remote->method);
    r = connection_call(remote->connection, name, parameters, flags, REMOTE_TIMEOUT_NS);
    return r < 0 ? remote_lost(remote, r) : STATUS_OK;
}

/* One reply, owned by the caller; *ret_continues: whether more will follow. */
static int remote_next(Remote *remote, json_t **ret, bool *ret_continues) {
    Reply reply = {};
    int r;

    r = connection_receive(remote->connection, remote->timeout_ns, &reply);
    if (r < 0)
        return remote_lost(remote, r);
    if (reply.error)
        return remote_refused(remote, &reply);
    *ret = reply.parameters ? reply_shown(reply.parameters) : json_object();
    if (!*ret)
        return remote_lost(remote, -ENOMEM);
    *ret_continues = reply.continues;
    return STATUS_OK;
}

static int remote_call_with(Remote *remote, const char *method, json_t *parameters, unsigned flags,
                            json_t **ret) {
    json_t *reply = NULL;
    bool continues;
    int status = remote_begin(remote, method, parameters, flags);

    if (status == STATUS_OK)
        status = remote_next(remote, &reply, &continues);
    if (status == STATUS_OK && ret)
        *ret = reply;
    else
        json_decref(reply);
    return status;
}

int remote_call(Remote *remote, const char *method, json_t *parameters, json_t **ret) {
    return remote_call_with(remote, method, parameters, 0, ret);
}

int remote_ask(const Context *c, const char *method, json_t *parameters, json_t **ret) {
    _cleanup_(remote_freep) Remote *remote = NULL;
    _cleanup_json_ json_t *held = parameters;
    int status = remote_open(c, &remote);

    return status == STATUS_OK ? remote_call(remote, method, TAKE_PTR(held), ret) : status;
}

int remote_for_each(Context *c, char **names, RemoteStep step, void *userdata, json_t **ret_done) {
    _cleanup_(remote_freep) Remote *remote = NULL;
    int status = remote_open(c, &remote), r;

    *ret_done = status == STATUS_OK ? json_array() : NULL;
    if (status != STATUS_OK)
        return status;
    do {
        r = step(c, remote, *names, userdata, ret_done);
        status = status == STATUS_OK ? r : status;
    } while (*names && *++names && r != STATUS_NOT_RUNNING && r != STATUS_TIMED_OUT);
    return status;
}

void remote_expect(Remote *remote, const char *error) {
    remote->expected = error;
}

int remote_upgrade(Remote *remote, const char *method, json_t *parameters, json_t **ret) {
    return remote_call_with(remote, method, parameters, CALL_UPGRADE, ret);
}

ssize_t remote_read(Remote *remote, void *buffer, size_t n) {
    return connection_read(remote->connection, buffer, n, remote->timeout_ns);
}

int remote_take_fd(Remote *remote, unsigned timeout_s) {
    return connection_take_fd(remote->connection, timeout_s);
}

int remote_each(Remote *remote, const char *method, json_t *parameters, RemoteReply on_reply,
                void *userdata) {
    bool continues = true;
    int status = remote_begin(remote, method, parameters, CALL_MORE);

    while (status == STATUS_OK && continues) {
        json_t *reply = NULL;

        status = remote_next(remote, &reply, &continues);
        if (status == STATUS_OK)
            status = on_reply(userdata, reply);
        json_decref(reply);
    }
    return status;
}

typedef struct Gathering {
    const Remote *remote;
    const char *member;
    json_t *array;
} Gathering;

static int remote_gather(void *userdata, const json_t *reply) {
    Gathering *g = userdata;
    json_t *item = json_object_get(reply, g->member);

    /* An empty list is one reply without the member. */
    if (!item || json_is_null(item))
        return STATUS_OK;
    return json_array_append(g->array, item) < 0 ? remote_lost(g->remote, -ENOMEM) : STATUS_OK;
}

int remote_list(Remote *remote, const char *method, json_t *parameters, const char *member,
                json_t **ret) {
    Gathering g = {.remote = remote, .member = member, .array = json_array()};
    int status;

    if (!g.array) {
        json_decref(parameters);
        return remote_lost(remote, -ENOMEM);
    }
    status = remote_each(remote, method, parameters, remote_gather, &g);
    if (status == STATUS_OK)
        *ret = g.array;
    else
        json_decref(g.array);
    return status;
}

int remote_ask_list(const Context *c, const char *method, json_t *parameters, const char *member,
                    json_t **ret) {
    _cleanup_(remote_freep) Remote *remote = NULL;
    _cleanup_json_ json_t *held = parameters;
    int status = remote_open(c, &remote);

    return status == STATUS_OK ? remote_list(remote, method, TAKE_PTR(held), member, ret) : status;
}
