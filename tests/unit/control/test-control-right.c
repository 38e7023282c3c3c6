/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "test.h"

#include "make-control.h"

/* The users that may connect, how often, and which methods they may call: connections as other
 * users. */

enum { TEXT_MAX = 4096, NOBODY = 65534, READER = 2001, ADMIN = 3001, OTHER = 1001 };

#define PING   "{\"method\":\"io.profd.Control.Ping\"}"
#define DENIED "{\"error\":\"org.varlink.service.PermissionDenied\",\"parameters\":{}}"
#define BUSY   "{\"error\":\"io.profd.Control.Busy\",\"parameters\":{\"retryAfterMs\":1000}}"

#define NEEDS_ROOT()                                                                               \
    do {                                                                                           \
        if (geteuid() != 0)                                                                        \
            TEST_SKIP("needs root, to connect as others");                                         \
    } while (0)

TEST(each_user_may_call_exactly_the_methods_of_his_right) {
    /* clang-format off */
    static const struct { uid_t uid; gid_t gid, group; Right right; } peers[] = {
        { 0,      0,                 0,                 RIGHT_ADMIN   },
        { OTHER,  OTHER,             0,                 RIGHT_ANYONE  },
        { OTHER,  0,                 0,                 RIGHT_ANYONE  },
        { OTHER,  OTHER,             12345,             RIGHT_ANYONE  },
        { READER, READER,            CONTROL_READ_GID,  RIGHT_READ    },
        { READER, CONTROL_READ_GID,  0,                 RIGHT_READ    },
        { ADMIN,  ADMIN,             CONTROL_ADMIN_GID, RIGHT_ADMIN   },
        { ADMIN,  CONTROL_ADMIN_GID, CONTROL_READ_GID,  RIGHT_ADMIN   },
        { ADMIN,  CONTROL_READ_GID,  CONTROL_ADMIN_GID, RIGHT_ADMIN   },
        { NOBODY, NOBODY,            0,                 RIGHT_NOTHING },
        { NOBODY, CONTROL_ADMIN_GID, CONTROL_ADMIN_GID, RIGHT_NOTHING },
        { NOBODY, 0,                 CONTROL_READ_GID,  RIGHT_NOTHING },
    };
    /* clang-format on */
    ControlMethod methods[CONTROL_METHODS_MAX];
    size_t n = control_table(methods);
    char call[256], text[TEXT_MAX];
    ControlServer server;

    NEEDS_ROOT();
    CHECK_OK(control_server_begin(&server, 0));
    for (size_t i = 0; i < ARRAY_SIZE(peers); i++) {
        int fd = control_connect_as(&server, peers[i].uid, peers[i].gid, peers[i].group);

        CHECK_OK(fd);
        for (size_t k = 0; k < n && peers[i].right > RIGHT_NOTHING; k++) {
            bool is_denied;

            /* No method has this parameter, so a user with the right gets another error. */
            snprintf(call, sizeof(call),
                     "{\"method\":\"io.profd.Control.%s\",\"parameters\":{\"zz\":1}%s}",
                     methods[k].name,
                     methods[k].mode == METHOD_UPGRADE ? ",\"upgrade\":true" : ",\"more\":true");
            CHECK_OK(control_ask(fd, call, text, sizeof(text)));
            is_denied = strcmp(text, DENIED) == 0;
            CHECK(is_denied || strstr(text, "\"org.varlink.service.InvalidParameter\""));
            if (is_denied != (methods[k].right > peers[i].right))
                printf("# user %u group %u: %s\n", (unsigned)peers[i].uid, (unsigned)peers[i].group,
                       methods[k].name);
            CHECK_EQ(is_denied, methods[k].right > peers[i].right);
        }
        if (peers[i].right == RIGHT_NOTHING) {
            CHECK_OK(control_hear(fd, text, sizeof(text)));
            CHECK_STREQ(text, DENIED);
            CHECK_EQ(control_hear(fd, text, sizeof(text)), 0);
        }
        (void)close(fd);
    }
    CHECK_EQ(control_server_end(&server), 0);
}

/* Whether the client was admitted; -errno. */
static int is_let_in(int fd) {
    char text[TEXT_MAX];
    int r = fd;

    if (r >= 0)
        r = control_say(fd, PING, sizeof(PING));
    if (r >= 0 || r == -EPIPE)
        r = control_hear(fd, text, sizeof(text));
    if (r < 0)
        return r;
    return strcmp(text, "{\"parameters\":{}}") == 0 ? 1 : strcmp(text, BUSY) == 0 ? 0 : -EBADMSG;
}

/* The number of n clients that are admitted; they stay connected. */
static int let_in(const ControlServer *server, uid_t uid, gid_t group, int n, int *ret_fds) {
    int in = 0;

    for (int i = 0; i < n; i++) {
        int r;

        ret_fds[i] = control_connect_as(server, uid, uid, group);
        r = is_let_in(ret_fds[i]);
        if (r < 0)
            return r;
        in += r;
    }
    return in;
}

/* Waits until the server has noticed that they are gone: root is admitted as soon as there is
 * room. */
static void close_all(int *fds, size_t n) {
    for (size_t i = 0; i < n; i++)
        closep(&fds[i]);
}

TEST(there_are_64_connections_and_some_are_reserved_for_users_with_rights) {
    int fds[256], n = 0;
    ControlServer server;

    NEEDS_ROOT();
    memset(fds, 0xff, sizeof(fds));
    CHECK_OK(control_server_begin(&server, 0));
    /* Without rights: 2 a user, 8 in all. */
    for (uid_t uid = OTHER; uid < OTHER + 4; uid++, n += 3)
        CHECK_EQ(let_in(&server, uid, 0, 3, fds + n), 2);
    CHECK_EQ(let_in(&server, OTHER + 4, 0, 1, fds + n++), 0);
    /* Readers: 16 a user, and 48 together with those above. */
    CHECK_EQ(let_in(&server, READER, CONTROL_READ_GID, 17, fds + n), 16);
    n += 17;
    CHECK_EQ(let_in(&server, READER + 1, CONTROL_READ_GID, 17, fds + n), 16);
    n += 17;
    CHECK_EQ(let_in(&server, READER + 2, CONTROL_READ_GID, 9, fds + n), 8);
    n += 9;
    CHECK_EQ(let_in(&server, READER + 3, CONTROL_READ_GID, 1, fds + n++), 0);
    /* The rest is reserved for administrators. */
    CHECK_EQ(let_in(&server, 0, 0, 10, fds + n), 10);
    n += 10;
    CHECK_EQ(let_in(&server, ADMIN, CONTROL_ADMIN_GID, 7, fds + n), 6);
    n += 7;
    CHECK_EQ(let_in(&server, 0, 0, 1, fds + n++), 0);
    close_all(fds, ARRAY_SIZE(fds));
    CHECK_EQ(control_server_end(&server), 0);
}

TEST(a_closed_connection_makes_room_for_another) {
    ControlServer server;
    int fds[17], fd = -1, r = 0;

    CHECK_OK(control_server_begin(&server, 0));
    for (int i = 0; i < 17; i++) {
        fds[i] = control_connect(&server);
        CHECK_EQ(is_let_in(fds[i]), i < 16);
    }
    closep(&fds[3]);
    /* It is seen to be gone when the server looks. */
    for (int i = 0; r == 0 && i < 1000; i++) {
        closep(&fd);
        fd = control_connect(&server);
        r = is_let_in(fd);
        (void)usleep(r == 0 ? 10000 : 0);
    }
    CHECK_EQ(r, 1);
    close_all(fds, ARRAY_SIZE(fds));
    closep(&fd);
    CHECK_EQ(control_server_end(&server), 0);
}

#define READ "{\"method\":\"io.profd.Control.Read\",\"upgrade\":true}"

TEST(one_user_cannot_use_all_transfers) {
    static const struct {
        uid_t uid;
        gid_t group;
        int lets;
    } rows[] = {{READER, CONTROL_READ_GID, 4},
                {READER + 1, CONTROL_READ_GID, 4},
                {READER + 2, CONTROL_READ_GID, 0},
                {ADMIN, CONTROL_ADMIN_GID, 4},
                {0, 0, 4},
                {ADMIN + 1, CONTROL_ADMIN_GID, 0}};
    int fds[ARRAY_SIZE(rows) * 5], n = 0;
    ControlServer server;
    char text[TEXT_MAX];

    NEEDS_ROOT();
    CHECK_OK(control_server_begin(&server, 0));
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        int lets = 0;

        /* None is read, so each stays on its way. */
        for (int k = 0; k < 5; k++, n++) {
            fds[n] = control_connect_as(&server, rows[i].uid, rows[i].uid, rows[i].group);
            CHECK_OK(fds[n]);
            CHECK_OK(control_ask(fds[n], READ, text, sizeof(text)));
            lets += strcmp(text, "{\"parameters\":{\"bytes\":8388608}}") == 0;
        }
        CHECK_EQ(lets, rows[i].lets);
        CHECK(lets == 5 || strcmp(text, BUSY) == 0);
    }
    for (int i = 0; i < n; i++)
        closep(&fds[i]);
    CHECK_EQ(control_server_end(&server), 0);
}

TEST_MAIN()
