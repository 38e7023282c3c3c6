/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "send/delivery.h"

#include <errno.h>
#include <string.h>

#include "send/answer-text.h"
#include "send/file-folder.h"
#include "util/hash.h"

/*
 * An interval on its way: it is divided into series, and as many series as fit become a request.
 * The next request is made when the one before was answered, so memory holds one body. What was
 * accepted is remembered as a number of series, in their order, with a hash of their labels: if the
 * rules of the configuration change in between, the number means nothing and the interval begins
 * anew.
 */

/* The smallest limit to which refusals of the size lead. */
#define DELIVERY_BYTES_MIN ((size_t)16 * 1024)
/* The hash goes to a file, so its seed is no secret of this process. */
#define DELIVERY_SEED UINT64_C(0x5bd1e995)

struct Delivery {
    DeliverySettings *settings;
    const DeliveryEvents *events;
    Interval *interval;
    SeriesList series;
    SendPartial before;
    bool is_divided;
    size_t first, next;       /* the series of the request in flight */
    uint64_t samples, folded; /* of it */
    uint64_t again;           /* so many series arrived before, when they had other labels */
    Buffer body;
    size_t body_bytes;
    TransportRequest *request;
    DiskJob *job;
    LoopSource *turn;
    DeliveryResult result;
};

Delivery *delivery_free(Delivery *delivery) {
    if (!delivery)
        return NULL;
    (void)transport_cancel(delivery->request);
    (void)disk_job_forget(delivery->job);
    (void)loop_source_free(delivery->turn);
    if (delivery->is_divided)
        series_list_done(&delivery->series);
    buffer_done(&delivery->body);
    (void)interval_unref(delivery->interval);
    free(delivery);
    return NULL;
}

Range delivery_range(const Delivery *delivery) {
    return (Range){delivery->interval->since_ns, delivery->interval->until_ns};
}

bool delivery_has_begun(const Delivery *delivery) {
    return delivery->is_divided;
}

uint64_t delivery_missing_ns(const Delivery *delivery) {
    return delivery->interval->missing_ns;
}

uint64_t delivery_deleted_ns(const Delivery *delivery) {
    return delivery->interval->deleted_ns;
}

static uint64_t delivery_hash(const SeriesList *series, size_t n) {
    uint64_t h = DELIVERY_SEED;

    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < series->items[i].labels.n; j++) {
            const Label *label = &series->items[i].labels.list[j];

            h = hash_bytes(h, (Bytes){(const uint8_t *)label->name, strlen(label->name)});
            h = hash_bytes(h, (Bytes){(const uint8_t *)label->value, strlen(label->value)});
        }
    return h & (uint64_t)INT64_MAX;
}

static void delivery_finish(Delivery *delivery, SendVerdict verdict) {
    SendCounters *counters = delivery->settings->counters;

    delivery->result.verdict = verdict;
    /* An interval counts once, however often it is tried. */
    if (verdict == SEND_ACCEPTED || verdict == SEND_REFUSED) {
        counters->dropped_samples += delivery->series.dropped;
        counters->other_samples += delivery->series.other;
    }
    if (delivery->first > 0)
        delivery->result.partial = (SendPartial){
            .range = delivery_range(delivery),
            .n = delivery->first,
            .hash = delivery_hash(&delivery->series, delivery->first),
        };
    delivery->events->on_done(delivery->events->userdata, delivery, &delivery->result);
}

static void delivery_fail_without_answer(Delivery *delivery, SendVerdict verdict, int error) {
    char sentence[256];
    bool is_loss = verdict == SEND_REFUSED;

    answer_error_text(error, delivery->settings->config, sentence, sizeof(sentence));
    delivery->events->on_problem(delivery->events->userdata,
                                 &(DeliveryProblem){verdict, is_loss,
                                                    is_loss ? SEND_STATUS_LOST : SEND_STATUS_LOCAL,
                                                    sentence});
}

static int delivery_divide(Delivery *delivery) {
    const SendPartial *before = &delivery->before;
    int r = series_list_make(delivery->interval, &delivery->settings->series, &delivery->series);

    if (r < 0)
        return r;
    delivery->is_divided = true;
    if (before->n > 0 && before->hash != 0 && before->n <= delivery->series.n &&
        before->hash == delivery_hash(&delivery->series, before->n))
        delivery->first = before->n;
    else
        delivery->again = before->n;
    return 0;
}

static uint64_t delivery_samples(const Delivery *delivery) {
    uint64_t samples = 0;

    for (size_t i = delivery->first; i < delivery->next; i++)
        samples += delivery->series.items[i].samples;
    return samples;
}

static int delivery_encode(Delivery *delivery) {
    EngineInput input = {
        .interval = delivery->interval,
        .series = &delivery->series,
        .weight = delivery->settings->weight,
        .first = delivery->first,
        .max_bytes = delivery->settings->max_bytes,
        .folded = &delivery->folded,
    };
    size_t next = delivery->first;
    int r;

    buffer_clear(&delivery->body);
    delivery->folded = 0;
    r = delivery->settings->engine->encode(&input, &delivery->body, &next);
    if (r == 0)
        r = buffer_error(&delivery->body);
    if (r == 0 && (next <= delivery->first || next > delivery->series.n))
        r = -EPROTO;
    if (r < 0)
        return r;
    delivery->next = next;
    delivery->samples = delivery_samples(delivery);
    return 0;
}

/* One more turn of the loop for each request: what else is ready comes in between. */
static void delivery_go_on(Delivery *delivery) {
    if (delivery->first < delivery->series.n && loop_trigger(delivery->turn) == 0)
        return;
    delivery_finish(delivery, delivery->first < delivery->series.n ? SEND_AGAIN
                              : delivery->result.is_refused && delivery->result.requests == 0
                                  ? SEND_REFUSED
                                  : SEND_ACCEPTED);
}

static void delivery_accept(Delivery *delivery, uint64_t sent_bytes, uint64_t refused) {
    SendCounters *counters = delivery->settings->counters;

    delivery->result.requests++;
    delivery->result.is_refused |= refused > 0;
    delivery->result.bytes += delivery->body_bytes;
    counters->sent_requests++;
    counters->sent_bytes += sent_bytes;
    counters->sent_samples += delivery->samples - refused;
    counters->refused_samples += refused;
    counters->other_samples += delivery->folded;
    counters->repeated_requests += delivery->first < delivery->again;
    delivery->first = delivery->next;
    if (delivery->first < delivery->series.n) {
        SendPartial partial = {
            .range = delivery_range(delivery),
            .n = delivery->first,
            .hash = delivery_hash(&delivery->series, delivery->first),
        };

        delivery->events->on_progress(delivery->events->userdata, &partial);
    }
    delivery_go_on(delivery);
}

static void delivery_refuse(Delivery *delivery) {
    delivery->settings->counters->refused_samples += delivery->samples;
    delivery->result.is_refused = true;
    delivery->first = delivery->next;
    delivery_go_on(delivery);
}

/* Later requests are as small at once. They have fewer series, or one whose rarest stacks are
 * folded; false if the last attempt to make it smaller changed nothing. */
static bool delivery_shrink(Delivery *delivery) {
    size_t half = delivery->body_bytes / 2, max_bytes = delivery->settings->max_bytes;

    if (half < DELIVERY_BYTES_MIN || (max_bytes > 0 && half >= max_bytes))
        return false;
    delivery->settings->max_bytes = half;
    return loop_trigger(delivery->turn) == 0;
}

/* Says that the engine did not take some profiles of a request that it accepted, and returns how
 * many samples these have: of some series a share, since the engine does not name them. */
static uint64_t delivery_rejected(Delivery *delivery, const TransportAnswer *answer) {
    const DeliverySettings *settings = delivery->settings;
    size_t n = delivery->next - delivery->first;
    EngineRejection rejection = {};
    char sentence[256];

    if (settings->engine->rejection)
        rejection = settings->engine->rejection((Bytes){answer->data, answer->size});
    if (rejection.profiles == 0 && rejection.message.size == 0)
        return 0;
    answer_rejection_text(&rejection, n, settings->url, sentence, sizeof(sentence));
    delivery->events->on_problem(
        delivery->events->userdata,
        &(DeliveryProblem){rejection.profiles > 0 ? SEND_REFUSED : SEND_ACCEPTED,
                           rejection.profiles > 0, answer->status, sentence});
    if (rejection.profiles >= n)
        return delivery->samples;
    return (uint64_t)((unsigned __int128)delivery->samples * rejection.profiles / n);
}

static void delivery_take_success(Delivery *delivery, const TransportAnswer *answer) {
    uint64_t refused = delivery_rejected(delivery, answer);

    if (refused > 0 && refused == delivery->samples)
        delivery_refuse(delivery);
    else
        delivery_accept(delivery, answer->sent_bytes, refused);
}

static void delivery_take_verdict(Delivery *delivery, const TransportAnswer *answer) {
    char sentence[256];
    DeliveryProblem problem = {
        .verdict = send_verdict(answer), .status = answer->status, .sentence = sentence};
    SendVerdict verdict = problem.verdict;
    bool is_smaller;

    if (answer->is_resent)
        delivery->settings->counters->repeated_requests++;
    if (verdict == SEND_ACCEPTED) {
        delivery_take_success(delivery, answer);
        return;
    }
    answer_sentence(answer, delivery->settings->url, delivery->body_bytes, sentence,
                    sizeof(sentence));
    is_smaller = verdict == SEND_TOO_LARGE && delivery_shrink(delivery);
    if (verdict == SEND_TOO_LARGE)
        verdict = SEND_REFUSED;
    problem.is_loss = verdict == SEND_REFUSED && !is_smaller;
    delivery->events->on_problem(delivery->events->userdata, &problem);
    if (is_smaller)
        return;
    if (verdict == SEND_REFUSED) {
        delivery_refuse(delivery);
        return;
    }
    if (send_may_have_arrived(answer))
        delivery->settings->counters->repeated_requests++;
    delivery->result.retry_after_ns = answer->retry_after_ns;
    delivery_finish(delivery, verdict);
}

static void delivery_on_answer(void *userdata, const TransportAnswer *answer) {
    Delivery *delivery = userdata;

    delivery->request = NULL;
    delivery->events->on_flight(delivery->events->userdata, -1);
    delivery_take_verdict(delivery, answer);
}

static int delivery_send(Delivery *delivery) {
    const DeliverySettings *settings = delivery->settings;
    TransportOptions options = {
        .config = settings->config,
        .method = "POST",
        .url = settings->url,
        .content_type = settings->engine->content_type,
        .headers = settings->headers,
        .body = delivery->body.data,
        .size = delivery->body.size,
        .compress = settings->config->compress && !settings->engine->is_compressed,
        .done = delivery_on_answer,
        .userdata = delivery,
    };
    const DeliveryEvents *events = delivery->events;
    int r;

    events->on_flight(events->userdata, 1);
    r = transport_send(settings->transport, &options, &delivery->request);
    if (r < 0)
        events->on_flight(events->userdata, -1);
    return r;
}

static void delivery_fail(Delivery *delivery, int error) {
    delivery_fail_without_answer(delivery, SEND_AGAIN, error);
    delivery_finish(delivery, SEND_AGAIN);
}

/* A profile on its way into a folder. It may be there for longer than its destination. */
typedef struct DeliveryFile {
    char folder[GATEWAY_TEXT_MAX], name[GATEWAY_NAME_MAX];
    uint64_t since_ns;
    size_t number;
    Buffer body;
} DeliveryFile;

static int delivery_write_file(void *arg) {
    const DeliveryFile *file = arg;
    FileFolderItem item = {
        .name = file->name,
        .since_ns = file->since_ns,
        .number = file->number,
    };

    return file_folder_write(file->folder, &item, buffer_bytes(&file->body));
}

static void delivery_free_file(void *arg) {
    DeliveryFile *file = arg;

    buffer_done(&file->body);
    free(file);
}

static void delivery_on_file(void *userdata, int error) {
    Delivery *delivery = userdata;

    delivery->job = NULL;
    if (error < 0)
        delivery_fail(delivery, error);
    else
        delivery_accept(delivery, delivery->body_bytes, 0);
}

static int delivery_send_file(Delivery *delivery) {
    const SendConfig *config = delivery->settings->config;
    DeliveryFile *file = calloc(1, sizeof(*file));
    bool is_whole = delivery->first == 0 && delivery->next == delivery->series.n;
    DiskWork work = {
        .run = delivery_write_file,
        .done = delivery_on_file,
        .free_arg = delivery_free_file,
        .arg = file,
        .userdata = delivery,
    };
    int r;

    if (!file)
        return -ENOMEM;
    *file = (DeliveryFile){
        .since_ns = delivery->interval->since_ns,
        .number = is_whole ? FILE_FOLDER_WHOLE : delivery->first,
        .body = delivery->body,
    };
    static_assert(sizeof(file->folder) == sizeof(config->url), "one copy holds it");
    static_assert(sizeof(file->name) == sizeof(config->name), "one copy holds it");
    memcpy(file->folder, config->url, sizeof(file->folder));
    memcpy(file->name, config->name, sizeof(file->name));
    delivery->body = (Buffer){};
    r = disk_worker_add(delivery->settings->worker, &work, &delivery->job);
    if (r < 0)
        delivery_free_file(file);
    return r;
}

/* What cannot be encoded now cannot be later either, and must not hold up what can. */
static void delivery_give_up(Delivery *delivery, size_t next, int error) {
    delivery_fail_without_answer(delivery, SEND_REFUSED, error);
    delivery->next = next;
    delivery->samples = delivery_samples(delivery);
    delivery_refuse(delivery);
}

/* The body of the next request, and the request. */
static void delivery_request(Delivery *delivery) {
    int r = delivery_encode(delivery);

    if (r < 0) {
        if (r == -ENOMEM)
            delivery_fail(delivery, r);
        else
            delivery_give_up(delivery, delivery->first + 1, r);
        return;
    }
    if (delivery->body.size == 0) {
        delivery->first = delivery->next;
        delivery_go_on(delivery);
        return;
    }
    delivery->body_bytes = delivery->body.size;
    r = delivery->settings->engine->path ? delivery_send(delivery) : delivery_send_file(delivery);
    if (r < 0)
        delivery_fail(delivery, r);
}

static int delivery_on_turn(void *userdata) {
    Delivery *delivery = userdata;
    int r = delivery->is_divided ? 0 : delivery_divide(delivery);

    if (r == -ENOMEM)
        delivery_fail(delivery, r);
    else if (r < 0)
        delivery_give_up(delivery, 0, r);
    else if (delivery->first >= delivery->series.n)
        delivery_go_on(delivery);
    else
        delivery_request(delivery);
    return 0;
}

int delivery_new(DeliverySettings *settings, const DeliveryEvents *events, const DeliveryPlan *plan,
                 Delivery **ret) {
    _cleanup_(delivery_freep) Delivery *delivery = calloc(1, sizeof(*delivery));
    int r;

    if (!delivery)
        return -ENOMEM;
    delivery->settings = settings;
    delivery->events = events;
    delivery->interval = interval_ref(plan->interval);
    if (plan->partial)
        delivery->before = *plan->partial;
    r = loop_add_deferred(settings->loop, delivery_on_turn, delivery, &delivery->turn);
    if (r == 0)
        r = loop_trigger_after(delivery->turn, plan->delay_ns);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(delivery);
    return 0;
}
