/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/sendfile.h>
#include <sys/socket.h>

#include "control/control-private.h"
#include "util/clock.h"
#include "util/thread.h"

/*
 * Sends a file, or what a stream makes, to a socket. Reading may have to wait for a disk, so each
 * transfer has a thread. The main thread ends a transfer by shutting its socket down, and does not
 * wait for the thread, which may hang in a read. The last of the two to finish frees the transfer.
 * A thread that hangs counts as running, so that clients who reconnect again and again cannot fill
 * the process with such threads.
 */

enum {
    STACK_BYTES = 64 * 1024,
    SLICE_BYTES = 1 << 20,
};

struct Transfer {
    TransferOptions options;
    int socket; /* a duplicate, since the caller's may be closed before the thread ends */
    int ended;  /* becomes readable when the thread is done */
    LoopSource *source;
    atomic_uint holders;
};

static atomic_uint transfer_threads;

static void transfer_release(Transfer *transfer) {
    if (atomic_fetch_sub(&transfer->holders, 1) > 1)
        return;
    closep(&transfer->socket);
    closep(&transfer->ended);
    closep(&transfer->options.fd);
    buffer_done(&transfer->options.first);
    free(transfer);
}

/* Gives up a socket that takes nothing for a long time. */
static int transfer_wait_writable(const Transfer *transfer) {
    struct pollfd fd = {.fd = transfer->socket, .events = POLLOUT};
    int n = poll(&fd, 1, (int)(transfer->options.stuck_ns / NS_PER_MS));

    if (n < 0)
        return errno == EINTR ? 0 : -errno;
    return n == 0 ? -ETIMEDOUT : 0;
}

static int transfer_send(void *userdata, Bytes left) {
    Transfer *transfer = userdata;
    int r = 0;

    while (r == 0 && left.size > 0) {
        ssize_t n = send(transfer->socket, left.data, left.size, MSG_DONTWAIT | MSG_NOSIGNAL);

        if (n < 0)
            r = errno == EAGAIN ? transfer_wait_writable(transfer) : -errno;
        left.data += MAX(n, 0);
        left.size -= (size_t)MAX(n, 0);
    }
    return r;
}

static int transfer_send_file(Transfer *transfer) {
    uint64_t left = transfer->options.bytes;
    off_t offset = 0;
    int r = 0;

    while (r == 0 && left > 0) {
        ssize_t n = sendfile(transfer->socket, transfer->options.fd, &offset,
                             (size_t)MIN(left, (uint64_t)SLICE_BYTES));

        if (n < 0)
            r = errno == EAGAIN ? transfer_wait_writable(transfer) : -errno;
        else if (n == 0)
            r = -ENODATA;
        left -= (uint64_t)MAX(n, 0);
    }
    return r;
}

static void *transfer_run(void *userdata) {
    Transfer *transfer = userdata;
    uint64_t one = 1;

    bool streams = transfer->options.stream.run;
    int r = transfer_send(transfer, buffer_bytes(&transfer->options.first));

    if (streams)
        transfer->options.stream.run(
            transfer->options.stream.userdata,
            &(CallSink){r < 0 ? -1 : transfer->socket, transfer_send, transfer});
    else if (r == 0)
        (void)transfer_send_file(transfer);
    /* This may be the last reference to a deleted file, whose blocks go with it: the main thread
     * must not wait for that. */
    closep(&transfer->options.fd);
    (void)!write(transfer->ended, &one, sizeof(one));
    transfer_release(transfer);
    if (!streams)
        atomic_fetch_sub(&transfer_threads, 1);
    return NULL;
}

static int transfer_start(Transfer *transfer) {
    const ThreadOptions options = {.name = "profd-transfer",
                                   .nice = THREAD_NICE_USUAL,
                                   .stack_bytes = transfer->options.stream.run ? 0 : STACK_BYTES};
    pthread_t thread;
    int r;

    atomic_fetch_add(&transfer->holders, 1);
    if (!transfer->options.stream.run)
        atomic_fetch_add(&transfer_threads, 1);
    r = thread_start(&options, transfer_run, transfer, &thread);
    if (r == 0) {
        (void)pthread_detach(thread);
        return 0;
    }
    atomic_fetch_sub(&transfer->holders, 1);
    if (!transfer->options.stream.run)
        atomic_fetch_sub(&transfer_threads, 1);
    return r;
}

int transfer_new(const TransferOptions *options, Transfer **ret) {
    Transfer *transfer = calloc(1, sizeof(*transfer));
    TransferOptions taken = *options;
    int r;

    if (!transfer) {
        closep(&taken.fd);
        buffer_done(&taken.first);
        return -ENOMEM;
    }
    transfer->options = taken;
    transfer->holders = 1;
    transfer->ended = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    transfer->socket = fcntl(taken.socket, F_DUPFD_CLOEXEC, 0);
    r = transfer->ended < 0 || transfer->socket < 0 ? -errno : buffer_error(&taken.first);
    if (r == 0)
        r = loop_add_readable(taken.loop, transfer->ended, taken.on_end, taken.userdata,
                              &transfer->source);
    if (r == 0)
        r = transfer_start(transfer);
    if (r < 0) {
        loop_source_free(transfer->source);
        transfer_release(transfer);
        return r;
    }
    *ret = transfer;
    return 0;
}

unsigned transfer_running(void) {
    return atomic_load(&transfer_threads);
}

Transfer *transfer_free(Transfer *transfer) {
    if (!transfer)
        return NULL;
    (void)shutdown(transfer->socket, SHUT_RDWR);
    loop_source_free(transfer->source);
    transfer_release(transfer);
    return NULL;
}
