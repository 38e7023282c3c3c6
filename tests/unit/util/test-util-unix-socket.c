/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "util/unix-socket.h"

#include <errno.h>
#include <sys/socket.h>

#include "make-root.h"
#include "test.h"
#include "util/clock.h"
#include "util/macro.h"

/* A socket is made only where it may be, replaces only what it may, and lets only some connect. */

static struct sockaddr_un address_of(const char *name) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    snprintf(address.sun_path, sizeof(address.sun_path), "%s/%s", root, name);
    return address;
}

static int listen_at(const char *name, unsigned patience_s, int *ret_fd) {
    const struct sockaddr_un address = address_of(name);

    return unix_socket_listen(
        &address, &(UnixSocketOptions){.mask = 0117, .backlog = 1, .patience_s = patience_s},
        ret_fd);
}

static int connect_to(const char *name) {
    const struct sockaddr_un address = address_of(name);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
        closep(&fd);
    return fd;
}

TEST(a_socket_has_the_rights_that_were_asked_for) {
    const mode_t before = umask(0);
    _cleanup_close_ int fd = -1, client = -1;
    struct stat status;

    begin_root();
    CHECK_OK(listen_at("socket", 0, &fd));
    CHECK_OK(stat(address_of("socket").sun_path, &status));
    CHECK_EQ(status.st_mode & 0777, 0660);
    CHECK_EQ(umask(before), 0);
    client = connect_to("socket");
    CHECK(client >= 0);
    end_root();
}

TEST(a_socket_that_nobody_listens_on_is_replaced) {
    int fd = -1;

    begin_root();
    CHECK_OK(listen_at("socket", 0, &fd));
    closep(&fd);
    CHECK_OK(listen_at("socket", 0, &fd));
    closep(&fd);
    end_root();
}

TEST(a_socket_that_somebody_listens_on_is_left_also_if_his_queue_is_full) {
    _cleanup_close_ int fd = -1;
    int clients[4], other = -1;

    begin_root();
    CHECK_OK(listen_at("socket", 0, &fd));
    CHECK_EQ(listen_at("socket", 0, &other), -EADDRINUSE);
    for (size_t i = 0; i < ARRAY_SIZE(clients); i++)
        clients[i] = connect_to("socket");
    CHECK_EQ(listen_at("socket", 0, &other), -EADDRINUSE);
    for (size_t i = 0; i < ARRAY_SIZE(clients); i++)
        closep(&clients[i]);
    end_root();
}

TEST(a_listener_that_stays_is_waited_for_as_long_as_was_asked_for) {
    uint64_t before = clock_monotonic_ns();
    _cleanup_close_ int fd = -1;
    int other = -1;

    begin_root();
    CHECK_OK(listen_at("socket", 0, &fd));
    CHECK_EQ(listen_at("socket", 1, &other), -EADDRINUSE);
    CHECK(clock_monotonic_ns() - before >= NS_PER_SECOND * 9 / 10);
    end_root();
}

TEST(a_file_and_a_link_to_a_socket_are_not_replaced) {
    _cleanup_close_ int fd = -1;
    int other = -1;

    begin_root();
    put("/file", "x");
    CHECK_EQ(listen_at("file", 0, &other), -EEXIST);
    CHECK_OK(listen_at("socket", 0, &fd));
    CHECK_OK(symlink("socket", address_of("link").sun_path));
    CHECK_EQ(listen_at("link", 0, &other), -EEXIST);
    end_root();
}

TEST(a_folder_that_is_not_there_is_an_error) {
    int fd = -1;

    begin_root();
    CHECK_EQ(listen_at("nowhere/socket", 0, &fd), -ENOENT);
    end_root();
}

TEST_MAIN()
