/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "s3/s3-destination.h"

#include <netinet/in.h>
#include <pthread.h>
#include <sys/fsuid.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "transport/retry.h"
#include "test.h"
#include "util/clock.h"

/* A destination says where a fault is: with profd, on this host, or with the store. profd and the
 * store are threads of the test, and profd has one snapshot. */

#define SNAPSHOT(name)                                                                             \
    "{\"parameters\":{\"snapshot\":{\"name\":\"" name "\",\"path\":\"/a\",\"session\":\"a\","      \
    "\"layout\":\"file\",\"sensitive\":false,\"pinned\":false,\"reason\":\"\",\"uid\":0,"          \
    "\"createdUsec\":1,\"samples\":7,\"lost\":0,\"bytes\":1,\"partial\":[],\"files\":[]}}}"
#define NAME_OF_64 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define LISTED     SNAPSHOT("a")
#define NONE       "{\"parameters\":{\"snapshot\":null}}"
#define READ_SMALL "{\"parameters\":{\"bytes\":1}}"
#define READ_LARGE "{\"parameters\":{\"bytes\":6000000}}" /* goes to a file */
#define DENIED     "{\"error\":\"org.varlink.service.PermissionDenied\",\"parameters\":{}}"
#define FULL       "{\"error\":\"io.profd.Control.DiskBudget\",\"parameters\":{}}"
#define SESSIONS   "{\"parameters\":{\"session\":null}}"
#define STORED     "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
#define OVERLOADED "HTTP/1.1 503 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"

typedef struct Peer {
    int fd; /* listens; -1: nobody is there */
    pthread_t thread;
    void (*answer)(void *scene, int fd, const char *request);
    void *scene;
} Peer;

/* This is what profd and the store answer, and what is wrong on this host. */
typedef struct Scene {
    const char *list, *read, *sessions; /* of profd; list NULL: it is away */
    const char *stored[2];              /* the first answer of the store, and the others */
    const char *content;                /* NULL: snapshots */
    bool has_no_secret, has_no_folder, may_not_write, has_damaged_state;
    unsigned requests; /* of the store */
    char folder[64], state_folder[80];
    Peer profd, store;
    GatewayConfig *config;
    DestinationStatus status;
    Loop *loop;
    S3Destination *destination;
    bool (*is_over)(const DestinationStatus *status);
    uint64_t until_ns;
} Scene;

static void *peer_serve(void *userdata) {
    Peer *peer = userdata;
    char request[4096];
    ssize_t n;
    int fd;

    while ((fd = accept4(peer->fd, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        n = recv(fd, request, sizeof(request) - 1, 0);
        request[n > 0 ? n : 0] = '\0';
        if (n > 0)
            peer->answer(peer->scene, fd, request);
        close(fd);
    }
    return NULL;
}

static int peer_begin(Peer *peer, struct sockaddr *address, socklen_t size) {
    peer->fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (peer->fd < 0 || bind(peer->fd, address, size) < 0 || listen(peer->fd, 4) < 0 ||
        getsockname(peer->fd, address, &size) < 0 ||
        pthread_create(&peer->thread, NULL, peer_serve, peer) != 0)
        return -EIO;
    return 0;
}

static void peer_end(Peer *peer) {
    if (peer->fd < 0)
        return;
    (void)shutdown(peer->fd, SHUT_RDWR);
    (void)pthread_join(peer->thread, NULL);
    close(peer->fd);
}

static void profd_answer(void *userdata, int fd, const char *request) {
    const Scene *scene = userdata;
    const char *reply = strstr(request, "ListSnapshots")  ? scene->list
                        : strstr(request, "ListSessions") ? scene->sessions
                                                          : scene->read;
    static char bytes[6000000];

    (void)!send(fd, reply, strlen(reply) + 1, MSG_NOSIGNAL);
    if (strstr(reply, "\"bytes\""))
        (void)!send(fd, bytes, strcmp(reply, READ_SMALL) == 0 ? 1 : sizeof(bytes), MSG_NOSIGNAL);
}

static void store_answer(void *userdata, int fd, const char *request _unused_) {
    Scene *scene = userdata;
    const char *reply = scene->stored[scene->requests++ > 0];

    (void)!send(fd, reply, strlen(reply), MSG_NOSIGNAL);
}

static int scene_write(const char *folder, const char *name, const char *text) {
    char path[128];
    FILE *f;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    f = fopen(path, "we");
    return f && fputs(text, f) >= 0 && fclose(f) == 0 ? 0 : -EIO;
}

static int scene_begin_peers(Scene *scene) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_un local = {.sun_family = AF_UNIX};
    int r = 0;

    scene->profd = (Peer){-1, .answer = profd_answer, .scene = scene};
    scene->store = (Peer){-1, .answer = store_answer, .scene = scene};
    strcpy(local.sun_path, scene->config->socket);
    if (scene->list)
        r = peer_begin(&scene->profd, (struct sockaddr *)&local, sizeof(local));
    if (r == 0 && scene->list && chmod(local.sun_path, 0666) < 0)
        r = -errno;
    if (r == 0 && scene->stored[0])
        r = peer_begin(&scene->store, (struct sockaddr *)&address, sizeof(address));
    /* No program listens on port 9. */
    snprintf(scene->config->sends[0].url, sizeof(scene->config->sends[0].url),
             "http://127.0.0.1:%u/bucket", scene->stored[0] ? ntohs(address.sin_port) : 9);
    return r;
}

static int scene_begin(Scene *scene) {
    SendConfig *config;
    int r;

    scene->config = calloc(1, sizeof(*scene->config));
    strcpy(scene->folder, "/tmp/test-s3-destination.XXXXXX");
    if (!scene->config || !mkdtemp(scene->folder) || chmod(scene->folder, 0755) < 0)
        return -EIO;
    config = &scene->config->sends[0];
    snprintf(scene->state_folder, sizeof(scene->state_folder), "%s/state", scene->folder);
    snprintf(scene->config->socket, sizeof(scene->config->socket), "%s/profd", scene->folder);
    snprintf(config->password_file, sizeof(config->password_file), "%s/secret", scene->folder);
    strcpy(scene->config->host, "a");
    strcpy(config->name, "archive");
    strcpy(config->type, "s3");
    strcpy(config->content, scene->content ?: "snapshots");
    scene->config->interval_ns = config->object_interval_ns = NS_PER_SECOND;
    config->timeout_ns = 20 * NS_PER_SECOND;
    if (!scene->has_no_folder && mkdir(scene->state_folder, 0755) < 0)
        return -errno;
    r = scene_begin_peers(scene);
    if (r == 0 && !scene->has_no_secret)
        r = scene_write(scene->folder, "secret", "key:secret");
    if (r == 0 && scene->has_damaged_state)
        r = scene_write(scene->state_folder, "archive.s3", "{\"version\":1,");
    return r < 0 || !scene->may_not_write ? r : chmod(scene->state_folder, 0555);
}

static void scene_end(Scene *scene) {
    char command[128];

    peer_end(&scene->profd);
    peer_end(&scene->store);
    free(scene->config);
    snprintf(command, sizeof(command), "rm -r '%s'", scene->folder);
    (void)!system(command);
}

static int scene_on_timer(void *userdata) {
    Scene *scene = userdata;

    s3_destination_status(scene->destination, &scene->status);
    if (scene->is_over(&scene->status) || clock_monotonic_ns() > scene->until_ns)
        loop_stop(scene->loop);
    return 0;
}

static int scene_run_loop(Scene *scene) {
    _cleanup_(loop_freep) Loop *loop = NULL;
    _cleanup_(transport_freep) Transport *transport = NULL;
    _cleanup_(s3_destination_freep) S3Destination *destination = NULL;
    int r = loop_new(&loop) ?: transport_new(loop, &transport);

    if (r == 0)
        r = s3_destination_new(&(S3DestinationOptions){.config = &scene->config->sends[0],
                                                       .gateway = scene->config,
                                                       .state_folder = scene->state_folder,
                                                       .loop = loop,
                                                       .transport = transport},
                               &destination)
                ?: loop_add_timer(loop, 5 * NS_PER_MS, scene_on_timer, scene, NULL);
    scene->loop = loop;
    scene->destination = destination;
    scene->until_ns = clock_monotonic_ns() + 20 * NS_PER_SECOND;
    return r < 0 ? r : loop_run(loop);
}

/* Files are a matter of the thread and of those that it starts: root may write everywhere else. */
static int scene_run(Scene *scene, bool (*is_over)(const DestinationStatus *status)) {
    int r = scene_begin(scene);

    scene->is_over = is_over;
    if (scene->may_not_write)
        (void)setfsuid(65534);
    if (r == 0)
        r = scene_run_loop(scene);
    (void)setfsuid(geteuid());
    return r;
}

static bool has_failed(const DestinationStatus *status) {
    return status->last_error[0] != '\0';
}

static bool has_sent(const DestinationStatus *status) {
    return status->sent_intervals > 0;
}

/* clang-format off */
static const struct {
    const char *what;
    Scene scene;
    long status;
    const char *word; /* of the error */
} faults[] = {
    { "profd is away", {}, SEND_STATUS_SOURCE, "profd is not running" },
    { "profd denies all", { DENIED, DENIED, .sessions = DENIED }, SEND_STATUS_SOURCE, "in the group profd-read" },
    { "profd has no space", { LISTED, FULL, .sessions = SESSIONS }, SEND_STATUS_SOURCE, "SnapshotMaxUse=" },
    { "profd lists garbage", { SNAPSHOT(NAME_OF_64 "a"), FULL, .sessions = SESSIONS }, SEND_STATUS_SOURCE, "that is none" },
    { "profd denies one", { LISTED, DENIED, .sessions = SESSIONS }, SEND_STATUS_LOST, "stacks of user memory" },
    { "no folder for the state", { LISTED, READ_SMALL, .sessions = SESSIONS, .has_no_folder = true },
      SEND_STATUS_LOCAL, "/state' cannot be written: No such file" },
    { "no folder for a recording", { LISTED, READ_LARGE, .sessions = SESSIONS, .has_no_folder = true },
      SEND_STATUS_LOCAL, "/state' until it is uploaded: No such file" },
    { "no right to keep a recording", { LISTED, READ_LARGE, .sessions = SESSIONS, .may_not_write = true },
      SEND_STATUS_LOCAL, "/state' until it is uploaded: Permission denied" },
    { "no secret", { LISTED, READ_SMALL, .sessions = SESSIONS, .has_no_secret = true }, SEND_STATUS_LOCAL, "secret of the destination cannot be read" },
    { "damaged state", { NONE, .has_damaged_state = true }, SEND_STATUS_LOST, "state was damaged" },
    { "no store", { LISTED, READ_SMALL, .sessions = SESSIONS }, 0, "The store does not answer" },
    { "bad store", { LISTED, READ_SMALL, .sessions = SESSIONS, .stored = { OVERLOADED, OVERLOADED } }, 503, "status 503" },
};
/* clang-format on */

TEST(each_fault_has_a_status_that_says_where_it_is) {
    for (size_t i = 0; i < ARRAY_SIZE(faults); i++) {
        Scene scene = faults[i].scene;
        const DestinationStatus *status = &scene.status;
        int r = scene_run(&scene, has_failed);

        scene_end(&scene);
        CHECK_OK(r);
        printf("# %s: %ld, %s\n", faults[i].what, status->error_status, status->last_error);
        CHECK(strstr(status->last_error, faults[i].word));
        CHECK_EQ(status->error_status, faults[i].status);
        CHECK_EQ(status->last_http_status, faults[i].status > 0 ? faults[i].status : 0);
    }
}

TEST(snapshot_that_this_host_cannot_keep_is_not_given_up) {
    Scene scene = {LISTED, READ_LARGE, .sessions = SESSIONS, .may_not_write = true};
    int r = scene_run(&scene, has_failed);

    scene_end(&scene);
    CHECK_OK(r);
    CHECK_EQ(scene.status.refused_intervals, 0);
    CHECK_EQ(scene.status.ranges, 1);
}

TEST(success_does_not_change_the_status_of_the_last_error) {
    Scene scene = {LISTED, READ_SMALL, .sessions = SESSIONS, .stored = {OVERLOADED, STORED}};
    int r = scene_run(&scene, has_sent);

    scene_end(&scene);
    CHECK_OK(r);
    CHECK_EQ(scene.status.sent_intervals, 1);
    CHECK_EQ(scene.status.last_http_status, 200);
    CHECK_EQ(scene.status.error_status, 503);
}

#define LACKS(reason)                                                                              \
    "{\"error\":\"io.profd.Control.WindowUnavailable\",\"parameters\":{\"oldestUsec\":null,"       \
    "\"newestUsec\":null,\"reason\":" reason "}}"

/* clang-format off */
static const struct {
    const char *reply;
    bool is_deleted, is_error;
} lacks[] = {
    { LACKS("\"asleep\""),  .is_error = false                     },
    { LACKS("\"paused\""),  .is_error = false                     },
    { LACKS("\"deleted\""), .is_error = false, .is_deleted = true },
    { LACKS("\"damaged\""), .is_error = true                      },
    { LACKS("null"),        .is_error = true                      },
};
/* clang-format on */

static bool has_missed(const DestinationStatus *status) {
    return status->missing_ns > 0;
}

TEST(window_in_which_nothing_was_recorded_is_missing_and_no_failure) {
    for (size_t i = 0; i < ARRAY_SIZE(lacks); i++) {
        Scene scene = {NONE, lacks[i].reply, .sessions = SESSIONS, .content = "recordings"};
        const DestinationStatus *status = &scene.status;
        int r = scene_run(&scene, has_missed);

        scene_end(&scene);
        CHECK_OK(r);
        CHECK(status->missing_ns > 0);
        CHECK_EQ(status->deleted_ns, lacks[i].is_deleted ? status->missing_ns : 0);
        CHECK_EQ(status->last_error[0] != '\0', lacks[i].is_error);
        CHECK_EQ(status->error_status, lacks[i].is_error ? (long)SEND_STATUS_LOST : 0L);
    }
}

TEST_MAIN()
