/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "export/make-shop.h"
#include "listen/listen.h"
#include "util/text.h"

/*
 * The listener alone, for tests of hostile clients: its source hands out one made profile, and what
 * else it does is said by the unit that is asked for. Ends at SIGTERM, and frees everything.
 */

struct SourceJob {
    SourceDone done;
    void *userdata;
    LoopSource *deferred;
    int error;
};

static Loop *the_loop;
static MadeProfile the_profile;
static Listen *the_listener;

Interval *interval_ref(Interval *interval) {
    interval->references++;
    return interval;
}

/* The profile is borrowed. */
Interval *interval_unref(Interval *interval) {
    if (interval && --interval->references == 0)
        free(interval);
    return NULL;
}

SourceJob *source_job_cancel(SourceJob *job) {
    if (job)
        loop_source_free(job->deferred);
    free(job);
    return NULL;
}

static int tool_finish(void *userdata) {
    SourceJob *job = userdata;
    Interval *interval = calloc(1, sizeof(*interval));
    const Profile *profile = the_profile.profile;

    made_ok(interval ? 0 : -ENOMEM);
    *interval = (Interval){
        .references = 1,
        .since_ns = profile->first_ns + profile->real_offset,
        .until_ns = profile->last_ns + profile->real_offset,
        .profile = the_profile.profile,
        .names = the_profile.names,
    };
    job->done(job->userdata, job->error, job->error == 0 ? interval : NULL);
    interval_unref(interval);
    source_job_cancel(job);
    return 0;
}

/* "hang.service" is never done. */
int source_window(Source *source, const SourceWindow *window, SourceDone done, void *userdata,
                  SourceJob **ret) {
    const char *unit = window->selection->n_units > 0 ? window->selection->units[0] : "";
    SourceJob *job = calloc(1, sizeof(*job));

    made_ok(job && window->is_urgent && window->since_ns < window->until_ns ? 0 : -EINVAL);
    job->done = done;
    job->userdata = userdata;
    job->error = strcmp(unit, "deleted.service") == 0  ? -ENODATA
                 : strcmp(unit, "away.service") == 0   ? -ENOTCONN
                 : strcmp(unit, "broken.service") == 0 ? -EIO
                                                       : 0;
    made_ok(loop_add_deferred(the_loop, tool_finish, job, &job->deferred));
    if (strcmp(unit, "hang.service") != 0)
        made_ok(loop_trigger(job->deferred));
    *ret = job;
    return 0;
}

static void tool_status(void *userdata, GatewayStatus *ret) {
    ListenCounts counts = {};

    if (the_listener)
        listen_counts(the_listener, &counts);
    *ret = (GatewayStatus){
        .source.connected = *(bool *)userdata,
        .scrapes = counts.scrapes,
        .refused_clients = counts.refused_clients,
    };
}

void status_metrics(const GatewayStatus *status, Buffer *out) {
    text_printf(out, "scrapes %llu\nrefused %llu\n", (unsigned long long)status->scrapes,
                (unsigned long long)status->refused_clients);
}

static int tool_stop(void *userdata) {
    loop_stop(userdata);
    return 0;
}

static void tool_take(char to[GATEWAY_TEXT_MAX], const char *from) {
    made_ok(snprintf(to, GATEWAY_TEXT_MAX, "%s", from) < GATEWAY_TEXT_MAX ? 0 : -E2BIG);
}

static void tool_parse(int argc, char **argv, GatewayConfig *config, ListenOptions *options) {
    int c;

    while ((c = getopt(argc, argv, "s:a:c:k:t:p:d:")) != -1)
        switch (c) {
        case 's':
            tool_take(config->listen_socket, optarg);
            break;
        case 'a':
            tool_take(config->listen_address, optarg);
            break;
        case 'c':
            tool_take(config->listen_certificate_file, optarg);
            break;
        case 'k':
            tool_take(config->listen_key_file, optarg);
            break;
        case 't':
            tool_take(config->listen_token_file, optarg);
            break;
        case 'd':
            tool_take(config->socket, optarg);
            break;
        case 'p':
            options->patience_ns = strtoull(optarg, NULL, 10) * 1000000;
            break;
        default:
            exit(2);
        }
}

int main(int argc, char **argv) {
    GatewayConfig *config = calloc(1, sizeof(*config));
    bool is_connected = true;
    ListenOptions options = {.config = config, .status = tool_status, .userdata = &is_connected};
    ListenSecret *secret = NULL;
    const char *problem = NULL;
    int r;

    made_ok(config ? loop_new(&the_loop) : -ENOMEM);
    tool_parse(argc, argv, config, &options);
    is_connected = config->socket[0] != '\0';
    the_profile = make_shop();
    options.loop = the_loop;
    made_ok(loop_add_signal(the_loop, SIGTERM, tool_stop, the_loop, NULL));
    r = listen_secret_load(config, &secret, &problem);
    options.secret = secret;
    if (r == 0)
        r = listen_new(&options, &the_listener, &problem);
    if (r < 0)
        fprintf(stderr, "%s (%s)\n", problem, strerror(-r));
    else {
        puts("ready");
        (void)fflush(stdout);
        r = loop_run(the_loop);
    }
    listen_free(the_listener);
    listen_secret_free(secret);
    loop_free(the_loop);
    made_profile_done(&the_profile);
    free(config);
    return r < 0;
}
