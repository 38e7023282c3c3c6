/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>

#include "listen/listen-private.h"
#include "protocol/connection.h"
#include "protocol/metric-text.h"
#include "util/clock.h"
#include "util/text.h"

/*
 * /metrics: those of profd, which a worker asks for over its control socket, and those of the
 * gateway. While profd is away only the latter are there, and profd_up says so.
 */

#define METRICS_NS   (2 * NS_PER_SECOND)
#define METRICS_TYPE "text/plain; version=0.0.4; charset=utf-8"
#define METRICS_CALL "io.profd.Control.GetMetrics"

typedef struct MetricsJob {
    Listen *listen;
    ListenPeer *peer; /* NULL: nobody waits for it any more */
    const char *socket;
    Buffer text;
    int error;
} MetricsJob;

static int listen_metrics_ask(const char *socket, Buffer *out) {
    _cleanup_(connection_freep) Connection *connection = NULL;
    Reply reply;
    int r = connection_open(socket, &connection);

    if (r == 0)
        r = connection_call(connection, METRICS_CALL, json_object(), 0, METRICS_NS);
    if (r == 0)
        r = connection_receive(connection, METRICS_NS, &reply);
    if (r == 0 && reply.error)
        r = -EREMOTEIO;
    if (r == 0)
        metric_text_put(out, json_object_get(reply.parameters, "metrics"));
    return r;
}

static void listen_metrics_run(void *userdata) {
    MetricsJob *job = userdata;

    job->error = listen_metrics_ask(job->socket, &job->text);
}

static void listen_metrics_done(void *userdata) {
    MetricsJob *job = userdata;
    Listen *listen = job->listen;
    GatewayStatus status = {};

    if (job->peer) {
        text_printf(&job->text,
                    "# HELP profd_up Whether profd has answered the gateway\n"
                    "# TYPE profd_up gauge\nprofd_up %d\n",
                    job->error == 0);
        listen->options.status(listen->options.userdata, &status);
        status_metrics(&status, &job->text);
        listen_reply_buffer(listen, job->peer, METRICS_TYPE, &job->text);
    }
    buffer_done(&job->text);
    free(job);
}

static void listen_metrics_on_end(void *userdata, ListenPeerEnd end) {
    MetricsJob *job = userdata;

    if (end == LISTEN_PEER_LATE)
        listen_reply_sentence(job->listen, job->peer, HTTP_SERVUNAVAIL,
                              "profd takes too long to answer.");
    job->peer = NULL;
}

void listen_metrics_serve(Listen *listen, ListenPeer *peer) {
    const char *socket = listen->options.config->socket;
    MetricsJob *job = calloc(1, sizeof(*job));
    int r = job ? 0 : -ENOMEM;

    if (r == 0) {
        *job = (MetricsJob){
            .listen = listen,
            .peer = peer,
            .socket = *socket ? socket : NULL,
        };
        r = worker_add(listen->scrapes, &(WorkerJob){listen_metrics_run, listen_metrics_done, job},
                       LISTEN_SCRAPES_MAX);
    }
    if (r == 0) {
        listen_peer_wait(peer, listen_metrics_on_end, job);
        return;
    }
    free(job);
    listen_reply_sentence(listen, peer, HTTP_SERVUNAVAIL,
                          "Too many clients ask for metrics at once; ask again in a moment.");
}
