/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * A control socket in a child of the test, with a method for each of the interface, most of which
 * just answer. Clients are the test's: sockets that say bytes.
 *
 *   Ping            {}
 *   Stop            waits for ever
 *   Pause           waits likewise, and ends with its client in any case
 *   Vacuum          removed: how many waiting calls were told that their client is gone;
 *                   bytes: how many connections ended
 *   Monitor         events as fast as the loop turns, until the client does not read: Busy
 *   ListSegments    SEGMENTS of them, or none for session "none"
 *   SetLogLevel     previous: how many calls of Ping and of those below were answered
 *   Read            the file of READ_BYTES
 *   others          {} , which is no reply of most: Failed
 */

#include <grp.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "control/control.h"
#include "protocol/interface.h"
#include "util/file.h"
#include "util/log.h"

enum {
    CONTROL_SEGMENTS = 5000,
    CONTROL_READ_BYTES = 8 << 20,
    CONTROL_METHODS_MAX = 64,
    CONTROL_READ_GID = 54321,
    CONTROL_ADMIN_GID = 54322,
};

typedef struct ControlServer {
    pid_t pid;
    char folder[64], path[96];
} ControlServer;

typedef struct ControlServing {
    Loop *loop;
    LoopSource *event;
    Call *monitor;
    json_int_t calls_gone, connections_gone, pings;
} ControlServing;

static int control_ping(void *userdata, Call *call) {
    ((ControlServing *)userdata)->pings++;
    return call_reply(call, json_object());
}

static int control_pings(void *userdata, Call *call) {
    const ControlServing *serving = userdata;
    char text[32];

    snprintf(text, sizeof(text), "%" JSON_INTEGER_FORMAT, serving->pings);
    return call_reply(call, json_pack("{s:s}", "previous", text));
}

static void control_count_gone(void *userdata) {
    ((ControlServing *)userdata)->calls_gone++;
}

static int control_wait(void *userdata, Call *call) {
    call_on_gone(call, control_count_gone, userdata);
    return 0;
}

static int control_wait_for_client(void *userdata, Call *call) {
    call_end_with_client(call);
    return control_wait(userdata, call);
}

static int control_tell(void *userdata, Call *call) {
    ControlServing *serving = userdata;

    return call_reply(call, json_pack("{s:I, s:I}", "removed", serving->calls_gone, "bytes",
                                      serving->connections_gone));
}

static void control_end_monitor(void *userdata) {
    ControlServing *serving = userdata;

    serving->calls_gone++;
    serving->monitor = NULL;
}

static int control_on_event(void *userdata) {
    ControlServing *serving = userdata;
    int r = 0;

    for (int i = 0; serving->monitor && i < 100; i++) {
        r = call_continue(serving->monitor, json_pack("{s:s, s:i, s:s}", "event", "rotated",
                                                      "timeUsec", 1, "text", "an event"));
        if (r == -ENOBUFS) {
            Call *call = serving->monitor;

            serving->monitor = NULL;
            return call_fail(call, "Busy", json_pack("{s:i}", "retryAfterMs", 1));
        }
        if (r < 0)
            break;
    }
    return serving->monitor ? loop_trigger_after(serving->event, 1000000) : 0;
}

static int control_monitor(void *userdata, Call *call) {
    ControlServing *serving = userdata;

    if (serving->monitor)
        return -EBUSY;
    serving->monitor = call;
    call_on_gone(call, control_end_monitor, serving);
    return loop_trigger(serving->event);
}

static int control_next_segment(void *userdata, json_t **ret) {
    int *left = userdata;

    if (*left == 0)
        return 0;
    *ret = json_pack("{s:{s:s, s:s, s:s, s:s, s:s, s:b, s:i, s:i, s:i, s:s, s:[]}}", "segment",
                     "session", "default", "name", "x", "path", "/x", "bootId", "", "layout",
                     "file", "sensitive", 0, "samples", (*left)--, "lost", 0, "bytes", 0,
                     "completeness", "complete", "files");
    return *ret ? 1 : -ENOMEM;
}

static int control_segments(void *userdata _unused_, Call *call) {
    const char *session = json_string_value(json_object_get(call_parameters(call), "session"));
    int *left = malloc(sizeof(*left));

    if (!left)
        return -ENOMEM;
    *left = session && strcmp(session, "none") == 0 ? 0 : CONTROL_SEGMENTS;
    return call_stream(call, control_next_segment, free, left);
}

/* Bytes that tell where they belong. */
static int control_read(void *userdata _unused_, Call *call) {
    int fd = memfd_create("file", MFD_CLOEXEC);
    uint32_t *numbers = malloc(CONTROL_READ_BYTES);

    for (uint32_t i = 0; numbers && i < CONTROL_READ_BYTES / sizeof(*numbers); i++)
        numbers[i] = i;
    if (fd >= 0 && numbers)
        (void)file_write_all(fd, numbers, CONTROL_READ_BYTES);
    free(numbers);
    return call_reply_file(call, json_pack("{s:i}", "bytes", CONTROL_READ_BYTES), fd,
                           CONTROL_READ_BYTES);
}

/* clang-format off */
static const ControlMethod control_rows[] = {
    { "Ping",         RIGHT_ANYONE, METHOD_PLAIN,   false, control_ping     },
    { "SetLogLevel",  RIGHT_ADMIN,  METHOD_PLAIN,   false, control_pings    },
    { "Stop",         RIGHT_ADMIN,  METHOD_PLAIN,   true,  control_wait     },
    { "Pause",        RIGHT_ADMIN,  METHOD_PLAIN,   false, control_wait_for_client },
    { "Vacuum",       RIGHT_ANYONE, METHOD_PLAIN,   false, control_tell     },
    { "Monitor",      RIGHT_READ,   METHOD_MORE,    false, control_monitor  },
    { "ListSegments", RIGHT_READ,   METHOD_MORE,    false, control_segments },
    { "Read",         RIGHT_READ,   METHOD_UPGRADE, false, control_read     },
};
/* clang-format on */

/* A row for each method of the interface. */
static size_t control_table(ControlMethod *ret) {
    static Interface *interface; /* whose names the rows hold */
    const char *name;
    size_t n = 0;

    if (!interface && interface_new(interface_text_control, &interface, NULL) < 0)
        return 0;
    for (; n < CONTROL_METHODS_MAX && (name = interface_method(interface, n)); n++) {
        ret[n] = (ControlMethod){.name = name, .right = RIGHT_ADMIN, .run = control_ping};
        for (size_t i = 0; i < ARRAY_SIZE(control_rows); i++)
            if (strcmp(control_rows[i].name, name) == 0)
                ret[n] = control_rows[i];
    }
    return n;
}

static void control_connection_gone(void *userdata, uint64_t connection _unused_) {
    ((ControlServing *)userdata)->connections_gone++;
}

/* Keeps it, for which the test is too short. */
static void control_dispose(void *userdata _unused_, int fd _unused_) {
}

static int control_stop(void *userdata) {
    loop_stop(((ControlServing *)userdata)->loop);
    return 0;
}

static int control_serve(int fd, uint64_t idle_ns) {
    ControlMethod methods[CONTROL_METHODS_MAX];
    ControlServing serving = {};
    ControlOptions options = {
        .fd = fd,
        .methods = methods,
        .n_methods = control_table(methods),
        .groups = {CONTROL_READ_GID, CONTROL_ADMIN_GID, true, true},
        .version = "1.2.3",
        .idle_ns = idle_ns,
        .on_connection_gone = control_connection_gone,
        .dispose = control_dispose,
        .userdata = &serving,
    };
    Control *control = NULL;
    int r = loop_new(&serving.loop);

    log_set_level(LOG_LEVEL_WARNING);
    if (r == 0)
        r = loop_add_signal(serving.loop, SIGTERM, control_stop, &serving, NULL);
    if (r == 0)
        r = loop_add_deferred(serving.loop, control_on_event, &serving, &serving.event);
    options.loop = serving.loop;
    if (r == 0)
        r = control_new(&options, &control);
    if (r == 0)
        r = loop_run(serving.loop);
    control_free(control);
    loop_free(serving.loop);
    return r;
}

/* idle_ns 0: as the daemon has it. Anyone may reach it. */
static int control_server_begin(ControlServer *ret, uint64_t idle_ns) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    ControlServer server = {.folder = "/tmp/profd-test.XXXXXX"};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0 || !mkdtemp(server.folder) || chmod(server.folder, 0755) < 0)
        return -errno;
    snprintf(server.path, sizeof(server.path), "%s/socket", server.folder);
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", server.path);
    if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ||
        chmod(server.path, 0666) < 0 || listen(fd, 4096) < 0)
        return -errno;
    (void)fflush(stdout);
    server.pid = fork();
    if (server.pid == 0)
        _exit(control_serve(fd, idle_ns) < 0 ? 1 : 0);
    (void)close(fd);
    *ret = server;
    return server.pid < 0 ? -errno : 0;
}

/* The status that it ended with: 0, when nothing went wrong in it. */
static int control_server_end(ControlServer *server) {
    int status = -1;

    (void)kill(server->pid, SIGTERM);
    (void)waitpid(server->pid, &status, 0);
    (void)unlink(server->path);
    (void)rmdir(server->folder);
    return status;
}

static inline int control_connect(const ControlServer *server) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof(address.sun_path), "%s", server->path);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
        return -errno;
    return fd;
}

/* As somebody else, which takes root. */
static inline int control_connect_as(const ControlServer *server, uid_t uid, gid_t gid,
                                     gid_t group) {
    int fd;

    if (setgroups(group ? 1 : 0, &group) < 0 || setegid(gid) < 0 || seteuid(uid) < 0)
        return -errno;
    fd = control_connect(server);
    if (seteuid(0) < 0 || setegid(0) < 0 || setgroups(0, NULL) < 0)
        return -errno;
    return fd;
}

/* n bytes, a NUL where the caller has one. */
static inline int control_say(int fd, const void *bytes, size_t n) {
    const char *at = bytes;

    while (n > 0) {
        ssize_t k = send(fd, at, n, MSG_NOSIGNAL);

        if (k < 0)
            return -errno;
        at += k;
        n -= (size_t)k;
    }
    return 0;
}

/* One message, its NUL included: its length without it, 0 at the end, -ETIMEDOUT after 20 s. */
static inline int control_hear(int fd, char *ret, size_t size) {
    size_t n = 0;

    while (n < size) {
        struct pollfd readable = {.fd = fd, .events = POLLIN};
        ssize_t k;

        if (poll(&readable, 1, 20000) <= 0)
            return -ETIMEDOUT;
        k = recv(fd, ret + n, 1, 0);
        if (k < 0)
            return -errno;
        if (k == 0)
            return n == 0 ? 0 : -EBADMSG;
        if (ret[n] == '\0')
            return (int)n;
        n++;
    }
    return -EMSGSIZE;
}

/* A call and its reply, in one. */
static inline int control_ask(int fd, const char *call, char *ret, size_t size) {
    int r = control_say(fd, call, strlen(call) + 1);

    return r < 0 ? r : control_hear(fd, ret, size);
}
