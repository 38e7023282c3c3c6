/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "test.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/fanotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "control/control-private.h"
#include "util/file.h"

/* Files whose reads hang: each read of a marked file waits until the test, as the listener of
 * fanotify, allows it. No signal and no shutdown ends such a read sooner. */

enum { HUNG = 3, WAIT_MS = 20000, FILE_BYTES = 1 << 16, EVENTS_BYTES = 4096 };

typedef struct HangingFile {
    char path[32];
    int listener;
} HangingFile;

typedef struct Sending {
    Loop *loop;
    Transfer *transfers[HUNG];
    int ours[HUNG], theirs[HUNG];
} Sending;

static void hanging_file_done(HangingFile *file) {
    closep(&file->listener);
    (void)unlink(file->path);
}

/* Returns 0, or -EPERM where this process may not decide on the reads of others. */
static int hanging_file_init(HangingFile *ret) {
    HangingFile file = {.path = "/tmp/profd-test.XXXXXX"};
    _cleanup_close_ int fd = mkstemp(file.path);

    if (fd < 0 || ftruncate(fd, FILE_BYTES) < 0)
        return -errno;
    file.listener = fanotify_init(FAN_CLASS_CONTENT | FAN_CLOEXEC | FAN_NONBLOCK, O_RDONLY);
    if (file.listener < 0 ||
        fanotify_mark(file.listener, FAN_MARK_ADD, FAN_ACCESS_PERM, AT_FDCWD, file.path) < 0) {
        int r = -errno;

        hanging_file_done(&file);
        return r;
    }
    *ret = file;
    return 0;
}

/* Allows the reads that wait; returns how many that were. */
static int hanging_file_allow(const HangingFile *file) {
    _Alignas(struct fanotify_event_metadata) char events[EVENTS_BYTES];
    ssize_t size = read(file->listener, events, sizeof(events));
    const struct fanotify_event_metadata *event = (const void *)events;
    int n = 0;

    for (; FAN_EVENT_OK(event, size); event = FAN_EVENT_NEXT(event, size), n++) {
        struct fanotify_response response = {.fd = event->fd, .response = FAN_ALLOW};

        (void)!write(file->listener, &response, sizeof(response));
        (void)close(event->fd);
    }
    return n;
}

static int on_end(void *userdata _unused_) {
    return 0;
}

static int sending_begin(const HangingFile *file, Sending *sending) {
    int r = loop_new(&sending->loop);

    for (int i = 0; r == 0 && i < HUNG; i++) {
        TransferOptions options = {.loop = sending->loop, .bytes = FILE_BYTES, .on_end = on_end};
        int pair[2];

        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
            return -errno;
        options.socket = sending->ours[i] = pair[0];
        sending->theirs[i] = pair[1];
        options.stuck_ns = 1000000000;
        options.fd = open(file->path, O_RDONLY | O_CLOEXEC);
        r = options.fd < 0 ? -errno : transfer_new(&options, &sending->transfers[i]);
    }
    return r;
}

static int wait_readable(int fd) {
    struct pollfd readable = {.fd = fd, .events = POLLIN};

    return poll(&readable, 1, WAIT_MS) == 1 ? 0 : -ETIMEDOUT;
}

static int wait_for_threads(const HangingFile *file, unsigned wanted) {
    for (int i = 0; i < WAIT_MS / 10 && transfer_running() != wanted; i++) {
        (void)hanging_file_allow(file);
        (void)usleep(10000);
    }
    return transfer_running() == wanted ? 0 : -ETIMEDOUT;
}

TEST(a_transfer_ends_although_a_read_hangs) {
    HangingFile file;
    Sending sending = {};
    char byte;
    int r = hanging_file_init(&file);

    if (r == -EPERM)
        TEST_SKIP("a file that hangs needs root with the right to make a mount namespace");
    CHECK_OK(r);
    CHECK_OK(sending_begin(&file, &sending));
    CHECK_OK(wait_readable(file.listener));
    /* Here a join would hang for ever, since nobody but us allows the reads. */
    for (int i = 0; i < HUNG; i++) {
        sending.transfers[i] = transfer_free(sending.transfers[i]);
        closep(&sending.ours[i]);
        CHECK_OK(wait_readable(sending.theirs[i]));
        CHECK_EQ(recv(sending.theirs[i], &byte, 1, 0), 0);
    }
    CHECK_EQ(transfer_running(), HUNG);
    CHECK_OK(wait_for_threads(&file, 0));
    for (int i = 0; i < HUNG; i++)
        closep(&sending.theirs[i]);
    loop_free(sending.loop);
    hanging_file_done(&file);
}

typedef struct Sent {
    Loop *loop;
    int fd;
    bool is_closed;
} Sent;

static int on_sent(void *userdata) {
    Sent *sent = userdata;

    sent->is_closed = fcntl(sent->fd, F_GETFD) < 0;
    loop_stop(sent->loop);
    return 0;
}

TEST(a_file_that_was_sent_is_closed_before_the_main_thread_hears_of_it) {
    char path[] = "/tmp/profd-test.XXXXXX";
    TransferOptions options = {.bytes = 5, .stuck_ns = 1000000000, .on_end = on_sent};
    Transfer *transfer = NULL;
    Sent sent = {};
    int pair[2];

    CHECK_OK(loop_new(&sent.loop));
    CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair));
    options.fd = sent.fd = mkostemp(path, O_CLOEXEC);
    CHECK(sent.fd >= 0);
    CHECK_OK(unlink(path));
    CHECK_EQ(write(sent.fd, "bytes", 5), 5);
    options.loop = sent.loop;
    options.socket = pair[0];
    options.userdata = &sent;
    CHECK_OK(transfer_new(&options, &transfer));
    CHECK_OK(loop_run(sent.loop));
    CHECK(sent.is_closed);
    transfer_free(transfer);
    close(pair[0]);
    close(pair[1]);
    loop_free(sent.loop);
}

TEST_MAIN()
