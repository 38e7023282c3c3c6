/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "test.h"

#include <inttypes.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>

#include "make-control.h"
#include "make-lingering.h"
#include "protocol/message.h"
#include "util/clock.h"

/* Clients that are slow, silent, do not read, or are many: they hurt only themselves, and others
 * are served. */

enum {
    TEXT_MAX = 1 << 16,
    IDLE_MS = 300, /* where waiting for 45 s would be too long */
    MANY = 1000,
    LIMIT_KIB = 192 * 1024,
};

#define PING    "{\"method\":\"io.profd.Control.Ping\"}"
#define NOTHING "{\"parameters\":{}}"
#define STOP    "{\"method\":\"io.profd.Control.Stop\",\"parameters\":{\"session\":\"x\"}}"
#define MONITOR "{\"method\":\"io.profd.Control.Monitor\",\"more\":true}"
#define LIST    "{\"method\":\"io.profd.Control.ListSegments\",\"more\":true}"
#define READ    "{\"method\":\"io.profd.Control.Read\",\"upgrade\":true}"
#define BAD(reason)                                                                                \
    "{\"error\":\"io.profd.Control.BadMessage\",\"parameters\":{\"reason\":\"" reason "\"}}"

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define MEMORY_IS_NOT_OURS 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MEMORY_IS_NOT_OURS 1
#endif

/* The most that the server ever had. */
static long peak_kib(const ControlServer *server) {
    char path[64], text[8192];
    const char *line;

    snprintf(path, sizeof(path), "/proc/%d/status", (int)server->pid);
    if (file_read_text(path, text, sizeof(text)) < 0)
        return -1;
    line = strstr(text, "VmHWM:");
    return line ? strtol(line + 6, NULL, 10) : -1;
}

static bool memory_is_bounded(const ControlServer *server) {
    long kib = peak_kib(server);

    printf("# at most %ld KiB\n", kib);
#ifdef MEMORY_IS_NOT_OURS
    return kib > 0;
#else
    return kib > 0 && kib < LIMIT_KIB;
#endif
}

static int ping(int fd) {
    char text[TEXT_MAX];
    int r = control_ask(fd, PING, text, sizeof(text));

    return r < 0 ? r : strcmp(text, NOTHING) == 0 ? 0 : -EBADMSG;
}

/* Bytes until the end, at most `limit`; -ETIMEDOUT after 20 s without any. */
static int64_t drain(int fd, uint64_t limit) {
    char bytes[TEXT_MAX];
    uint64_t n = 0;

    while (n < limit) {
        struct pollfd readable = {.fd = fd, .events = POLLIN};
        ssize_t k;

        if (poll(&readable, 1, 20000) <= 0)
            return -ETIMEDOUT;
        k = recv(fd, bytes, sizeof(bytes), 0);
        if (k <= 0)
            break;
        n += (uint64_t)k;
    }
    return (int64_t)n;
}

/* Sends as much as the socket takes at once, again and again. */
static size_t flood(int fd, const char *bytes, size_t n) {
    size_t sent = 0;
    ssize_t k;

    while ((k = send(fd, bytes, n, MSG_DONTWAIT | MSG_NOSIGNAL)) == (ssize_t)n && sent < 64 << 20)
        sent += n;
    return sent;
}

TEST(a_message_of_more_than_one_mebibyte_is_refused) {
    size_t n = MESSAGE_BYTES_MAX;
    char *bytes = malloc(n + 2), text[TEXT_MAX];
    ControlServer server;
    int fd;

    CHECK(bytes != NULL);
    CHECK_OK(control_server_begin(&server, 0));
    memset(bytes, ' ', n + 2);
    memcpy(bytes, PING, sizeof(PING) - 1);
    bytes[n] = '\0';
    fd = control_connect(&server);
    CHECK_OK(control_say(fd, bytes, n + 1));
    CHECK_OK(control_hear(fd, text, sizeof(text)));
    CHECK_STREQ(text, NOTHING);
    bytes[n] = ' ';
    bytes[n + 1] = '\0';
    (void)control_say(fd, bytes, n + 2);
    CHECK_OK(control_hear(fd, text, sizeof(text)));
    CHECK_STREQ(text, BAD("size"));
    (void)close(fd);
    free(bytes);
    CHECK_EQ(control_server_end(&server), 0);
}

TEST(a_message_that_is_nested_too_deeply_or_too_large_is_refused_by_name) {
    static char bytes[1000100];
    char text[TEXT_MAX];
    ControlServer server;
    int fd;

    CHECK_OK(control_server_begin(&server, 0));
    memset(bytes, '[', 10000);
    bytes[10000] = '\0';
    fd = control_connect(&server);
    CHECK_OK(control_say(fd, bytes, 10001));
    CHECK_OK(control_hear(fd, text, sizeof(text)));
    CHECK_STREQ(text, BAD("nesting"));
    (void)close(fd);
    memcpy(bytes, "{\"a\":[1", 7);
    for (size_t i = 7; i < 1000007; i += 2)
        memcpy(bytes + i, ",1", 2);
    fd = control_connect(&server);
    CHECK_OK(control_say(fd, bytes, 1000008));
    CHECK_OK(control_hear(fd, text, sizeof(text)));
    CHECK_STREQ(text, BAD("values"));
    (void)close(fd);
    CHECK(memory_is_bounded(&server));
    CHECK_EQ(control_server_end(&server), 0);
}

TEST(an_idle_client_is_disconnected_unless_it_waits_for_a_reply) {
    ControlServer server;
    int waiting, slow, silent;
    char text[TEXT_MAX];

    CHECK_OK(control_server_begin(&server, IDLE_MS * 1000000ULL));
    waiting = control_connect(&server);
    CHECK_OK(control_say(waiting, STOP, sizeof(STOP)));
    silent = control_connect(&server);
    slow = control_connect(&server);
    /* A single byte now and then is not a call. */
    for (int i = 0; i < 2000 && control_say(slow, "{", 1) == 0; i++)
        (void)usleep(IDLE_MS * 1000 / 30);
    CHECK(control_say(slow, "{", 1) < 0);
    CHECK_EQ(control_hear(silent, text, sizeof(text)), 0);
    CHECK(recv(waiting, text, 1, MSG_DONTWAIT) < 0);
    CHECK_EQ(errno, EAGAIN);
    (void)close(waiting);
    (void)close(silent);
    (void)close(slow);
    CHECK_EQ(control_server_end(&server), 0);
}

TEST(a_client_that_never_reads_is_throttled_and_disconnected) {
    static const char *const calls[] = {PING, LIST, READ};
    ControlServer server;

    CHECK_OK(control_server_begin(&server, IDLE_MS * 1000000ULL));
    for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
        int deaf = control_connect(&server);
        struct pollfd gone = {.fd = deaf, .events = POLLRDHUP};
        int64_t n;

        CHECK_OK(deaf);
        for (int k = 0; k < 100; k++) {
            (void)flood(deaf, calls[i], strlen(calls[i]) + 1);
            (void)usleep(1000);
        }
        /* It does not read, so its replies stay queued. */
        for (int k = 0; !(gone.revents & (POLLHUP | POLLRDHUP)) && k < 200; k++)
            (void)poll(&gone, 1, 100);
        CHECK(gone.revents & (POLLHUP | POLLRDHUP));
        n = drain(deaf, UINT64_MAX);
        printf("# %s: %" PRIi64 " bytes\n", calls[i], n);
        CHECK(n > 0 && n < CONTROL_READ_BYTES);
        (void)close(deaf);
    }
    CHECK(memory_is_bounded(&server));
    CHECK_EQ(control_server_end(&server), 0);
}

TEST(an_unread_stream_ends_while_others_are_served) {
    ControlServer server;
    char text[TEXT_MAX], last[TEXT_MAX] = "";
    int deaf, other, r = 1, n = 0;

    CHECK_OK(control_server_begin(&server, 0));
    other = control_connect(&server);
    deaf = control_connect(&server);
    CHECK_OK(control_ask(deaf, MONITOR, text, sizeof(text)));
    /* A second one is refused by this server while the first lives. */
    do {
        CHECK_OK(control_ask(other, MONITOR, text, sizeof(text)));
        (void)usleep(10000);
    } while (strstr(text, "Failed") && n++ < 2000);
    CHECK(strstr(text, "rotated"));
    while (r > 0 && !strstr(last, "\"error\""))
        r = control_hear(deaf, last, sizeof(last));
    CHECK_STREQ(last, "{\"error\":\"io.profd.Control.Busy\",\"parameters\":{\"retryAfterMs\":1}}");
    CHECK_OK(ping(deaf));
    (void)close(deaf);
    (void)close(other);
    CHECK_EQ(control_server_end(&server), 0);
}

/* Waits until the other end has taken all bytes. */
static bool is_taken(int fd) {
    int left = 1;

    for (int i = 0; left > 0 && i < 20000; i++) {
        if (ioctl(fd, SIOCOUTQ, &left) < 0)
            return false;
        (void)usleep(left > 0 ? 1000 : 0);
    }
    return left == 0;
}

TEST(a_short_call_is_answered_before_earlier_long_ones) {
    static char spaces[MESSAGE_BYTES_MAX - 100];
    char text[TEXT_MAX], call[128];
    ControlServer server;
    int long_ones[12], short_one;

    CHECK_OK(control_server_begin(&server, 0));
    memset(spaces, ' ', sizeof(spaces));
    short_one = control_connect(&server);
    CHECK_OK(ping(short_one));
    for (size_t i = 0; i < ARRAY_SIZE(long_ones); i++) {
        long_ones[i] = control_connect(&server);
        CHECK_OK(long_ones[i]);
        CHECK_OK(control_say(long_ones[i], spaces, sizeof(spaces)));
        CHECK(is_taken(long_ones[i]));
    }
    /* All that makes a call of it comes at once, the short one last. */
    CHECK_OK(kill(server.pid, SIGSTOP));
    for (size_t i = 0; i < ARRAY_SIZE(long_ones); i++)
        CHECK_OK(control_say(long_ones[i], PING, sizeof(PING)));
    snprintf(call, sizeof(call),
             "{\"method\":\"io.profd.Control.SetLogLevel\",\"parameters\":"
             "{\"level\":\"info\"}}");
    CHECK_OK(control_say(short_one, call, strlen(call) + 1));
    CHECK_OK(kill(server.pid, SIGCONT));
    CHECK_OK(control_hear(short_one, text, sizeof(text)));
    printf("# %s\n", text);
    /* The first ping was its own. */
    CHECK(strcmp(text, "{\"parameters\":{\"previous\":\"1\"}}") == 0 ||
          strcmp(text, "{\"parameters\":{\"previous\":\"2\"}}") == 0);
    for (size_t i = 0; i < ARRAY_SIZE(long_ones); i++) {
        CHECK_OK(control_hear(long_ones[i], text, sizeof(text)));
        CHECK_STREQ(text, NOTHING);
        (void)close(long_ones[i]);
    }
    (void)close(short_one);
    CHECK_EQ(control_server_end(&server), 0);
}

static int compare(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

/* Prints latencies without checking them, because machines that run tests are busy. */
static int tell_latency(const char *what, int fd) {
    enum { CALLS = 500 };
    uint64_t ns[CALLS];

    for (size_t i = 0; i < CALLS; i++) {
        uint64_t begin = clock_monotonic_ns();
        int r = ping(fd);

        if (r < 0)
            return r;
        ns[i] = clock_monotonic_ns() - begin;
    }
    qsort(ns, CALLS, sizeof(*ns), compare);
    printf("# %s: median %" PRIu64 " us, 99 %% below %" PRIu64 " us\n", what, ns[CALLS / 2] / 1000,
           ns[CALLS * 99 / 100] / 1000);
    return 0;
}

/* Attacks of all kinds at once, from separate processes, until they are killed. */
static pid_t attack(const ControlServer *server, int kind) {
    static char big[MESSAGE_BYTES_MAX];
    char text[TEXT_MAX];
    pid_t pid;

    (void)fflush(stdout);
    pid = fork();
    if (pid != 0)
        return pid;
    memset(big, '[', sizeof(big));
    memcpy(big, "{\"method\":\"a.b\",\"parameters\":{\"a\":[1", 36);
    for (size_t i = 36; i < 32000; i += 2)
        memcpy(big + i, ",1", 2);
    for (;;) {
        int fd = geteuid() == 0 ? control_connect_as(server, 1001 + (uid_t)kind, 1001, 0)
                                : control_connect(server);

        switch (kind) {
        case 0: /* as many connections as there can be */
            break;
        case 1: /* calls, and nothing is read */
            while (flood(fd, PING, sizeof(PING)) > 0)
                (void)usleep(1000);
            break;
        case 2: /* what takes long to look at */
            (void)control_say(fd, big, sizeof(big));
            (void)control_say(fd, "", 1);
            break;
        case 3: /* calls as fast as they are answered */
            while (control_ask(fd, PING, text, sizeof(text)) > 0)
                ;
            break;
        }
        closep(&fd);
    }
}

TEST(other_clients_are_served_during_all_attacks_at_once) {
    pid_t attackers[4];
    ControlServer server;
    int fd;

    CHECK_OK(control_server_begin(&server, 0));
    fd = control_connect(&server);
    CHECK_OK(tell_latency("alone", fd));
    for (size_t i = 0; i < ARRAY_SIZE(attackers); i++)
        attackers[i] = attack(&server, (int)i);
    CHECK_OK(tell_latency("under attack", fd));
    for (size_t i = 0; i < ARRAY_SIZE(attackers); i++) {
        (void)kill(attackers[i], SIGKILL);
        (void)waitpid(attackers[i], NULL, 0);
    }
    CHECK_OK(ping(fd));
    (void)close(fd);
    CHECK(memory_is_bounded(&server));
    CHECK_EQ(control_server_end(&server), 0);
}

TEST(a_thousand_new_connections_do_not_disturb_existing_ones) {
    ControlServer server;
    int first, fds[MANY];

    CHECK_OK(control_server_begin(&server, 0));
    first = control_connect(&server);
    CHECK_OK(ping(first));
    for (int i = 0; i < MANY; i++) {
        fds[i] = control_connect(&server);
        CHECK_OK(fds[i]);
        if (i % 50 == 0)
            CHECK_OK(ping(first));
    }
    CHECK_OK(ping(first));
    for (int i = 0; i < MANY; i++)
        closep(&fds[i]);
    CHECK_OK(ping(first));
    (void)close(first);
    CHECK(memory_is_bounded(&server));
    CHECK_EQ(control_server_end(&server), 0);
}

/* On a listening socket that does not refuse descriptors, as before Linux 6.16. */
TEST(descriptors_that_take_for_ever_to_close_delay_nobody) {
    enum { ROOM = 15 }; /* for connections of a user who has one already */
    int connections[ROOM + 1], other;
    ControlServer server;
    Lingering read_with, unread, turned_away;
    char text[TEXT_MAX];

    CHECK_OK(control_server_begin(&server, 0));
    /* Made here, so that the server does not have them. */
    CHECK_OK(lingering_new(&read_with));
    CHECK_OK(lingering_new(&unread));
    CHECK_OK(lingering_new(&turned_away));
    other = control_connect(&server);
    CHECK(other >= 0);
    CHECK_OK(ping(other));
    /* With a whole message; then behind one for which no reply was read yet. */
    connections[0] = control_connect(&server);
    CHECK_OK(lingering_send(&read_with, connections[0], PING, sizeof(PING), 0));
    CHECK_EQ(control_hear(connections[0], text, sizeof(text)), 0);
    CHECK_OK(ping(other));
    connections[1] = control_connect(&server);
    CHECK_OK(control_say(connections[1], STOP, sizeof(STOP)));
    CHECK_OK(lingering_send(&unread, connections[1], "{", 1, 0));
    (void)close(connections[1]);
    CHECK_OK(ping(other));
    (void)close(connections[0]);
    for (size_t i = 0; i < ROOM; i++) {
        connections[i] = control_connect(&server);
        CHECK_OK(ping(connections[i]));
    }
    /* There is no room for it. */
    (void)kill(server.pid, SIGSTOP);
    connections[ROOM] = control_connect(&server);
    CHECK_OK(lingering_send(&turned_away, connections[ROOM], PING, sizeof(PING), 0));
    (void)kill(server.pid, SIGCONT);
    CHECK(control_hear(connections[ROOM], text, sizeof(text)) > 0);
    CHECK(strstr(text, "Busy") != NULL);
    CHECK_OK(ping(other));
    for (size_t i = 0; i <= ROOM; i++)
        (void)close(connections[i]);
    CHECK_OK(ping(other));
    (void)close(other);
    CHECK_EQ(control_server_end(&server), 0);
}

/* The ticks of the server's CPU time. */
static uint64_t ticks_of(const ControlServer *server) {
    char path[64], text[1024];
    uint64_t user, system;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)server->pid);
    if (file_read_text(path, text, sizeof(text)) < 0 ||
        sscanf(strrchr(text, ')'),
               ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %" SCNu64 " %" SCNu64, &user,
               &system) != 2)
        abort();
    return user + system;
}

/* The kernel keeps it apart, and shows the socket as readable. */
TEST(an_urgent_byte_costs_no_time_and_hides_no_descriptor) {
    Lingering alone, followed;
    ControlServer server;
    char text[TEXT_MAX];
    int urgent, first, second, other;
    uint64_t before;

    CHECK_OK(control_server_begin(&server, 0));
    CHECK_OK(lingering_new(&alone));
    CHECK_OK(lingering_new(&followed));
    other = control_connect(&server);
    CHECK_OK(ping(other));
    urgent = control_connect(&server);
    CHECK_EQ(send(urgent, "!", 1, MSG_OOB | MSG_NOSIGNAL), 1);
    before = ticks_of(&server);
    (void)usleep(500000);
    CHECK(ticks_of(&server) - before < (uint64_t)sysconf(_SC_CLK_TCK) / 4);
    first = control_connect(&server);
    CHECK_OK(lingering_send(&alone, first, "!", 1, MSG_OOB));
    CHECK_OK(ping(other));
    second = control_connect(&server);
    CHECK_OK(lingering_send(&followed, second, "!", 1, MSG_OOB));
    (void)send(second, PING, sizeof(PING), MSG_NOSIGNAL);
    CHECK_OK(ping(other));
    CHECK(control_hear(first, text, sizeof(text)) <= 0);
    (void)close(urgent);
    (void)close(first);
    (void)close(second);
    CHECK_OK(ping(other));
    (void)close(other);
    CHECK_EQ(control_server_end(&server), 0);
}

TEST_MAIN()
