/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "s3/s3-cleanup.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "transport/retry.h"
#include "test.h"
#include "util/clock.h"
#include "util/file.h"

/* Looking for what a multipart upload left, at a store on loopback that gives one answer to each
 * request. */

typedef struct Scene {
    int fd; /* listens */
    const char *answer;
    pthread_t thread;
    unsigned requests; /* after the end of the thread */
    Loop *loop;
    SendConfig config;
    S3UploadResult result;
} Scene;

static void *scene_serve(void *userdata) {
    Scene *scene = userdata;
    char request[4096];
    int fd;

    while ((fd = accept4(scene->fd, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        if (recv(fd, request, sizeof(request), 0) > 0) {
            scene->requests++;
            (void)!send(fd, scene->answer, strlen(scene->answer), MSG_NOSIGNAL);
        }
        close(fd);
    }
    return NULL;
}

static int scene_begin(Scene *scene) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    char *path = scene->config.password_file;
    int fd;

    strcpy(path, "/tmp/test-s3-cleanup.XXXXXX");
    fd = mkostemp(path, O_CLOEXEC);
    scene->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || scene->fd < 0 || write(fd, "key:secret", 10) != 10 || close(fd) < 0 ||
        bind(scene->fd, (struct sockaddr *)&address, size) < 0 || listen(scene->fd, 4) < 0 ||
        getsockname(scene->fd, (struct sockaddr *)&address, &size) < 0 ||
        pthread_create(&scene->thread, NULL, scene_serve, scene) != 0)
        return -EIO;
    scene->config.timeout_ns = 20 * NS_PER_SECOND;
    snprintf(scene->config.url, sizeof(scene->config.url), "http://127.0.0.1:%u/bucket",
             ntohs(address.sin_port));
    return 0;
}

static void scene_end(Scene *scene) {
    (void)shutdown(scene->fd, SHUT_RDWR);
    (void)pthread_join(scene->thread, NULL);
    close(scene->fd);
    (void)unlink(scene->config.password_file);
}

static void on_done(void *userdata, const S3UploadResult *result) {
    Scene *scene = userdata;

    scene->result = *result;
    loop_stop(scene->loop);
}

static void on_problem(void *userdata _unused_, const char *sentence _unused_,
                       long status _unused_) {
}

static int clean(Scene *scene) {
    _cleanup_(loop_freep) Loop *loop = NULL;
    _cleanup_(transport_freep) Transport *transport = NULL;
    S3Target target;
    S3Cleanup *cleanup;
    int r = loop_new(&loop) ?: transport_new(loop, &transport);

    if (r < 0)
        return r;
    s3_target_init(&target, &scene->config, transport, loop);
    target.on_problem = on_problem;
    scene->loop = loop;
    return s3_cleanup_start(&(S3CleanupOptions){.target = &target,
                                                .key = "a/b",
                                                .upload_id = "",
                                                .done = on_done,
                                                .userdata = scene},
                            &cleanup)
               ?: loop_run(loop);
}

/* The destination counts these answers, and after a few of them it goes on without the cleanup. */
TEST(store_without_a_list_of_uploads_is_not_asked_for_ever) {
    static const char *const answers[] = {
        "HTTP/1.1 501 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\n<html>",
    };

    for (size_t i = 0; i < ARRAY_SIZE(answers); i++) {
        Scene scene = {.answer = answers[i]};

        CHECK_OK(scene_begin(&scene));
        CHECK_OK(clean(&scene));
        scene_end(&scene);
        CHECK_EQ(scene.requests, 1);
        CHECK_EQ(scene.result.verdict, S3_WAIT);
        CHECK(scene.result.sentence[0]);
    }
}

TEST(store_that_always_fails_does_not_hold_up_the_objects_for_ever) {
    const S3UploadResult failed = {.verdict = S3_AGAIN, .status = 503},
                         unanswered = {.verdict = S3_AGAIN},
                         unasked = {.verdict = S3_WAIT, .status = SEND_STATUS_LOCAL},
                         refused = {.verdict = S3_WAIT, .status = 403},
                         done = {.verdict = S3_DONE, .status = 204};
    unsigned n = 0;

    for (unsigned i = 1; i < 20; i++) {
        CHECK(!s3_cleanup_is_over(&failed, &n));
        CHECK(!s3_cleanup_is_over(&unanswered, &n));
        CHECK(!s3_cleanup_is_over(&unasked, &n));
    }
    CHECK(s3_cleanup_is_over(&failed, &n));
    n = 0;
    for (unsigned i = 1; i < 5; i++)
        CHECK(!s3_cleanup_is_over(&refused, &n));
    CHECK(s3_cleanup_is_over(&refused, &n));
    n = 0;
    CHECK(s3_cleanup_is_over(&done, &n));
}

TEST(empty_list_of_uploads_is_the_end) {
    Scene scene = {.answer = "HTTP/1.1 200 OK\r\nContent-Length: 29\r\nConnection: close\r\n\r\n"
                             "<ListMultipartUploadsResult/>"};

    CHECK_OK(scene_begin(&scene));
    CHECK_OK(clean(&scene));
    scene_end(&scene);
    CHECK_EQ(scene.requests, 1);
    CHECK_EQ(scene.result.verdict, S3_DONE);
}

TEST_MAIN()
