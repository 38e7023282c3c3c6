/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "make-served.h"

#include <poll.h>
#include <pthread.h>

#include "make-lingering.h"
#include "util/bytes.h"
#include "util/fd-message.h"

/* What the keeper answers to malformed messages, to several threads, and after the end of a helper.
 */

/* The answer to a message with any content. */
static int answer_to(int socket, const void *bytes, size_t n, const int *fds, size_t n_fds) {
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(16 * sizeof(int))] = {};
    struct iovec part = {.iov_base = (void *)bytes, .iov_len = n};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    KeeperReply reply;
    int fd = -1, r;

    if (n_fds > 0) {
        message.msg_control = control;
        message.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);

        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
        memcpy(CMSG_DATA(header), fds, n_fds * sizeof(int));
    }
    if (sendmsg(socket, &message, MSG_NOSIGNAL) < 0)
        return -errno;
    r = message_receive(socket, &reply, sizeof(reply), &fd);
    closep(&fd);
    return r < 0 ? -EPIPE : reply.result;
}

TEST(malformed_messages_are_answered_with_an_error) {
    static uint8_t bytes[2 * sizeof(KeeperRequest)];
    KeeperRequest request = {.protocol = KEEPER_PROTOCOL, .kind = KEEPER_STATUS};
    int pipes[2], fds[12];
    Served served;
    uint64_t seed = 42;

    CHECK_OK(served_begin(&served));
    served.keeper = keeper_disconnect(served.keeper);
    CHECK_OK(pipe2(pipes, O_CLOEXEC));
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
        fds[i] = pipes[1];
    for (int i = 0; i < 2000; i++) {
        for (size_t k = 0; k < 64; k++) {
            seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
            bytes[k] = (uint8_t)(seed >> 56);
        }
        if (i % 2)
            store_u32(bytes, KEEPER_PROTOCOL, false);
        if (i % 3)
            store_u32(bytes + 4, bytes[5] % (KEEPER_KINDS + 1), false);
        (void)answer_to(served.sockets[1], bytes,
                        i % 5 ? sizeof(KeeperRequest) : (size_t)i % 64 + 1, NULL, 0);
    }
    CHECK_EQ(answer_to(served.sockets[1], bytes, sizeof(bytes), NULL, 0), -EMSGSIZE);
    CHECK_EQ(answer_to(served.sockets[1], &request, sizeof(request), fds, 1), -EBADMSG);
    CHECK_EQ(answer_to(served.sockets[1], &request, sizeof(request), fds, 2), -EMSGSIZE);
    CHECK_EQ(answer_to(served.sockets[1], &request, sizeof(request), fds, 12), -EMSGSIZE);
    CHECK_EQ(answer_to(served.sockets[1], &request, sizeof(request), NULL, 0), 0);
    request.kind = KEEPER_OPEN_FILE; /* which is the opener's to answer */
    CHECK_EQ(answer_to(served.sockets[1], &request, sizeof(request), NULL, 0), -EOPNOTSUPP);
    /* The keeper must have closed all descriptors that were sent. */
    (void)close(pipes[1]);
    CHECK_EQ(read(pipes[0], bytes, 1), 0);
    (void)close(pipes[0]);
    CHECK_EQ(served_end(&served), 0);
}

static void *scan(void *argument) {
    Served *served = argument;

    for (int i = 0; i < 200; i++) {
        int error, fd;

        if (keeper_read_process(served->keeper, (uint32_t)getpid(), (uint32_t)getpid(),
                                KEEPER_MAPS_CODE, 0, &error, &fd) < 0 ||
            error != 0)
            return (void *)1;
        (void)close(fd);
    }
    return NULL;
}

TEST(threads_get_their_own_answers) {
    pthread_t threads[3];
    KeeperStatus status;
    Served served;
    void *result;

    CHECK_OK(served_begin(&served));
    for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, scan, &served), 0);
    for (int i = 0; i < 200; i++)
        CHECK_OK(keeper_status(served.keeper, &status));
    for (size_t i = 0; i < ARRAY_SIZE(threads); i++) {
        CHECK_EQ(pthread_join(threads[i], &result), 0);
        CHECK(result == NULL);
    }
    CHECK_EQ(served_end(&served), 0);
}

/* The keeper's newest child. */
static pid_t newest_helper_of(const Served *served) {
    char path[64], text[256];
    const char *last;

    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)served->pid, (int)served->pid);
    if (file_read_text(path, text, sizeof(text)) <= 0)
        return -1;
    text[strcspn(text, "\n")] = '\0';
    while (text[0] && text[strlen(text) - 1] == ' ')
        text[strlen(text) - 1] = '\0';
    last = strrchr(text, ' ');
    return (pid_t)atoi(last ? last + 1 : text);
}

/* Not reaped, so it is a zombie. */
static bool is_dead(pid_t pid) {
    char path[64], text[256];

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    return file_read_text(path, text, sizeof(text)) <= 0 || strstr(text, ") Z ");
}

/* The result of sealing an open file, by a thread that waits for it. */
typedef struct Sealing {
    Keeper *keeper;
    int fd, result;
} Sealing;

static void *seal(void *userdata) {
    Sealing *sealing = userdata;

    sealing->result = keeper_seal(sealing->keeper, sealing->fd, false);
    return NULL;
}

TEST(dead_or_hung_helpers_are_replaced_and_delay_nobody) {
    const char *path = own_path("sealed");
    _cleanup_close_ int file = -1;
    Sealing sealing;
    KeeperStatus status;
    pthread_t thread;
    pid_t first, second, sealer;
    Served served;
    int fd;

    CHECK_OK(make_file(path, 0640));
    file = open(path, O_RDONLY | O_CLOEXEC);
    (void)unlink(path);
    CHECK_OK(served_begin(&served));
    CHECK_OK(keeper_seal(served.keeper, file, false));
    sealer = newest_helper_of(&served);
    (void)kill(sealer, SIGSTOP);
    sealing = (Sealing){.keeper = served.keeper, .fd = file, .result = 1};
    CHECK_EQ(pthread_create(&thread, NULL, seal, &sealing), 0);
    CHECK_OK(keeper_open_file(served.keeper, KEEPER_KALLSYMS, &fd));
    (void)close(fd);
    first = newest_helper_of(&served);
    CHECK(first > 0);
    (void)kill(first, SIGKILL);
    CHECK_EQ(keeper_open_file(served.keeper, KEEPER_KALLSYMS, &fd), -EIO);
    CHECK_OK(keeper_open_file(served.keeper, KEEPER_KALLSYMS, &fd));
    (void)close(fd);
    second = newest_helper_of(&served);
    CHECK(second > 0 && second != first);
    (void)kill(second, SIGSTOP);
    CHECK_OK(keeper_status(served.keeper, &status));
    CHECK_EQ(keeper_open_file(served.keeper, KEEPER_KALLSYMS, &fd), -ETIMEDOUT);
    CHECK_OK(keeper_status(served.keeper, &status));
    CHECK_OK(keeper_open_file(served.keeper, KEEPER_KALLSYMS, &fd));
    (void)close(fd);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(sealing.result, -ETIMEDOUT);
    /* A recorder that is stopping scans no more, but still seals finished segments. */
    keeper_stop_waiting(served.keeper);
    CHECK_OK(keeper_seal(served.keeper, file, false));
    /* The helper must have been killed, or a missing file system would cost an opener each time. */
    for (unsigned i = 0; i < 10000 && !(is_dead(second) && is_dead(sealer)); i++)
        (void)usleep(1000);
    CHECK(is_dead(second));
    CHECK(is_dead(sealer));
    CHECK_EQ(served_end(&served), 0);
}

/* Returns 1 if no helper took it. */
static unsigned dispose_or_close(Served *served, int fd) {
    if (keeper_dispose(served->keeper, fd))
        return 0;
    (void)close(fd);
    return 1;
}

TEST(what_takes_for_ever_to_close_is_closed_by_a_helper_that_is_replaced) {
    Lingering lingering;
    unsigned not_taken = 0;
    int pipes[2];
    Served served;
    char byte;

    CHECK_OK(served_begin(&served));
    /* Made here, so that only the helper gets them. */
    CHECK_OK(lingering_new(&lingering));
    CHECK_OK(pipe2(pipes, O_CLOEXEC));
    CHECK(keeper_dispose(served.keeper, lingering.fd));
    /* Behind it, until no more fit. */
    for (unsigned i = 0; i < 500; i++)
        not_taken += dispose_or_close(&served, fcntl(pipes[1], F_DUPFD_CLOEXEC, 3));
    not_taken += dispose_or_close(&served, pipes[1]);
    CHECK_EQ(read(pipes[0], &byte, 1), 0);
    /* On a busy machine a helper that was just started may take nothing in time. */
    CHECK(not_taken < 50);
    (void)close(pipes[0]);
    (void)close(lingering.other);
    CHECK_EQ(served_end(&served), 0);
}

TEST(the_death_of_the_keeper_is_detected) {
    KeeperStatus status;
    struct pollfd life;
    Served served;

    CHECK_OK(served_begin(&served));
    life = (struct pollfd){.fd = keeper_fd(served.keeper), .events = POLLIN};
    CHECK_OK(keeper_status(served.keeper, &status));
    CHECK_EQ(poll(&life, 1, 0), 0);
    (void)kill(served.pid, SIGKILL);
    CHECK_EQ(poll(&life, 1, 10000), 1);
    CHECK_EQ(keeper_status(served.keeper, &status), -EPIPE);
    CHECK(served_end(&served) != 0);
}

TEST_MAIN()
