/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "protocol/connection.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "protocol/interface.h"
#include "protocol/message.h"
#include "util/clock.h"

/*
 * Received bytes are gathered until a NUL ends a message; what follows it is the next message, or
 * the data of an upgraded connection. The socket is non-blocking; poll() does the waiting.
 */

#define CONNECT_NS (5 * NS_PER_SECOND)

enum {
    READ_BYTES = 1 << 16,
    /* Replies may be large, but not larger than this. */
    REPLY_BYTES_MAX = 64 << 20,
};

struct Connection {
    int fd;
    Interface *interface;
    char *member;  /* in the interface, of the last call; NULL: a method of another interface */
    bool upgrades; /* what follows the reply to the last call is no message */
    Buffer in;
    size_t taken;   /* bytes of `in` that belong to returned messages */
    size_t scanned; /* bytes of `in` that are known to hold no NUL after `taken` */
    json_t *reply;
    json_t *nothing; /* the parameters of a reply that has none */
};

Connection *connection_free(Connection *connection) {
    if (!connection)
        return NULL;
    closep(&connection->fd);
    interface_free(connection->interface);
    free(connection->member);
    buffer_done(&connection->in);
    json_decref(connection->reply);
    json_decref(connection->nothing);
    free(connection);
    return NULL;
}

/* A path that is too long for an address is used relative to its folder. */
static int connection_address_of(const char *path, struct sockaddr_un *ret, int *ret_folder) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const char *name = strrchr(path, '/');
    _cleanup_free_ char *folder = NULL;
    _cleanup_close_ int fd = -1;

    if (strlen(path) >= sizeof(address.sun_path)) {
        if (!name || name == path)
            return -ENAMETOOLONG;
        folder = strndup(path, (size_t)(name - path));
        fd = folder ? open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
        if (fd < 0)
            return folder ? -errno : -ENOMEM;
        if ((size_t)snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d%s", fd,
                             name) >= sizeof(address.sun_path))
            return -ENAMETOOLONG;
    } else {
        strcpy(address.sun_path, path);
    }
    *ret = address;
    *ret_folder = TAKE_FD(fd);
    return 0;
}

/* When many clients connect at once, the queue may be full for a moment, and there is no
 * notification when it has room. */
static int connection_connect_patiently(int fd, const struct sockaddr_un *address) {
    uint64_t end_ns = clock_monotonic_ns() + CONNECT_NS;

    while (connect(fd, (const struct sockaddr *)address, sizeof(*address)) < 0) {
        if (errno != EAGAIN || clock_monotonic_ns() > end_ns)
            return -errno;
        (void)poll(NULL, 0, 10);
    }
    return 0;
}

static int connection_open_socket(const char *path, int *ret) {
    _cleanup_close_ int fd = -1, folder = -1;
    struct sockaddr_un address;
    int r = connection_address_of(path, &address, &folder);

    if (r < 0)
        return r;
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    r = connection_connect_patiently(fd, &address);
    if (r < 0)
        return r;
    *ret = TAKE_FD(fd);
    return 0;
}

int connection_open(const char *path, Connection **ret) {
    _cleanup_(connection_freep) Connection *connection = calloc(1, sizeof(*connection));
    int r;

    if (!connection)
        return -ENOMEM;
    connection->fd = -1;
    connection->nothing = json_object();
    if (!connection->nothing)
        return -ENOMEM;
    r = interface_new(interface_text_control, &connection->interface, NULL);
    if (r == 0)
        r = connection_open_socket(path ? path : CONNECTION_DEFAULT_PATH, &connection->fd);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(connection);
    return 0;
}

static uint64_t connection_end_of(uint64_t timeout_ns) {
    uint64_t end_ns;

    return __builtin_add_overflow(clock_monotonic_ns(), timeout_ns, &end_ns) ? UINT64_MAX : end_ns;
}

static int connection_wait_for(const Connection *connection, short events, uint64_t end_ns) {
    struct pollfd fd = {.fd = connection->fd, .events = events};
    uint64_t now = clock_monotonic_ns(), left_ns = end_ns > now ? end_ns - now : 0;
    struct timespec timeout = clock_timespec(left_ns);
    int n = ppoll(&fd, 1, end_ns == UINT64_MAX ? NULL : &timeout, NULL);

    if (n < 0)
        return -errno;
    return n == 0 ? -ETIMEDOUT : 0;
}

static int connection_send_all(const Connection *connection, Bytes bytes, uint64_t end_ns) {
    while (bytes.size > 0) {
        ssize_t n = send(connection->fd, bytes.data, bytes.size, MSG_NOSIGNAL);

        if (n < 0 && errno != EAGAIN)
            return errno == ECONNRESET ? -EPIPE : -errno;
        if (n < 0) {
            int r = connection_wait_for(connection, POLLOUT, end_ns);

            if (r < 0)
                return r;
            continue;
        }
        bytes.data += n;
        bytes.size -= (size_t)n;
    }
    return 0;
}

/* Replies of another interface are not checked. */
static int connection_note_member(Connection *connection, const char *method) {
    const char *name = interface_name(connection->interface);
    size_t n = strlen(name);
    char *member = NULL;

    if (strncmp(method, name, n) == 0 && method[n] == '.') {
        member = strdup(method + n + 1);
        if (!member)
            return -ENOMEM;
    }
    free(connection->member);
    connection->member = member;
    return 0;
}

static json_t *connection_make_call(const char *method, json_t *parameters, unsigned flags) {
    /* clang-format off */
    static const struct { unsigned flag; const char *name; } rows[] = {
        { CALL_MORE,    "more"    },
        { CALL_ONEWAY,  "oneway"  },
        { CALL_UPGRADE, "upgrade" },
    };
    /* clang-format on */
    _cleanup_json_ json_t *call = json_pack("{s:s}", "method", method);

    if (!call || json_object_set(call, "parameters", parameters) < 0)
        return NULL;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        if (flags & rows[i].flag && json_object_set_new(call, rows[i].name, json_true()) < 0)
            return NULL;
    return TAKE_PTR(call);
}

int connection_call(Connection *connection, const char *method, json_t *parameters, unsigned flags,
                    uint64_t timeout_ns) {
    _cleanup_json_ json_t *taken = parameters, *call = connection_make_call(method, taken, flags);
    _cleanup_(buffer_done) Buffer out = {};
    int r = call ? connection_note_member(connection, method) : -ENOMEM;

    connection->upgrades = flags & CALL_UPGRADE;
    if (r == 0)
        r = message_append(&out, call);
    if (r == 0 && out.size - 1 > MESSAGE_BYTES_MAX)
        r = -EMSGSIZE;
    /* A daemon that refuses a connection sends its reason and closes before it gets a call. */
    if (r == 0)
        r = connection_send_all(connection, buffer_bytes(&out), connection_end_of(timeout_ns));
    return r == -EPIPE ? 0 : r;
}

/* 1: a message, which ends with a NUL in the buffer; 0: it is not complete yet. */
static int connection_take_message(Connection *connection, Bytes *ret) {
    Buffer *in = &connection->in;
    const uint8_t *begin, *nul;

    if (in->size == connection->scanned)
        return in->size - connection->taken > REPLY_BYTES_MAX ? -EBADMSG : 0;
    nul = memchr(in->data + connection->scanned, 0, in->size - connection->scanned);
    connection->scanned = nul ? (size_t)(nul + 1 - in->data) : in->size;
    if (!nul)
        return in->size - connection->taken > REPLY_BYTES_MAX ? -EBADMSG : 0;
    begin = in->data + connection->taken;
    *ret = (Bytes){.data = begin, .size = (size_t)(nul - begin)};
    connection->taken = connection->scanned;
    return 1;
}

/* Receives bytes. What follows the reply to an upgraded call stays in the socket, which may be
 * handed over. */
static ssize_t connection_receive_some(const Connection *connection, uint8_t *to) {
    const uint8_t *nul;
    ssize_t n;

    if (!connection->upgrades)
        return recv(connection->fd, to, READ_BYTES, 0);
    n = recv(connection->fd, to, READ_BYTES, MSG_PEEK);
    if (n <= 0)
        return n;
    nul = memchr(to, 0, (size_t)n);
    return recv(connection->fd, to, nul ? (size_t)(nul + 1 - to) : (size_t)n, 0);
}

/* Reads more bytes; -EPIPE at their end. */
static int connection_fill(Connection *connection) {
    Buffer *in = &connection->in;
    ssize_t n;

    if (connection->taken > 0) {
        memmove(in->data, in->data + connection->taken, in->size - connection->taken);
        in->size -= connection->taken;
        connection->scanned -= connection->taken;
        connection->taken = 0;
    }
    if (!buffer_reserve(in, READ_BYTES))
        return buffer_error(in);
    n = connection_receive_some(connection, in->data + in->size);
    if (n < 0)
        return errno == ECONNRESET ? -EPIPE : -errno;
    buffer_commit(in, (size_t)n);
    return n == 0 ? -EPIPE : 0;
}

static int connection_check_reply(const Connection *connection, const MessageReply *reply) {
    int r;

    if (reply->error || !connection->member)
        return 0;
    r = interface_check(connection->interface, INTERFACE_REPLY, connection->member,
                        reply->parameters, INTERFACE_ADDED_FIELDS, NULL);
    return r == -EINVAL ? -EBADMSG : r == -ENOENT ? 0 : r;
}

static int connection_parse_reply(Connection *connection, Bytes bytes, Reply *ret) {
    _cleanup_json_ json_t *object = NULL;
    json_error_t error;
    MessageReply reply;
    int r;

    object = json_loadb((const char *)bytes.data, bytes.size, JSON_REJECT_DUPLICATES, &error);
    if (!object)
        return json_error_code(&error) == json_error_out_of_memory ? -ENOMEM : -EBADMSG;
    if (message_to_reply(object, &reply) != 0)
        return -EBADMSG;
    r = connection_check_reply(connection, &reply);
    if (r < 0)
        return r;
    json_decref(connection->reply);
    connection->reply = TAKE_PTR(object);
    *ret = (Reply){.parameters = reply.parameters ? reply.parameters : connection->nothing,
                   .error = reply.error,
                   .continues = reply.continues};
    return 0;
}

int connection_receive(Connection *connection, uint64_t timeout_ns, Reply *ret) {
    uint64_t end_ns = connection_end_of(timeout_ns);
    Bytes bytes;
    int r;

    for (;;) {
        r = connection_take_message(connection, &bytes);
        if (r > 0)
            return connection_parse_reply(connection, bytes, ret);
        if (r == 0)
            r = connection_fill(connection);
        if (r == -EAGAIN)
            r = connection_wait_for(connection, POLLIN, end_ns);
        if (r < 0)
            return r;
    }
}

ssize_t connection_read(Connection *connection, void *buffer, size_t n, uint64_t timeout_ns) {
    size_t left = connection->in.size - connection->taken;
    uint64_t end_ns = connection_end_of(timeout_ns);
    ssize_t got;
    int r;

    if (left > 0) {
        n = MIN(n, left);
        memcpy(buffer, connection->in.data + connection->taken, n);
        connection->taken += n;
        connection->scanned = connection->taken;
        return (ssize_t)n;
    }
    while ((got = recv(connection->fd, buffer, n, 0)) < 0) {
        r = errno == EAGAIN ? connection_wait_for(connection, POLLIN, end_ns) : -errno;
        if (r < 0)
            return r == -ECONNRESET ? -EPIPE : r;
    }
    return got;
}

int connection_take_fd(Connection *connection, unsigned timeout_s) {
    struct timeval timeout = {.tv_sec = timeout_s};
    int flags = fcntl(connection->fd, F_GETFL);

    if (flags < 0 || fcntl(connection->fd, F_SETFL, flags & ~O_NONBLOCK) < 0 ||
        setsockopt(connection->fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)) < 0)
        return -errno;
    return TAKE_FD(connection->fd);
}

int connection_fd(const Connection *connection) {
    return connection->fd;
}
