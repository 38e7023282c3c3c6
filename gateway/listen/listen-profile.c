/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <event2/buffer.h>
#include <event2/keyvalq_struct.h>

#include "export/export.h"
#include "listen/listen-private.h"
#include "listen/listen-query.h"
#include "util/clock.h"

/*
 * /debug/pprof/profile: profd has recorded already what is asked for, so the answer comes as soon
 * as the window is read. The source reads it on its own thread, a worker makes the bytes, and a
 * slot is taken until the client has them: that bounds memory, whatever clients do.
 */

enum { PROFILE_BYTES_MAX = 32 << 20 };

typedef struct ProfileJob {
    Listen *listen;
    ListenSlots *slots;
    ListenPeer *peer; /* NULL: nobody waits for it any more */
    ListenQuery query;
    Selection selection;
    const char *unit; /* in selection */
    SourceJob *source;
    Interval *interval;
    Buffer out;
    ListenSymbols symbols;
    int error;
} ProfileJob;

void listen_slots_unref(ListenSlots *slots) {
    if (slots && --slots->references == 0)
        free(slots);
}

static void listen_profile_free(ProfileJob *job) {
    job->slots->n--;
    listen_slots_unref(job->slots);
    source_job_cancel(job->source);
    interval_unref(job->interval);
    buffer_done(&job->out);
    listen_symbols_done(&job->symbols);
    free(job);
}

static int listen_profile_sink(const void *data, size_t size, void *arg) {
    Buffer *out = arg;

    if (size > PROFILE_BYTES_MAX - out->size)
        return -EFBIG;
    buffer_append(out, data, size);
    return buffer_error(out);
}

static void listen_profile_run(void *userdata) {
    ProfileJob *job = userdata;
    const Interval *interval = job->interval;
    ExportInput input = {
        .profile = interval->profile,
        .names = interval->names,
        .event = PROFILE_NONE,
        .by_period = true,
        .since_ns = interval->since_ns,
        .until_ns = interval->until_ns,
        .is_real = true,
        .name_all = true,
    };

    job->error = export_format_by_name("pprof")->write(&input, listen_profile_sink, &job->out);
    if (job->error == 0)
        job->error = listen_symbols_make(interval->profile, interval->names, &job->symbols);
}

typedef struct ProfileFault {
    int error, status;
    const char *sentence;
} ProfileFault;

static void listen_profile_refuse(Listen *listen, ListenPeer *peer, int error) {
    /* clang-format off */
    static const ProfileFault faults[] = {
        {-ENODATA,  HTTP_NOTFOUND,     "Nothing was recorded in that time, or it was deleted."},
        {-EACCES,   403,               "profd recorded stacks of user memory in that time, which are for administrators only."},
        {-ENOTCONN, HTTP_SERVUNAVAIL,  "profd does not answer; ask again when it runs."},
        {-EPIPE,    HTTP_SERVUNAVAIL,  "profd broke off while it gave that time; its log may say why, or it was restarted: ask again."},
        {-EFBIG,    HTTP_SERVUNAVAIL,  "The profile is larger than 32 MiB; ask for less time, a unit or a process."},
        {-EBUSY,    HTTP_SERVUNAVAIL,  "Four profiles are being made or sent; ask again when one is finished."},
        {-ETIME,    HTTP_SERVUNAVAIL,  "The profile takes too long; ask for less time, or later."},
        {0,         HTTP_INTERNAL,     "The profile could not be made; the log of the gateway may say more."},
    };
    /* clang-format on */
    const ProfileFault *fault = faults;

    while (fault->error != 0 && fault->error != error)
        fault++;
    listen_reply_sentence(listen, peer, fault->status, fault->sentence);
}

static void listen_profile_on_sent(const void *data _unused_, size_t size _unused_, void *job) {
    listen_profile_free(job);
}

/* The job lives until the bytes are sent. */
static void listen_profile_send(ProfileJob *job) {
    struct evbuffer *body = evbuffer_new();

    if (!body || evbuffer_add_reference(body, job->out.data, job->out.size, listen_profile_on_sent,
                                        job) < 0) {
        listen_profile_refuse(job->listen, job->peer, -ENOMEM);
        listen_profile_free(job);
    } else {
        listen_reply_header(job->peer, "Content-Disposition", "attachment; filename=\"profile\"");
        listen_reply(job->listen, job->peer, HTTP_OK, "application/octet-stream", body);
    }
    if (body)
        evbuffer_free(body);
}

static void listen_profile_done(void *userdata) {
    ProfileJob *job = userdata;

    job->interval = interval_unref(job->interval);
    if (job->peer && job->error == 0) {
        listen_symbols_done(&job->listen->symbols);
        job->listen->symbols = job->symbols;
        job->symbols = (ListenSymbols){};
        listen_profile_send(job);
        return;
    }
    if (job->peer)
        listen_profile_refuse(job->listen, job->peer, job->error);
    listen_profile_free(job);
}

static void listen_profile_on_window(void *userdata, int error, Interval *interval) {
    ProfileJob *job = userdata;

    job->source = NULL;
    if (error == 0) {
        job->interval = interval_ref(interval);
        error = worker_add(job->listen->profiles,
                           &(WorkerJob){listen_profile_run, listen_profile_done, job},
                           LISTEN_PROFILES_MAX);
    }
    if (error == 0)
        return;
    listen_profile_refuse(job->listen, job->peer, error);
    listen_profile_free(job);
}

/* What the worker has, it hands back. */
static void listen_profile_on_end(void *userdata, ListenPeerEnd end) {
    ProfileJob *job = userdata;
    bool is_working = job->interval != NULL;

    if (end == LISTEN_PEER_LATE)
        listen_profile_refuse(job->listen, job->peer, -ETIME);
    job->peer = NULL;
    if (!is_working)
        listen_profile_free(job);
}

static int listen_profile_start(Listen *listen, ListenPeer *peer, const ListenQuery *query) {
    ProfileJob *job = listen->slots->n < LISTEN_PROFILES_MAX ? calloc(1, sizeof(*job)) : NULL;
    SourceWindow window = {.since_ns = query->since_ns, .until_ns = query->until_ns};
    int r;

    if (!job)
        return listen->slots->n < LISTEN_PROFILES_MAX ? -ENOMEM : -EBUSY;
    *job = (ProfileJob){
        .listen = listen,
        .slots = listen->slots,
        .peer = peer,
        .query = *query,
    };
    job->slots->references++;
    job->slots->n++;
    job->unit = job->query.unit;
    job->selection = (Selection){
        .pids = &job->query.pid,
        .n_pids = query->has_pid,
        .units = &job->unit,
        .n_units = query->unit[0] != '\0',
    };
    window.selection = &job->selection;
    window.is_urgent = true;
    r = source_window(listen->options.source, &window, listen_profile_on_window, job, &job->source);
    if (r < 0)
        listen_profile_free(job);
    else
        listen_peer_wait(peer, listen_profile_on_end, job);
    return r;
}

void listen_profile_serve(Listen *listen, ListenPeer *peer) {
    struct evhttp_request *request = listen_peer_request(peer);
    const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(request);
    const char *problem = NULL;
    ListenQuery query;
    int r =
        listen_query_parse(evhttp_uri_get_query(uri), clock_ns(CLOCK_REALTIME), &query, &problem);

    if (r < 0) {
        listen_reply_sentence(listen, peer, HTTP_BADREQUEST, problem);
        return;
    }
    if (evhttp_request_get_command(request) == EVHTTP_REQ_HEAD) {
        listen_reply(listen, peer, HTTP_OK, "application/octet-stream", NULL);
        return;
    }
    r = listen_profile_start(listen, peer, &query);
    if (r < 0)
        listen_profile_refuse(listen, peer, r);
}
