/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "program/gateway-store-test.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "s3/s3-call.h"
#include "s3/s3-destination.h"
#include "s3/s3-key.h"
#include "send/file-folder.h"
#include "util/clock.h"
#include "util/file.h"
#include "util/log.h"

/*
 * The object gets a key by the template of the destination, so that the rights are asked for that
 * recordings need. Reading and deleting are no needs of the gateway: where they are denied, the
 * test says so and passes.
 */

#define STORE_TEST_NAME "profd-gateway-test"

typedef struct StoreTest {
    const SendConfig *send;
    Loop *loop;
    Transport *transport;
    S3Target target;
    S3Call *call;
    char key[S3_KEY_MAX];
    char text[128]; /* of the object */
    int result;
} StoreTest;

static void gateway_store_test_done(StoreTest *test) {
    s3_call_cancel(test->call);
    transport_free(test->transport);
    loop_free(test->loop);
}

static void gateway_store_test_end(StoreTest *test, int result) {
    test->result = result;
    loop_stop(test->loop);
}

static Bytes gateway_store_test_bytes(const StoreTest *test) {
    return (Bytes){.data = (const uint8_t *)test->text, .size = strlen(test->text)};
}

static void gateway_store_test_call(StoreTest *test, const char *method, Bytes body,
                                    S3CallDone done) {
    int r =
        s3_call_start(&test->target, &(S3Request){.method = method, .key = test->key, .body = body},
                      done, test, &test->call);

    if (r < 0)
        gateway_store_test_end(test,
                               log_error(r, "Failed to test [Send %s]: %m", test->send->name));
}

static void gateway_store_test_on_deleted(void *userdata, const S3Result *result) {
    StoreTest *test = userdata;

    test->call = NULL;
    if (result->verdict != S3_DONE)
        printf("The object stays there, which is no fault: %s\n", result->sentence);
    gateway_store_test_end(test, 0);
}

static void gateway_store_test_on_read(void *userdata, const S3Result *result) {
    StoreTest *test = userdata;
    Bytes stored = gateway_store_test_bytes(test);
    const TransportAnswer *answer = result->answer;

    test->call = NULL;
    if (result->verdict != S3_DONE)
        printf("It cannot be read back, which is no fault: %s\n", result->sentence);
    else if (answer->size != stored.size || memcmp(answer->data, stored.data, stored.size) != 0)
        test->result = log_error(-EBADMSG, "[Send %s] gives back something else than was stored",
                                 test->send->name);
    else
        printf("It gives back the same bytes.\n");
    if (test->result < 0)
        gateway_store_test_end(test, test->result);
    else
        gateway_store_test_call(test, "DELETE", (Bytes){}, gateway_store_test_on_deleted);
}

static void gateway_store_test_on_stored(void *userdata, const S3Result *result) {
    StoreTest *test = userdata;

    test->call = NULL;
    if (result->verdict != S3_DONE) {
        gateway_store_test_end(test, log_error(-EIO, "[Send %s] stores nothing: %s",
                                               test->send->name, result->sentence));
        return;
    }
    printf("[Send %s] stored '%s'.\n", test->send->name, test->key);
    gateway_store_test_call(test, "GET", (Bytes){}, gateway_store_test_on_read);
}

/* The result of each call has the same sentence. */
static void gateway_store_test_on_problem(void *userdata _unused_, const char *sentence,
                                          long status) {
    log_debug("%s (status %ld)", sentence, status);
}

static int gateway_store_test_prepare(StoreTest *test, const GatewayConfig *config) {
    const char *template = test->send->key_template, *problem;
    uint64_t now_ns = clock_ns(CLOCK_REALTIME);
    int r = s3_destination_check(test->send, &problem);

    if (r < 0)
        return log_error(r, "[Send %s] cannot work: %s", test->send->name, problem);
    (void)snprintf(test->text, sizeof(test->text), "A test of profd-gateway at %" PRIu64 ".\n",
                   now_ns / NS_PER_SECOND);
    r = s3_key_make(template[0] ? template : S3_KEY_DEFAULT,
                    &(S3KeyFacts){.host = config->host, .name = STORE_TEST_NAME, .time_ns = now_ns},
                    test->key);
    if (r == 0)
        r = loop_new(&test->loop);
    if (r == 0)
        r = transport_new(test->loop, &test->transport);
    return r < 0 ? log_error(r, "Failed to test [Send %s]: %m", test->send->name) : 0;
}

static int gateway_store_test_fill(void *userdata, int fd) {
    Bytes bytes = gateway_store_test_bytes(userdata);

    return file_write_all(fd, bytes.data, bytes.size);
}

static int gateway_store_test_folder(StoreTest *test) {
    const char *slash = strrchr(test->key, '/');
    /* Not below it: folders that root makes would be closed to the service. */
    const FileFolderPut put = {.folder = test->send->url,
                               .path = slash ? slash + 1 : test->key,
                               .fill = gateway_store_test_fill,
                               .userdata = test};
    char path[sizeof(test->send->url) + sizeof(test->key)], text[sizeof(test->text)];
    int r = file_folder_put(&put);

    if (r < 0)
        return log_error(r, "[Send %s] stores nothing in '%s': %m", test->send->name, put.folder);
    (void)snprintf(path, sizeof(path), "%s/%s", put.folder, put.path);
    printf("[Send %s] stored '%s'.\n", test->send->name, path);
    test->text[strcspn(test->text, "\n")] = '\0';
    r = file_read_regular(path, text, sizeof(text));
    if (unlink(path) < 0)
        printf("The file stays there: %s.\n", strerror(errno));
    if (r < 0 || strcmp(text, test->text) != 0)
        return log_error(r < 0 ? r : -EBADMSG,
                         "[Send %s] gives back something else than was stored", test->send->name);
    printf("It gives back the same bytes.\n");
    return 0;
}

int gateway_store_test(const GatewayConfig *config, const SendConfig *send) {
    _cleanup_(gateway_store_test_done) StoreTest test = {.send = send};
    int r = gateway_store_test_prepare(&test, config);

    if (r < 0)
        return r;
    if (*send->url == '/')
        return gateway_store_test_folder(&test);
    s3_target_init(&test.target, send, test.transport, test.loop);
    test.target.on_problem = gateway_store_test_on_problem;
    test.target.userdata = &test;
    gateway_store_test_call(&test, "PUT", gateway_store_test_bytes(&test),
                            gateway_store_test_on_stored);
    if (test.call)
        r = loop_run(test.loop);
    return r < 0 ? r : test.result;
}
