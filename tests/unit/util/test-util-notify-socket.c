/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "util/notify-socket.h"

#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "test.h"
#include "util/clock.h"
#include "util/macro.h"

/* What a service manager gets, and that nobody waits for one that does not read. */

/* A manager that listens at an abstract address. */
static int manager(void) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int n = snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "profd-test-%d", getpid());
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    char name[128];

    snprintf(name, sizeof(name), "@%s", address.sun_path + 1);
    if (fd < 0 || setenv("NOTIFY_SOCKET", name, 1) < 0 ||
        bind(fd, (const struct sockaddr *)&address,
             (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n)) < 0)
        return -1;
    return fd;
}

static const char *received(int fd) {
    static char text[256];
    ssize_t n = recv(fd, text, sizeof(text) - 1, 0);

    text[MAX(n, (ssize_t)0)] = '\0';
    return text;
}

TEST(messages_arrive_as_they_were_sent) {
    _cleanup_close_ int fd = manager();

    CHECK(fd >= 0);
    notify_socket_send("STATUS=a b", 0);
    CHECK_STREQ(received(fd), "STATUS=a b");
    notify_socket_ready();
    CHECK_STREQ(received(fd), "READY=1");
    notify_socket_stopping();
    CHECK_STREQ(received(fd), "STOPPING=1");
    notify_socket_reloading();
    CHECK(strncmp(received(fd), "RELOADING=1\nMONOTONIC_USEC=", 27) == 0);
}

TEST(a_manager_that_does_not_read_holds_up_nobody) {
    _cleanup_close_ int fd = manager();
    unsigned n = 0;

    CHECK(fd >= 0);
    /* Far more than a queue of datagrams holds: what finds no room is dropped. */
    for (unsigned i = 0; i < 10000; i++)
        notify_socket_send("WATCHDOG=1", 0);
    while (strcmp(received(fd), "WATCHDOG=1") == 0)
        n++;
    CHECK(n >= 1 && n < 10000);
}

TEST(without_a_manager_or_with_a_bad_address_nothing_is_sent) {
    static const char *const bad[] = {"", "relative", "/", "@", "/no/such/socket"};

    CHECK_OK(unsetenv("NOTIFY_SOCKET"));
    notify_socket_ready();
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        CHECK_OK(setenv("NOTIFY_SOCKET", bad[i], 1));
        notify_socket_ready();
    }
}

TEST(the_interval_of_the_watchdog_comes_from_the_environment) {
    CHECK_OK(setenv("WATCHDOG_USEC", "2500000", 1));
    CHECK_EQ(notify_socket_watchdog_ns(), 2500 * NS_PER_MS);
    CHECK_OK(setenv("WATCHDOG_USEC", "soon", 1));
    CHECK_EQ(notify_socket_watchdog_ns(), (uint64_t)0);
    CHECK_OK(setenv("WATCHDOG_USEC", "18446744073709551615", 1));
    CHECK_EQ(notify_socket_watchdog_ns(), (uint64_t)0);
    CHECK_OK(unsetenv("WATCHDOG_USEC"));
    CHECK_EQ(notify_socket_watchdog_ns(), (uint64_t)0);
}

TEST_MAIN()
