/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "test.h"

#include <pthread.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "protocol/connection.h"

/* The client's end against a service that says, byte for byte, what the test tells it to. */

#define SECOND_NS 1000000000ULL

enum { PARTS_MAX = 8 };

/* Said one after the other, a moment between them, then closed; NULs included. */
typedef struct Service {
    struct {
        const char *bytes;
        size_t n;
    } parts[PARTS_MAX];
    int listening;
    char folder[512], path[600];
    pthread_t thread;
    char heard[4096];
    bool stays; /* until the client goes */
} Service;

#define PART(text)                                                                                 \
    { text, sizeof(text) - 1 }
#define SAYS(text)                                                                                 \
    { text, sizeof(text) }

static void *serve(void *userdata) {
    Service *service = userdata;
    int fd = accept4(service->listening, NULL, NULL, SOCK_CLOEXEC);
    size_t n = 0;

    while (n < sizeof(service->heard) && (n == 0 || service->heard[n - 1] != '\0')) {
        ssize_t k = recv(fd, service->heard + n, sizeof(service->heard) - n, 0);

        if (k <= 0)
            break;
        n += (size_t)k;
    }
    for (size_t i = 0; i < PARTS_MAX && service->parts[i].bytes; i++) {
        (void)!send(fd, service->parts[i].bytes, service->parts[i].n, MSG_NOSIGNAL);
        (void)usleep(2000);
    }
    if (service->stays)
        (void)!recv(fd, &n, 1, 0);
    (void)close(fd);
    return NULL;
}

static int service_begin(Service *service, const char *below) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char template[] = "/tmp/profd-test.XXXXXX", here[512];
    int r = 0;

    if (!mkdtemp(template))
        return -errno;
    snprintf(service->folder, sizeof(service->folder), "%s%s", template, below);
    if (*below && mkdir(service->folder, 0700) < 0)
        return -errno;
    snprintf(service->path, sizeof(service->path), "%s/socket", service->folder);
    snprintf(address.sun_path, sizeof(address.sun_path), "socket");
    service->listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    /* Bound by a short name, however long the path is. */
    if (!getcwd(here, sizeof(here)) || chdir(service->folder) < 0)
        return -errno;
    if (bind(service->listening, (const struct sockaddr *)&address, sizeof(address)) < 0 ||
        listen(service->listening, 1) < 0)
        r = -errno;
    if (chdir(here) < 0)
        r = -errno;
    return r < 0 ? r : -pthread_create(&service->thread, NULL, serve, service);
}

static void service_end(Service *service) {
    (void)pthread_join(service->thread, NULL);
    (void)close(service->listening);
    (void)unlink(service->path);
    (void)rmdir(service->folder);
    if (strchr(service->folder + 5, '/')) {
        *strrchr(service->folder, '/') = '\0';
        (void)rmdir(service->folder);
    }
}

static int call(Service *service, const char *method, json_t *parameters, unsigned flags,
                Connection **ret) {
    int r = service_begin(service, "");

    if (r == 0)
        r = connection_open(service->path, ret);
    return r == 0 ? connection_call(*ret, method, parameters, flags, SECOND_NS) : r;
}

TEST(a_call_is_written_as_varlink_requires) {
    Service service = {.parts = {SAYS("{\"parameters\":{}}")}};
    _cleanup_(connection_freep) Connection *connection = NULL;
    Reply reply;

    CHECK_OK(call(&service, "io.profd.Control.Ping", json_pack("{s:i}", "a", 1), CALL_MORE,
                  &connection));
    CHECK_OK(connection_receive(connection, 10 * SECOND_NS, &reply));
    service_end(&service);
    CHECK_STREQ(service.heard,
                "{\"method\":\"io.profd.Control.Ping\",\"parameters\":{\"a\":1},\"more\":true}");
    CHECK(!reply.error && !reply.continues);
    CHECK_EQ(json_object_size(reply.parameters), 0);
}

TEST(a_call_with_invalid_parameters_is_not_sent) {
    Service service = {.parts = {SAYS("{\"parameters\":{}}")}};
    _cleanup_(connection_freep) Connection *connection = NULL;

    CHECK_OK(service_begin(&service, ""));
    CHECK_OK(connection_open(service.path, &connection));
    CHECK_EQ(connection_call(connection, "io.profd.Control.ListSnapshots",
                             json_pack("{s:s}", "name", "\xff"), 0, SECOND_NS),
             -ENOMEM);
    CHECK_OK(connection_call(connection, "io.profd.Control.Ping", json_object(), 0, SECOND_NS));
    service_end(&service);
    CHECK_STREQ(service.heard, "{\"method\":\"io.profd.Control.Ping\",\"parameters\":{}}");
}

TEST(replies_are_split_however_their_bytes_arrive) {
    Service service = {
        .parts = {PART("{\"parameters\":{\"removed\":1,"),
                  PART("\"bytes\":2},\"continues\":true}\0{\"par"),
                  PART("ameters\":{\"removed\":3,\"bytes\":4,\"added\":[]}}\0{\"err"),
                  SAYS("or\":\"io.profd.Control.Cancelled\"}")}};
    _cleanup_(connection_freep) Connection *connection = NULL;
    Reply reply;

    CHECK_OK(call(&service, "io.profd.Control.Vacuum", json_object(), CALL_MORE, &connection));
    CHECK_OK(connection_receive(connection, 10 * SECOND_NS, &reply));
    CHECK(reply.continues);
    CHECK_EQ(json_integer_value(json_object_get(reply.parameters, "bytes")), 2);
    CHECK_OK(connection_receive(connection, 10 * SECOND_NS, &reply));
    CHECK_EQ(json_integer_value(json_object_get(reply.parameters, "bytes")), 4);
    CHECK_OK(connection_receive(connection, 10 * SECOND_NS, &reply));
    CHECK_STREQ(reply.error, "io.profd.Control.Cancelled");
    CHECK_EQ(json_object_size(reply.parameters), 0);
    CHECK_EQ(connection_receive(connection, 10 * SECOND_NS, &reply), -EPIPE);
    service_end(&service);
}

TEST(invalid_reply_is_refused) {
    /* clang-format off */
    static const char *const rows[] = {
        "",
        "[]",
        "{",
        "{\"parameters\":[]}",
        "{\"error\":1}",
        "{\"method\":\"a.B\"}",
        "{\"parameters\":{\"removed\":\"many\",\"bytes\":2}}",
        "{\"parameters\":{\"removed\":1}}",
    };
    /* clang-format on */

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        Service service = {.parts = {{rows[i], strlen(rows[i]) + 1}}};
        _cleanup_(connection_freep) Connection *connection = NULL;
        Reply reply;
        int r = call(&service, "io.profd.Control.Vacuum", json_object(), 0, &connection);

        if (r == 0)
            r = connection_receive(connection, 10 * SECOND_NS, &reply);
        service_end(&service);
        if (r != -EBADMSG)
            printf("# %s\n", rows[i]);
        CHECK_EQ(r, -EBADMSG);
    }
}

TEST(a_silent_service_is_waited_for_until_the_timeout) {
    Service service = {.stays = true};
    _cleanup_(connection_freep) Connection *connection = NULL;
    Reply reply;

    CHECK_OK(call(&service, "io.profd.Control.Ping", json_object(), 0, &connection));
    CHECK_EQ(connection_receive(connection, SECOND_NS / 100, &reply), -ETIMEDOUT);
    connection = connection_free(connection);
    service_end(&service);
}

TEST(bytes_after_an_upgraded_reply_are_read_unchanged) {
    Service service = {
        .parts = {PART("{\"parameters\":{\"bytes\":7}}\0ab"), PART("\0cd"), PART("ef")}};
    _cleanup_(connection_freep) Connection *connection = NULL;
    char bytes[16] = {};
    size_t n = 0;
    ssize_t k = 0;
    Reply reply;

    CHECK_OK(call(&service, "io.profd.Control.Read", json_object(), CALL_UPGRADE, &connection));
    CHECK_OK(connection_receive(connection, 10 * SECOND_NS, &reply));
    while (n < sizeof(bytes) &&
           (k = connection_read(connection, bytes + n, sizeof(bytes) - n, 10 * SECOND_NS)) > 0)
        n += (size_t)k;
    service_end(&service);
    CHECK_EQ(k, 0);
    CHECK_EQ(n, 7);
    CHECK(memcmp(bytes, "ab\0cdef", 7) == 0);
}

TEST(descriptor_of_an_upgraded_connection_has_all_bytes_after_the_reply) {
    Service service = {
        .parts = {PART("{\"parameters\":{\"bytes\":7"), PART("}}\0ab"), PART("\0cd"), PART("ef")}};
    _cleanup_(connection_freep) Connection *connection = NULL;
    _cleanup_close_ int fd = -1;
    char bytes[16] = {};
    size_t n = 0;
    ssize_t k = 0;
    Reply reply;

    CHECK_OK(call(&service, "io.profd.Control.Read", json_object(), CALL_UPGRADE, &connection));
    CHECK_OK(connection_receive(connection, 10 * SECOND_NS, &reply));
    fd = connection_take_fd(connection, 10);
    CHECK(fd >= 0);
    connection = connection_free(connection);
    while (n < sizeof(bytes) && (k = read(fd, bytes + n, sizeof(bytes) - n)) > 0)
        n += (size_t)k;
    service_end(&service);
    CHECK_EQ(k, 0);
    CHECK_EQ(n, 7);
    CHECK(memcmp(bytes, "ab\0cdef", 7) == 0);
}

TEST(the_reason_for_a_refusal_is_read_from_a_closed_connection) {
    Service service = {.parts = {SAYS("{\"error\":\"io.profd.Control.Busy\","
                                      "\"parameters\":{\"retryAfterMs\":5}}")}};
    _cleanup_(connection_freep) Connection *connection = NULL;
    Reply reply;

    CHECK_OK(call(&service, "io.profd.Control.Ping", json_object(), 0, &connection));
    (void)usleep(20000);
    CHECK_OK(connection_call(connection, "io.profd.Control.Ping", json_object(), 0, SECOND_NS));
    CHECK_OK(connection_receive(connection, 10 * SECOND_NS, &reply));
    service_end(&service);
    CHECK_STREQ(reply.error, "io.profd.Control.Busy");
}

TEST(path_of_any_length_works_and_a_missing_one_is_reported) {
    Service service = {.parts = {SAYS("{}")}};
    _cleanup_(connection_freep) Connection *connection = NULL;
    char below[201];
    Reply reply;

    memset(below, 'x', sizeof(below) - 1);
    below[0] = '/';
    below[sizeof(below) - 1] = '\0';
    CHECK_OK(service_begin(&service, below));
    CHECK_OK(connection_open(service.path, &connection));
    CHECK_OK(connection_call(connection, "io.profd.Control.Ping", json_object(), 0, SECOND_NS));
    CHECK_OK(connection_receive(connection, 10 * SECOND_NS, &reply));
    service_end(&service);
    CHECK_EQ(connection_open("/nowhere/at/all", &connection), -ENOENT);
}

TEST_MAIN()
