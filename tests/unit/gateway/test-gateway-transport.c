/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "transport/transport.h"

#include <arpa/inet.h>
#include <curl/curlver.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "encode/gunzip.h"
#include "test.h"
#include "util/clock.h"
#include "util/file.h"
#include "util/text.h"

/* Requests to a server of the test's own on loopback, which answers by the path: well, or as no
 * server should. It keeps the last request. */

enum { HEAD_MAX = 64 * 1024 };

static struct {
    int fd;
    uint16_t port;
    pthread_mutex_t lock;
    char request[HEAD_MAX + 1]; /* head and body */
    size_t size;
    _Atomic unsigned redirected, kept;
    _Atomic bool is_ending;
} server = {.fd = -1, .lock = PTHREAD_MUTEX_INITIALIZER};

/* A name server that does not answer: libcurl asks for addresses here, on threads of its own. */
static struct {
    sem_t released;
    _Atomic unsigned asked, ended;
} resolver;

int getaddrinfo(const char *name _unused_, const char *service _unused_,
                const struct addrinfo *hints _unused_, struct addrinfo **ret _unused_) {
    struct timespec limit = clock_timespec(clock_ns(CLOCK_REALTIME) + 20 * NS_PER_SECOND);

    resolver.asked++;
    (void)sem_timedwait(&resolver.released, &limit);
    resolver.ended++;
    return EAI_AGAIN;
}

static void say(int fd, const char *text) {
    (void)!send(fd, text, strlen(text), MSG_NOSIGNAL);
}

/* Until the client closes: bounded, so that a client that does not is a failure and no hang. */
static void say_endlessly(int fd, const char *text) {
    for (unsigned i = 0; i < 1000000; i++)
        if (send(fd, text, strlen(text), MSG_NOSIGNAL) < 0)
            return;
}

static void hold(int fd) {
    struct pollfd p = {.fd = fd, .events = POLLIN};

    (void)poll(&p, 1, 60000);
}

static void answer(int fd, const char *path) {
    if (strncmp(path, "/keep", 5) == 0) {
        server.kept++;
        if (!server.is_ending)
            say(fd, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    } else if (strncmp(path, "/ok", 3) == 0)
        say(fd, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nETag: \"abc\"\r\n\r\nok");
    else if (strncmp(path, "/busy", 5) == 0)
        say(fd, "HTTP/1.1 429 Slow down\r\nRetry-After: 7\r\nContent-Length: 5\r\n\r\nslow\n");
    else if (strncmp(path, "/redirect", 9) == 0)
        say(fd, "HTTP/1.1 307 There\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n");
    else if (strncmp(path, "/elsewhere", 10) == 0)
        server.redirected++;
    else if (strncmp(path, "/garbage", 8) == 0)
        say(fd, "\x01\x02\x03 garbage\r\n\r\n");
    else if (strncmp(path, "/endless-body", 13) == 0) {
        say(fd, "HTTP/1.1 200 OK\r\n\r\n");
        say_endlessly(fd, "endless and endless and endless");
    } else if (strncmp(path, "/endless-head", 13) == 0) {
        say(fd, "HTTP/1.1 200 OK\r\n");
        say_endlessly(fd, "X-A: bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\r\n");
    } else if (strncmp(path, "/interim", 8) == 0)
        say_endlessly(fd, "HTTP/1.1 103 Early\r\nX-A: b\r\n\r\n");
    else if (strncmp(path, "/cut", 4) == 0)
        say(fd, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf");
    else if (strncmp(path, "/hang", 5) == 0)
        hold(fd);
}

/* The whole request, so that the connection is not reset when it is closed. */
static bool serve_one(int fd) {
    char text[HEAD_MAX + 1] = "";
    size_t size = 0, wanted = SIZE_MAX;
    char *path, *end, *length;

    while (size < HEAD_MAX && size < wanted) {
        ssize_t n = recv(fd, text + size, HEAD_MAX - size, 0);

        if (n <= 0)
            break;
        size += (size_t)n;
        text[size] = '\0';
        end = strstr(text, "\r\n\r\n");
        length = strcasestr(text, "content-length: ");
        if (end)
            wanted = (size_t)(end + 4 - text) + (length ? strtoul(length + 16, NULL, 10) : 0);
    }
    pthread_mutex_lock(&server.lock);
    memcpy(server.request, text, size + 1);
    server.size = size;
    pthread_mutex_unlock(&server.lock);
    path = strchr(text, ' ');
    if (path)
        answer(fd, path + 1);
    return path && strncmp(path, " /keep", 6) == 0;
}

/* A connection that is kept ends with the second request, which gets no answer. */
static void *serve(void *userdata) {
    int fd = (int)(intptr_t)userdata;

    if (serve_one(fd)) {
        server.is_ending = true;
        (void)serve_one(fd);
        server.is_ending = false;
    }
    close(fd);
    return NULL;
}

static void *accept_all(void *userdata _unused_) {
    for (;;) {
        int fd = accept4(server.fd, NULL, NULL, SOCK_CLOEXEC);
        pthread_t thread;

        if (fd < 0)
            return NULL;
        if (pthread_create(&thread, NULL, serve, (void *)(intptr_t)fd) == 0)
            pthread_detach(thread);
    }
}

static void server_start(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    pthread_t thread;

    if (server.fd >= 0)
        return;
    server.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (server.fd < 0 || bind(server.fd, (struct sockaddr *)&address, size) < 0 ||
        listen(server.fd, 16) < 0 ||
        getsockname(server.fd, (struct sockaddr *)&address, &size) < 0 ||
        pthread_create(&thread, NULL, accept_all, NULL) != 0)
        abort();
    server.port = ntohs(address.sin_port);
}

typedef struct Scene {
    Loop *loop;
    Transport *transport;
    SendConfig config;
    TransportOptions options;
    TransportRequest *request;
    char url[128];
    TransportAnswer answer;
    unsigned done, wanted;
} Scene;

static void on_done(void *userdata, const TransportAnswer *result) {
    Scene *scene = userdata;

    scene->answer = *result;
    scene->request = NULL;
    scene->done++;
    loop_stop(scene->loop);
}

static void scene_begin(Scene *scene, const char *path) {
    server_start();
    *scene = (Scene){.config = {.timeout_ns = 20 * NS_PER_SECOND}};
    snprintf(scene->url, sizeof(scene->url), "http://127.0.0.1:%u%s", server.port, path);
    if (loop_new(&scene->loop) < 0 || transport_new(scene->loop, &scene->transport) < 0)
        abort();
    scene->options = (TransportOptions){.config = &scene->config,
                                        .method = "POST",
                                        .url = scene->url,
                                        .content_type = "application/proto",
                                        .body = "a body",
                                        .size = 6,
                                        .done = on_done,
                                        .userdata = scene};
}

static void scene_end(Scene *scene) {
    scene->transport = transport_free(scene->transport);
    scene->loop = loop_free(scene->loop);
}

static int ask(Scene *scene) {
    int r = transport_send(scene->transport, &scene->options, &scene->request);

    return r < 0 ? r : loop_run(scene->loop);
}

static bool request_has(const char *text) {
    bool found;

    pthread_mutex_lock(&server.lock);
    found = strstr(server.request, text) != NULL;
    pthread_mutex_unlock(&server.lock);
    return found;
}

static void put_file(const char *path, const char *text) {
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    if (fd < 0 || file_write_all(fd, text, strlen(text)) < 0)
        abort();
    close(fd);
}

TEST(request_arrives_with_its_headers_and_the_answer_comes_back) {
    static const char *const headers[] = {"X-Scope-OrgID: team-a", NULL};
    Scene scene;

    scene_begin(&scene, "/ok");
    scene.options.headers = headers;
    CHECK_OK(ask(&scene));
    CHECK_EQ(scene.done, 1);
    CHECK_EQ(scene.answer.error, 0);
    CHECK_EQ(scene.answer.status, 200);
    CHECK_STREQ(scene.answer.body, "ok");
    CHECK_STREQ(scene.answer.etag, "\"abc\"");
    CHECK_EQ(scene.answer.sent_bytes, 6);
    CHECK(request_has("POST /ok HTTP/1.1\r\n"));
    CHECK(request_has("Content-Type: application/proto\r\n"));
    CHECK(request_has("X-Scope-OrgID: team-a\r\n"));
    CHECK(request_has("\r\n\r\na body"));
    CHECK(!request_has("Expect:") && !request_has("Authorization:"));
    scene_end(&scene);
}

typedef struct Packed {
    const char *data;
    size_t left;
} Packed;

static ssize_t unpack(void *data, size_t size, void *arg) {
    Packed *packed = arg;
    size_t n = MIN(size, packed->left);

    memcpy(data, packed->data, n);
    packed->data += n;
    packed->left -= n;
    return (ssize_t)n;
}

TEST(compressed_body_is_gzip) {
    _cleanup_(gunzip_freep) Gunzip *gunzip = NULL;
    char text[64] = "";
    Packed packed;
    Scene scene;

    scene_begin(&scene, "/ok");
    scene.options.compress = true;
    CHECK_OK(ask(&scene));
    CHECK(request_has("Content-Encoding: gzip\r\n"));
    packed.data = strstr(server.request, "\r\n\r\n") + 4;
    packed.left = server.size - (size_t)(packed.data - server.request);
    CHECK_OK(gunzip_new(unpack, &packed, &gunzip));
    CHECK_EQ(gunzip_read(gunzip, text, sizeof(text)), 6);
    CHECK_STREQ(text, "a body");
    scene_end(&scene);
}

TEST(token_is_read_at_each_request) {
    char path[] = "/tmp/profd-token-XXXXXX";
    int fd = mkstemp(path);
    Scene scene;

    CHECK(fd >= 0);
    close(fd);
    scene_begin(&scene, "/ok");
    snprintf(scene.config.token_file, sizeof(scene.config.token_file), "%s", path);
    put_file(path, "first\n");
    CHECK_OK(ask(&scene));
    CHECK(request_has("Authorization: Bearer first\r\n"));
    put_file(path, "second");
    CHECK_OK(ask(&scene));
    CHECK(request_has("Authorization: Bearer second\r\n"));
    put_file(path, "bad\r\nX-Evil: 1");
    CHECK_EQ(ask(&scene), -EINVAL);
    put_file(path, "");
    CHECK_EQ(ask(&scene), -EINVAL);
    CHECK_OK(unlink(path));
    CHECK_EQ(ask(&scene), -ENOENT);
    CHECK_EQ(scene.done, 2);
    scene_end(&scene);
}

TEST(token_that_is_no_file_holds_up_nobody) {
    char folder[] = "/tmp/profd-token-XXXXXX", path[64];
    Scene scene;

    CHECK(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/fifo", folder);
    CHECK_OK(mkfifo(path, 0600));
    scene_begin(&scene, "/ok");
    strcpy(scene.config.token_file, path);
    (void)alarm(20);
    CHECK_EQ(ask(&scene), -EINVAL);
    strcpy(scene.config.token_file, folder);
    CHECK_EQ(ask(&scene), -EISDIR);
    (void)alarm(0);
    CHECK_OK(unlink(path));
    CHECK_OK(rmdir(folder));
    scene_end(&scene);
}

TEST(credential_of_systemd_is_a_token_or_user_and_password) {
    char folder[] = "/tmp/profd-credentials-XXXXXX", path[64];
    Scene scene;

    CHECK(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/engine", folder);
    scene_begin(&scene, "/ok");
    strcpy(scene.config.credential, "engine");
    unsetenv("CREDENTIALS_DIRECTORY");
    CHECK_EQ(ask(&scene), -ENOENT);
    setenv("CREDENTIALS_DIRECTORY", folder, 1);
    put_file(path, "abc.def");
    CHECK_OK(ask(&scene));
    CHECK(request_has("Authorization: Bearer abc.def\r\n"));
    put_file(path, "user:pass:word");
    CHECK_OK(ask(&scene));
    CHECK(request_has("Authorization: Basic dXNlcjpwYXNzOndvcmQ=\r\n"));
    CHECK_OK(unlink(path));
    CHECK_OK(rmdir(folder));
    scene_end(&scene);
}

TEST(busy_engine_says_when_to_come_back) {
    Scene scene;

    scene_begin(&scene, "/busy");
    CHECK_OK(ask(&scene));
    CHECK_EQ(scene.answer.status, 429);
    CHECK_EQ(scene.answer.retry_after_ns, 7 * NS_PER_SECOND);
    CHECK_STREQ(scene.answer.body, "slow\n");
    scene_end(&scene);
}

TEST(redirect_is_an_answer_and_not_followed) {
    Scene scene;

    scene_begin(&scene, "/redirect");
    CHECK_OK(ask(&scene));
    CHECK_EQ(scene.answer.status, 307);
    CHECK_EQ((unsigned)server.redirected, 0);
    scene_end(&scene);
}

TEST(engine_that_talks_nonsense_or_endlessly_is_left) {
    /* clang-format off */
    static const struct { const char *path; long status; } rows[] = {
        {"/garbage", 0}, {"/endless-head", 0}, {"/interim", 0}, {"/nothing", 0},
        /* The verdict was there before the nonsense. */
        {"/endless-body", 200}, {"/cut", 200},
    };
    /* clang-format on */

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        Scene scene;

        scene_begin(&scene, rows[i].path);
        CHECK_OK(ask(&scene));
        CHECK_EQ(scene.done, 1);
        CHECK_EQ(scene.answer.status, rows[i].status);
        CHECK_EQ(scene.answer.error != 0, rows[i].status == 0);
        CHECK_EQ(scene.answer.problem[0] != '\0', rows[i].status == 0);
        scene_end(&scene);
    }
}

TEST(engine_that_hangs_is_left_after_the_timeout) {
    Scene scene;

    scene_begin(&scene, "/hang");
    scene.config.timeout_ns = NS_PER_SECOND / 5;
    CHECK_OK(ask(&scene));
    CHECK_EQ(scene.answer.error, -ETIMEDOUT);
    scene_end(&scene);
}

#if LIBCURL_VERSION_NUM >= 0x075700
static int stop_if_asked(void *userdata) {
    Scene *scene = userdata;

    if (resolver.asked >= scene->wanted)
        loop_stop(scene->loop);
    return 0;
}

static int run_until_asked(Scene *scene, unsigned n) {
    LoopSource *timer = NULL;
    int r = loop_add_timer(scene->loop, NS_PER_MS, stop_if_asked, scene, &timer);

    scene->wanted = n;
    if (r == 0)
        r = loop_run(scene->loop);
    (void)loop_source_free(timer);
    return r;
}

TEST(name_server_that_does_not_answer_stops_nobody) {
    uint64_t begun_ns = clock_monotonic_ns();
    TransportRequest *second = NULL;
    Scene scene;

    CHECK_EQ(sem_init(&resolver.released, 0, 0), 0);
    scene_begin(&scene, "/ok");
    strcpy(scene.url, "http://engine.invalid/push");
    scene.config.timeout_ns = NS_PER_SECOND / 5;
    CHECK_OK(ask(&scene));
    CHECK_EQ(scene.answer.error, -ETIMEDOUT);
    scene.config.timeout_ns = 20 * NS_PER_SECOND;
    CHECK_OK(transport_send(scene.transport, &scene.options, &second));
    CHECK_OK(run_until_asked(&scene, 2));
    second = transport_cancel(second);
    CHECK_OK(transport_send(scene.transport, &scene.options, &second));
    CHECK_OK(run_until_asked(&scene, 3));
    scene_end(&scene);
    CHECK(clock_monotonic_ns() - begun_ns < 10 * NS_PER_SECOND);
    CHECK_EQ((unsigned)resolver.ended, 0);
    for (unsigned i = 0; i < 3; i++)
        CHECK_EQ(sem_post(&resolver.released), 0);
    while (resolver.ended < 3)
        (void)usleep(1000);
}
#endif

TEST(request_that_libcurl_sends_again_is_reported) {
    Scene scene;

    scene_begin(&scene, "/keep");
    CHECK_OK(ask(&scene));
    CHECK_EQ(scene.answer.status, 200);
    CHECK(!scene.answer.is_resent);
    CHECK_EQ(scene.answer.sent_bytes, scene.options.size);
    CHECK_OK(ask(&scene));
    CHECK_EQ(scene.answer.status, 200);
    CHECK_EQ((unsigned)server.kept, 3);
    CHECK(scene.answer.is_resent);
    CHECK_EQ(scene.answer.sent_bytes, 2 * scene.options.size);
    scene_end(&scene);
}

TEST(nobody_there_is_a_refused_connection) {
    Scene scene;

    scene_begin(&scene, "/ok");
    strcpy(scene.url, "http://127.0.0.1:1/");
    CHECK_OK(ask(&scene));
    CHECK_EQ(scene.answer.error, -ECONNREFUSED);
    CHECK_EQ(scene.answer.sent_bytes, 0);
    scene_end(&scene);
}

TEST(other_protocols_and_secrets_in_a_url_are_refused) {
    static const char *const urls[] = {"file:///etc/passwd", "gopher://127.0.0.1/",
                                       "ftp://127.0.0.1/", "http://user:pass@127.0.0.1:1/"};

    for (size_t i = 0; i < ARRAY_SIZE(urls); i++) {
        Scene scene;

        scene_begin(&scene, "/ok");
        snprintf(scene.url, sizeof(scene.url), "%s", urls[i]);
        CHECK_OK(ask(&scene));
        CHECK_EQ(scene.answer.error, -EIO);
        CHECK_EQ(scene.answer.status, 0);
        scene_end(&scene);
    }
}

TEST(proxies_of_the_environment_do_not_count) {
    Scene scene;

    setenv("http_proxy", "http://127.0.0.1:1", 1);
    scene_begin(&scene, "/ok");
    CHECK_OK(ask(&scene));
    CHECK_EQ(scene.answer.status, 200);
    unsetenv("http_proxy");
    scene_end(&scene);
}

TEST(configured_proxy_gets_the_request) {
    Scene scene;

    scene_begin(&scene, "/ok");
    snprintf(scene.config.proxy, sizeof(scene.config.proxy), "http://127.0.0.1:%u", server.port);
    strcpy(scene.url, "http://engine.invalid/push");
    CHECK_OK(ask(&scene));
    CHECK(request_has("POST http://engine.invalid/push HTTP/1.1\r\n"));
    scene_end(&scene);
}

TEST(canceled_request_is_not_heard_of_again) {
    Scene scene;
    TransportRequest *hanging = NULL;
    char url[128];

    scene_begin(&scene, "/ok");
    snprintf(url, sizeof(url), "http://127.0.0.1:%u/hang", server.port);
    scene.options.url = url;
    CHECK_OK(transport_send(scene.transport, &scene.options, &hanging));
    scene.options.url = scene.url;
    CHECK_OK(ask(&scene));
    CHECK_EQ(scene.done, 1);
    hanging = transport_cancel(hanging);
    CHECK_OK(ask(&scene));
    CHECK_EQ(scene.done, 2);
    /* Those that are left end with the transport. */
    scene.options.url = url;
    CHECK_OK(transport_send(scene.transport, &scene.options, &hanging));
    scene_end(&scene);
    CHECK_EQ(scene.done, 2);
}

TEST_MAIN()
