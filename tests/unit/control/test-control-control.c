/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "test.h"

#include "make-control.h"

/* The control socket as clients see it: what is served, in which order, and how what is refused is
 * named. */

enum { TEXT_MAX = 1 << 16 };

#define PING    "{\"method\":\"io.profd.Control.Ping\"}"
#define NOTHING "{\"parameters\":{}}"
#define UNKNOWN "\"it is unknown to this profd, missing, or of another type\""

TEST(calls_are_answered_and_unknown_methods_are_named) {
    /* clang-format off */
    static const struct { const char *call, *reply; } rows[] = {
        { PING, NOTHING },
        { "{\"method\":\"io.profd.Control.Ping\",\"parameters\":{},\"more\":true}", NOTHING },
        { "{\"method\":\"io.profd.Control.Ping\",\"parameters\":{\"a\":1}}",
          "{\"error\":\"org.varlink.service.InvalidParameter\",\"parameters\":{\"parameter\":\"a\",\"reason\":" UNKNOWN "}}" },
        { "{\"method\":\"io.profd.Control.Ping\",\"upgrade\":true}",
          "{\"error\":\"org.varlink.service.InvalidParameter\",\"parameters\":{\"parameter\":\"upgrade\",\"reason\":\"no bytes follow a reply of this method\"}}" },
        { "{\"method\":\"io.profd.Control.Stop\",\"parameters\":{\"session\":1}}",
          "{\"error\":\"org.varlink.service.InvalidParameter\",\"parameters\":{\"parameter\":\"session\",\"reason\":" UNKNOWN "}}" },
        { "{\"method\":\"io.profd.Control.Stop\"}",
          "{\"error\":\"org.varlink.service.InvalidParameter\",\"parameters\":{\"parameter\":\"session\",\"reason\":" UNKNOWN "}}" },
        { "{\"method\":\"io.profd.Control.ListSegments\"}",
          "{\"error\":\"org.varlink.service.ExpectedMore\",\"parameters\":{}}" },
        { "{\"method\":\"io.profd.Control.Read\"}",
          "{\"error\":\"io.profd.Control.ExpectedUpgrade\",\"parameters\":{}}" },
        { "{\"method\":\"io.profd.Control.Pong\"}",
          "{\"error\":\"org.varlink.service.MethodNotFound\",\"parameters\":{\"method\":\"io.profd.Control.Pong\"}}" },
        { "{\"method\":\"io.profd.Controls.Ping\"}",
          "{\"error\":\"org.varlink.service.InterfaceNotFound\",\"parameters\":{\"interface\":\"io.profd.Controls\"}}" },
        { "{\"method\":\"Ping\"}",
          "{\"error\":\"org.varlink.service.InterfaceNotFound\",\"parameters\":{\"interface\":\"Ping\"}}" },
        { "{\"method\":\"\"}",
          "{\"error\":\"org.varlink.service.InterfaceNotFound\",\"parameters\":{\"interface\":\"\"}}" },
        { "{\"method\":\"org.varlink.service.GetInfo\"}",
          "{\"parameters\":{\"vendor\":\"profd\",\"product\":\"profd, always-on system profiler\",\"version\":\"1.2.3\","
          "\"url\":\"\",\"interfaces\":[\"org.varlink.service\",\"io.profd.Control\"]}}" },
        { "{\"method\":\"org.varlink.service.GetInterfaceDescription\",\"parameters\":{\"interface\":\"a.b\"}}",
          "{\"error\":\"org.varlink.service.InterfaceNotFound\",\"parameters\":{\"interface\":\"a.b\"}}" },
        { "{\"method\":\"org.varlink.service.GetInterfaceDescription\"}",
          "{\"error\":\"org.varlink.service.InvalidParameter\",\"parameters\":{\"parameter\":\"interface\",\"reason\":" UNKNOWN "}}" },
        { "{\"method\":\"org.varlink.service.GetNothing\"}",
          "{\"error\":\"org.varlink.service.MethodNotFound\",\"parameters\":{\"method\":\"org.varlink.service.GetNothing\"}}" },
        { "{\"method\":\"io.profd.Control.Monitor\",\"more\":true,\"parameters\":null,\"oneway\":true}",
          "{\"error\":\"io.profd.Control.BadMessage\",\"parameters\":{\"reason\":\"flags\"}}" },
    };
    /* clang-format on */
    char text[TEXT_MAX];
    ControlServer server;
    int fd;

    CHECK_OK(control_server_begin(&server, 0));
    fd = control_connect(&server);
    CHECK_OK(fd);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CHECK_OK(control_ask(fd, rows[i].call, text, sizeof(text)));
        CHECK_STREQ(text, rows[i].reply);
    }
    CHECK_EQ(control_hear(fd, text, sizeof(text)), 0);
    (void)close(fd);
    CHECK_EQ(control_server_end(&server), 0);
}

TEST(an_interface_is_described_by_its_own_text) {
    static char text[TEXT_MAX];
    json_t *reply;
    ControlServer server;
    int fd;

    CHECK_OK(control_server_begin(&server, 0));
    fd = control_connect(&server);
    CHECK_OK(control_ask(fd,
                         "{\"method\":\"org.varlink.service.GetInterfaceDescription\","
                         "\"parameters\":{\"interface\":\"io.profd.Control\"}}",
                         text, sizeof(text)));
    reply = json_loads(text, 0, NULL);
    CHECK(reply != NULL);
    CHECK_STREQ(
        json_string_value(json_object_get(json_object_get(reply, "parameters"), "description")),
        interface_text_control);
    json_decref(reply);
    (void)close(fd);
    CHECK_EQ(control_server_end(&server), 0);
}

TEST(a_malformed_message_ends_its_connection_with_the_reason) {
    /* clang-format off */
    static const struct { const char *text, *reason; } rows[] = {
        { "",                                        "syntax"    },
        { "{",                                       "syntax"    },
        { "[]",                                      "object"    },
        { "{\"method\":\"a.B\",\"method\":\"a.B\"}", "duplicate" },
        { "{\"method\":\"a.\xff\"}",                 "utf8"      },
        { "{\"method\":\"a.B\",\"what\":1}",         "field"     },
        { "{\"method\":\"a.B\\u0000\"}",             "nul"       },
        { "{\"method\":1e999}",                      "number"    },
    };
    /* clang-format on */
    char text[TEXT_MAX], want[128];
    ControlServer server;

    CHECK_OK(control_server_begin(&server, 0));
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        int fd = control_connect(&server);

        snprintf(want, sizeof(want),
                 "{\"error\":\"io.profd.Control.BadMessage\",\"parameters\":{\"reason\":\"%s\"}}",
                 rows[i].reason);
        CHECK_OK(control_ask(fd, rows[i].text, text, sizeof(text)));
        CHECK_STREQ(text, want);
        CHECK_EQ(control_hear(fd, text, sizeof(text)), 0);
        (void)close(fd);
    }
    CHECK_EQ(control_server_end(&server), 0);
}

TEST(pipelined_calls_are_answered_in_order_and_oneway_calls_are_not) {
    static const char calls[] =
        PING "\0{\"method\":\"io.profd.Control.Nothing\",\"oneway\":true}\0"
             "{\"method\":\"a.b\"}\0"
             "{\"method\":\"io.profd.Control.Ping\",\"oneway\":true}\0" PING;
    char text[TEXT_MAX];
    ControlServer server;
    int fd;

    CHECK_OK(control_server_begin(&server, 0));
    fd = control_connect(&server);
    CHECK_OK(control_say(fd, calls, sizeof(calls)));
    CHECK_OK(control_hear(fd, text, sizeof(text)));
    CHECK_STREQ(text, NOTHING);
    CHECK_OK(control_hear(fd, text, sizeof(text)));
    CHECK(strstr(text, "InterfaceNotFound"));
    CHECK_OK(control_hear(fd, text, sizeof(text)));
    CHECK_STREQ(text, NOTHING);
    (void)shutdown(fd, SHUT_WR);
    CHECK_EQ(control_hear(fd, text, sizeof(text)), 0);
    (void)close(fd);
    CHECK_EQ(control_server_end(&server), 0);
}

TEST(a_half_closed_client_still_gets_its_replies) {
    char text[TEXT_MAX];
    ControlServer server;
    int fd;

    CHECK_OK(control_server_begin(&server, 0));
    fd = control_connect(&server);
    for (int i = 0; i < 50; i++)
        CHECK_OK(control_say(fd, PING, sizeof(PING)));
    (void)shutdown(fd, SHUT_WR);
    for (int i = 0; i < 50; i++) {
        CHECK_OK(control_hear(fd, text, sizeof(text)));
        CHECK_STREQ(text, NOTHING);
    }
    CHECK_EQ(control_hear(fd, text, sizeof(text)), 0);
    (void)close(fd);
    CHECK_EQ(control_server_end(&server), 0);
}

/* The counts that Vacuum returns here. */
static int ask_counts(const ControlServer *server, json_int_t *ret_calls,
                      json_int_t *ret_connections) {
    char text[TEXT_MAX];
    int fd = control_connect(server), r;
    json_t *reply;

    if (fd < 0)
        return fd;
    r = control_ask(fd, "{\"method\":\"io.profd.Control.Vacuum\"}", text, sizeof(text));
    (void)close(fd);
    reply = r > 0 ? json_loads(text, 0, NULL) : NULL;
    if (!reply)
        return r < 0 ? r : -EBADMSG;
    r = json_unpack(reply, "{s:{s:I, s:I}}", "parameters", "removed", ret_calls, "bytes",
                    ret_connections);
    json_decref(reply);
    return r < 0 ? -EBADMSG : 0;
}

static int wait_for_gone(const ControlServer *server, json_int_t wanted) {
    json_int_t calls = -1, connections;
    int r = 0;

    for (int i = 0; r == 0 && calls < wanted && i < 1000; i++) {
        r = ask_counts(server, &calls, &connections);
        (void)usleep(10000);
    }
    return r < 0 ? r : calls >= wanted ? 0 : -ETIMEDOUT;
}

#define STOP "{\"method\":\"io.profd.Control.Stop\",\"parameters\":{\"session\":\"x\"}}"

TEST(a_call_is_notified_when_its_client_is_gone) {
    ControlServer server;
    int a, b, c;

    CHECK_OK(control_server_begin(&server, 0));
    a = control_connect(&server);
    b = control_connect(&server);
    c = control_connect(&server);
    CHECK_OK(control_say(a, STOP, sizeof(STOP)));
    (void)close(a);
    CHECK_OK(wait_for_gone(&server, 1));
    /* Half closed, then closed. */
    CHECK_OK(control_say(b, STOP, sizeof(STOP)));
    (void)shutdown(b, SHUT_WR);
    CHECK_OK(wait_for_gone(&server, 1));
    (void)close(b);
    CHECK_OK(wait_for_gone(&server, 2));
    /* More than is read ahead, then closed: what was read counts, call by call. */
    CHECK_OK(control_say(c, STOP, sizeof(STOP)));
    for (int i = 0; i < 20000; i++)
        if (send(c, STOP, sizeof(STOP), MSG_DONTWAIT | MSG_NOSIGNAL) != sizeof(STOP))
            break;
    (void)close(c);
    CHECK_OK(wait_for_gone(&server, 3));
    CHECK_EQ(control_server_end(&server), 0);
}

TEST(a_oneway_call_outlives_its_client_unless_it_may_wait_long) {
    static const char stays[] = "{\"method\":\"io.profd.Control.Stop\",\"oneway\":true,"
                                "\"parameters\":{\"session\":\"x\"}}";
    static const char ends[] = "{\"method\":\"io.profd.Control.Pause\",\"oneway\":true,"
                               "\"parameters\":{\"session\":\"x\"}}";
    json_int_t calls = -1, connections = -1;
    ControlServer server;
    int a, b;

    CHECK_OK(control_server_begin(&server, 0));
    a = control_connect(&server);
    b = control_connect(&server);
    CHECK_OK(control_say(a, stays, sizeof(stays)));
    (void)close(a);
    CHECK_OK(control_say(b, ends, sizeof(ends)));
    (void)close(b);
    CHECK_OK(wait_for_gone(&server, 1));
    usleep(100000);
    CHECK_OK(ask_counts(&server, &calls, &connections));
    CHECK_EQ(calls, 1);
    CHECK_EQ(control_server_end(&server), 0);
}

TEST(a_list_is_streamed_one_object_a_reply_and_an_empty_one_is_one_reply) {
    char text[TEXT_MAX];
    ControlServer server;
    int fd, n = 0;

    CHECK_OK(control_server_begin(&server, 0));
    fd = control_connect(&server);
    CHECK_OK(control_ask(fd,
                         "{\"method\":\"io.profd.Control.ListSegments\",\"more\":true,"
                         "\"parameters\":{\"session\":\"none\"}}",
                         text, sizeof(text)));
    CHECK_STREQ(text, NOTHING);
    CHECK_OK(control_ask(fd, "{\"method\":\"io.profd.Control.ListSegments\",\"more\":true}", text,
                         sizeof(text)));
    for (n = 1; strstr(text, "\"continues\":true"); n++)
        CHECK_OK(control_hear(fd, text, sizeof(text)));
    CHECK_EQ(n, CONTROL_SEGMENTS);
    CHECK(strstr(text, "\"samples\":1,"));
    CHECK_OK(control_ask(fd, PING, text, sizeof(text)));
    (void)close(fd);
    CHECK_EQ(control_server_end(&server), 0);
}

TEST(an_upgraded_call_sends_the_bytes_of_a_file_and_ends) {
    char text[TEXT_MAX];
    uint32_t numbers[4096];
    ControlServer server;
    uint64_t n = 0;
    int fd;

    CHECK_OK(control_server_begin(&server, 0));
    fd = control_connect(&server);
    CHECK_OK(control_ask(fd, "{\"method\":\"io.profd.Control.Read\",\"upgrade\":true}", text,
                         sizeof(text)));
    CHECK_STREQ(text, "{\"parameters\":{\"bytes\":8388608}}");
    while (recv(fd, numbers, sizeof(numbers), MSG_WAITALL) == sizeof(numbers))
        for (size_t i = 0; i < ARRAY_SIZE(numbers); i++, n++)
            CHECK_EQ(numbers[i], (uint32_t)n);
    CHECK_EQ(n * sizeof(*numbers), CONTROL_READ_BYTES);
    (void)close(fd);
    CHECK_EQ(control_server_end(&server), 0);
}

static int swallow(LogLevel level _unused_, int error _unused_, const char *message _unused_,
                   const LogField *fields _unused_, size_t n _unused_) {
    return 0;
}

TEST(a_method_table_without_a_method_of_the_interface_is_refused) {
    ControlMethod methods[CONTROL_METHODS_MAX];
    size_t n = control_table(methods);
    Control *control = NULL;
    Loop *loop = NULL;

    log_set_backend(swallow);
    CHECK(n >= 20);
    CHECK_OK(loop_new(&loop));
    for (int i = 0; i < 3; i++) {
        ControlOptions options = {.loop = loop,
                                  .fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0),
                                  .methods = methods,
                                  .n_methods = n - (i == 0),
                                  .version = ""};

        if (i == 1)
            methods[0].name = "Unknown";
        if (i == 2)
            methods[0].name = methods[1].name;
        CHECK_EQ(control_new(&options, &control), -EINVAL);
    }
    loop_free(loop);
    log_set_backend(NULL);
}

TEST_MAIN()
