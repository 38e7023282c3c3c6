/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "program/gateway-test.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/engine.h"
#include "program/gateway-ask.h"
#include "program/gateway-read.h"
#include "program/gateway-store-test.h"
#include "send/destination.h"
#include "source/source.h"
#include "status/status-value.h"
#include "util/clock.h"
#include "util/log.h"

/*
 * Tests a destination on its way to the engine as it stands in the configuration, with its
 * credentials, its TLS and its proxy: a destination of its own, with a position in a temporary
 * folder, gets one interval. Rules and Share= do not count here, because they could drop it.
 */

/* No destination can have this name, so a rule that is for it applies to none. */
#define NO_DESTINATION   "/"
#define TEST_INTERVAL_NS NS_PER_SECOND
#define TEST_POLL_NS     (20 * NS_PER_MS)
#define TEST_SLACK_NS    (10 * NS_PER_SECOND)

typedef struct GatewayTest {
    GatewayConfig *config;
    SendConfig *send; /* in config */
    char folder[64];
    Loop *loop;
    Transport *transport;
    Source *source;
    Destination *destination;
    Interval *interval;
    GatewayAsk *ask;
    uint64_t until_ns; /* CLOCK_MONOTONIC: when it has failed */
    DestinationStatus status;
    int result;
} GatewayTest;

static void gateway_test_remove_folder(const char *path) {
    _cleanup_closedir_ DIR *dir = opendir(path);

    for (struct dirent *entry; dir && (entry = readdir(dir));)
        if (entry->d_name[0] != '.')
            (void)unlinkat(dirfd(dir), entry->d_name, 0);
    (void)rmdir(path);
}

static void gateway_test_done(GatewayTest *test) {
    gateway_ask_cancel(test->ask);
    destination_free(test->destination);
    source_free(test->source);
    interval_unref(test->interval);
    transport_free(test->transport);
    loop_free(test->loop);
    gateway_config_free(test->config);
    if (*test->folder)
        gateway_test_remove_folder(test->folder);
}

static int gateway_test_end(GatewayTest *test, int result) {
    test->result = result;
    loop_stop(test->loop);
    return 0;
}

static int gateway_test_fail(GatewayTest *test) {
    const DestinationStatus *s = &test->status;
    const char *remedy = status_send_remedy(s);

    (void)log_error(-EIO, "[Send %s] did not take the profile: %s%s%s", test->send->name,
                    *s->last_error ? s->last_error : "there was no answer in time",
                    *remedy ? ". " : "", remedy);
    return gateway_test_end(test, -EIO);
}

static void gateway_test_on_asked(void *userdata, int error, const char *sentence) {
    GatewayTest *test = userdata;

    if (error < 0)
        log_error(error, "[Send %s] took the profile, but %s", test->send->name, sentence);
    else
        printf("%s\n", sentence);
    (void)gateway_test_end(test, error);
}

/* The engine has said that it took the profile. */
static int gateway_test_ask(GatewayTest *test) {
    const GatewayAskOptions options = {.config = test->send,
                                       .host = test->config->host,
                                       .since_ns = test->interval->since_ns,
                                       .until_ns = test->interval->until_ns,
                                       .loop = test->loop,
                                       .transport = test->transport,
                                       .done = gateway_test_on_asked,
                                       .userdata = test};
    int r;

    printf("[Send %s] took %" PRIu64 " samples in %" PRIu64 " bytes.\n", test->send->name,
           test->status.sent_samples, test->status.sent_bytes);
    r = gateway_ask_start(&options, &test->ask);
    if (r == -EOPNOTSUPP) {
        printf("An engine of this type cannot be asked for them.\n");
        return gateway_test_end(test, 0);
    }
    return r;
}

static int gateway_test_on_timer(void *userdata) {
    GatewayTest *test = userdata;

    if (test->ask)
        return 0;
    destination_status(test->destination, &test->status);
    if (test->status.refused_samples > 0)
        return gateway_test_fail(test);
    if (test->status.sent_intervals > 0)
        return gateway_test_ask(test);
    if (test->status.last_error_ns > 0 || clock_monotonic_ns() > test->until_ns)
        return gateway_test_fail(test);
    return 0;
}

static int gateway_test_prepare(GatewayTest *test) {
    uint64_t until_ns = clock_ns(CLOCK_REALTIME) / TEST_INTERVAL_NS * TEST_INTERVAL_NS;
    int r = loop_new(&test->loop);

    if (r == 0)
        r = transport_new(test->loop, &test->transport);
    if (r == 0)
        r = source_new(&(SourceOptions){.session = test->config->session,
                                        .interval_ns = TEST_INTERVAL_NS,
                                        .loop = test->loop},
                       &test->source);
    if (r == 0)
        r = engine_golden(until_ns - TEST_INTERVAL_NS, until_ns, &test->interval);
    if (r == 0)
        r = loop_add_timer(test->loop, TEST_POLL_NS, gateway_test_on_timer, test, NULL);
    return r;
}

static int gateway_test_begin(GatewayTest *test) {
    const DestinationOptions options = {.config = test->send,
                                        .gateway = test->config,
                                        .state_folder = test->folder,
                                        .loop = test->loop,
                                        .transport = test->transport,
                                        .source = test->source};
    int r;

    for (size_t i = 0; i < test->config->n_rules; i++)
        strcpy(test->config->rules[i].sends, NO_DESTINATION);
    test->config->interval_ns = TEST_INTERVAL_NS;
    test->send->share_percent = 100;
    test->until_ns = clock_monotonic_ns() + test->send->timeout_ns + TEST_SLACK_NS;
    r = destination_new(&options, &test->destination);
    if (r == 0)
        destination_offer(test->destination, test->interval);
    return r;
}

static int gateway_test_find(GatewayTest *test, const GatewayOptions *options) {
    int problems = gateway_read_config(options, &test->config);

    if (problems < 0)
        return problems;
    test->send = (SendConfig *)gateway_config_send(test->config, options->test);
    if (!test->send)
        return log_error(-ENOENT, "The configuration has no usable [Send %s]", options->test);
    return 0;
}

static int gateway_test_make_folder(GatewayTest *test) {
    (void)snprintf(test->folder, sizeof(test->folder), "/tmp/profd-gateway-test.XXXXXX");
    if (!mkdtemp(test->folder)) {
        int r = -errno;

        *test->folder = '\0';
        return log_error(r, "Failed to make a folder in /tmp: %m");
    }
    return 0;
}

int gateway_test(const GatewayOptions *options) {
    _cleanup_(gateway_test_done) GatewayTest test = {};
    int r = gateway_test_find(&test, options);

    if (r < 0)
        return r;
    if (gateway_send_keeps_recordings(test.send))
        return gateway_store_test(test.config, test.send);
    r = gateway_test_make_folder(&test);
    if (r < 0)
        return r;
    r = gateway_test_prepare(&test);
    if (r == 0)
        r = gateway_test_begin(&test);
    if (r == 0)
        r = loop_run(test.loop);
    if (r < 0)
        return log_error(r, "Failed to test [Send %s]: %m", options->test);
    return test.result;
}
