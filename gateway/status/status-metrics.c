/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <inttypes.h>

#include "status/status-value.h"
#include "util/clock.h"
#include "util/text.h"

/*
 * The state as metrics of Prometheus: one table of figures that exist once, another of those of
 * each destination. Names of destinations come from the configuration, where they are letters,
 * digits and a few signs, so they need no escape. No label has a value that grows with the host.
 */

#define SECONDS(ns) ((double)(ns) / (double)NS_PER_SECOND)

typedef struct StatusRow {
    const char *name, *type, *help;
    double (*value)(const GatewayStatus *status, const DestinationStatus *send);
} StatusRow;

#define ROW(field, expression)                                                                     \
    static double status_row_##field(const GatewayStatus *s, const DestinationStatus *d) {         \
        (void)s;                                                                                   \
        (void)d;                                                                                   \
        return (double)(expression);                                                               \
    }

ROW(start, SECONDS(s->start_ns))
ROW(cpu, SECONDS(s->cpu_ns))
ROW(resident, s->resident_bytes)
ROW(anonymous, s->anonymous_bytes)
ROW(problems, s->config_problems)
ROW(outdated, s->is_outdated)
ROW(connected, s->source.connected)
ROW(read_lag, SECONDS(status_source_lag_ns(s)))
ROW(intervals, s->source.intervals)
ROW(samples, s->source.samples)
ROW(lost, s->source.lost)
ROW(gaps, s->source.gaps)
ROW(missing, SECONDS(s->source.missing_ns))
ROW(queued, s->source.queued_windows)
ROW(scrapes, s->scrapes)
ROW(refused_clients, s->refused_clients)

ROW(up, status_send_is_up(d))
ROW(lag, SECONDS(status_send_lag_ns(s, d)))
ROW(live_lag, SECONDS(status_send_live_lag_ns(s, d)))
ROW(success, SECONDS(d->last_success_ns))
ROW(waiting, d->is_waiting)
ROW(backlog, SECONDS(d->backlog_ns))
ROW(ranges, d->ranges)
ROW(sent_intervals, d->sent_intervals)
ROW(sent_requests, d->sent_requests)
ROW(sent_bytes, d->sent_bytes)
ROW(sent_samples, d->sent_samples)
ROW(refused_intervals, d->refused_intervals)
ROW(refused_samples, d->refused_samples)
ROW(dropped, d->dropped_samples)
ROW(other, d->other_samples)
ROW(thinned, d->thinned_intervals)
ROW(expired, SECONDS(d->expired_ns))
ROW(not_there, SECONDS(d->missing_ns))
ROW(deleted, SECONDS(d->deleted_ns))
ROW(repeated, d->repeated_requests)
ROW(retries, d->retries)

/* clang-format off */
static const StatusRow whole_rows[] = {
    { "profd_gateway_start_time_seconds",             "gauge",   "When the gateway was started, in seconds since 1970",                    status_row_start           },
    { "profd_gateway_cpu_seconds_total",              "counter", "CPU time that the gateway used",                                         status_row_cpu             },
    { "profd_gateway_resident_bytes",                 "gauge",   "Memory of the gateway",                                                  status_row_resident        },
    { "profd_gateway_anonymous_bytes",                "gauge",   "Memory of the gateway that is not mapped from files",                    status_row_anonymous       },
    { "profd_gateway_config_problems",                "gauge",   "Lines of the configuration that are not used",                           status_row_problems        },
    { "profd_gateway_config_outdated",                "gauge",   "Whether the last reload was refused",                                    status_row_outdated        },
    { "profd_gateway_source_up",                      "gauge",   "Whether the gateway follows profd",                                      status_row_connected       },
    { "profd_gateway_source_lag_seconds",             "gauge",   "Age of the newest samples that were read from profd",                    status_row_read_lag        },
    { "profd_gateway_intervals_total",                "counter", "Intervals that were read from profd while it was followed",              status_row_intervals       },
    { "profd_gateway_samples_total",                  "counter", "Samples that were read from profd while it was followed",                status_row_samples         },
    { "profd_gateway_lost_samples_total",             "counter", "Samples that the kernel or profd lost in these intervals",               status_row_lost            },
    { "profd_gateway_gaps_total",                     "counter", "Gaps of the recording in these intervals",                               status_row_gaps            },
    { "profd_gateway_not_recorded_seconds_total",     "counter", "Time that profd did not record in these intervals",                      status_row_missing         },
    { "profd_gateway_queued_windows",                 "gauge",   "Windows of the past that wait to be read",                               status_row_queued          },
    { "profd_gateway_scrapes_total",                  "counter", "Requests that the listener answered",                                    status_row_scrapes         },
    { "profd_gateway_refused_clients_total",          "counter", "Requests that the listener refused",                                     status_row_refused_clients },
};

static const StatusRow send_rows[] = {
    { "profd_gateway_destination_up",                       "gauge",   "Whether the last request arrived and nothing has failed since",    status_row_up                },
    { "profd_gateway_destination_lag_seconds",              "gauge",   "Age of the oldest samples that were not sent yet",                 status_row_lag               },
    { "profd_gateway_destination_live_lag_seconds",         "gauge",   "Age of the newest samples that were sent",                         status_row_live_lag          },
    { "profd_gateway_destination_last_success_timestamp_seconds", "gauge", "When the last request arrived, in seconds since 1970; 0: never", status_row_success         },
    { "profd_gateway_destination_waiting",                  "gauge",   "Whether the gateway waits before it tries again",                  status_row_waiting           },
    { "profd_gateway_destination_backlog_seconds",          "gauge",   "Time of which the samples wait in the store of profd",             status_row_backlog           },
    { "profd_gateway_destination_backlog_ranges",           "gauge",   "Spans that the backlog consists of",                               status_row_ranges            },
    { "profd_gateway_destination_sent_intervals_total",     "counter", "Intervals that arrived",                                           status_row_sent_intervals    },
    { "profd_gateway_destination_sent_requests_total",      "counter", "Requests that arrived",                                            status_row_sent_requests     },
    { "profd_gateway_destination_sent_bytes_total",         "counter", "Bytes of requests that arrived, as they were sent",                status_row_sent_bytes        },
    { "profd_gateway_destination_sent_samples_total",       "counter", "Samples that arrived",                                             status_row_sent_samples      },
    { "profd_gateway_destination_refused_intervals_total",  "counter", "Intervals that the engine refused for good",                       status_row_refused_intervals },
    { "profd_gateway_destination_refused_samples_total",    "counter", "Samples that the engine refused for good",                         status_row_refused_samples   },
    { "profd_gateway_destination_dropped_samples_total",    "counter", "Samples that rules dropped",                                        status_row_dropped           },
    { "profd_gateway_destination_other_samples_total",      "counter", "Samples of series, values or stacks above a limit, sent as other",   status_row_other             },
    { "profd_gateway_destination_thinned_intervals_total",  "counter", "Intervals that Share= left out",                                    status_row_thinned           },
    { "profd_gateway_destination_expired_seconds_total",    "counter", "Time that became too old for the engine before it was sent",       status_row_expired           },
    { "profd_gateway_destination_missing_seconds_total",    "counter", "Time that profd did not record, had deleted, or did not give",      status_row_not_there         },
    { "profd_gateway_destination_deleted_seconds_total",    "counter", "Time that profd had recorded and deleted before it was sent",      status_row_deleted           },
    { "profd_gateway_destination_repeated_requests_total",  "counter", "Requests that may have arrived twice",                             status_row_repeated          },
    { "profd_gateway_destination_retries_total",            "counter", "Requests that were tried again",                                   status_row_retries           },
};
/* clang-format on */

static void status_metrics_value(Buffer *out, double value) {
    if (value == (double)(uint64_t)value)
        text_printf(out, "%" PRIu64 "\n", (uint64_t)value);
    else
        text_printf(out, "%.15g\n", value);
}

static void status_metrics_head(Buffer *out, const StatusRow *row) {
    text_printf(out, "# HELP %s %s\n# TYPE %s %s\n", row->name, row->help, row->name, row->type);
}

static void status_metrics_send(Buffer *out, const GatewayStatus *status, const StatusRow *row) {
    status_metrics_head(out, row);
    for (size_t i = 0; i < status->n_sends; i++) {
        const DestinationStatus *send = &status->sends[i];

        text_printf(out, "%s{destination=\"%s\",type=\"%s\"} ", row->name, send->name, send->type);
        status_metrics_value(out, row->value(status, send));
    }
}

void status_metrics(const GatewayStatus *status, Buffer *out) {
    text_puts(out, "# HELP profd_gateway_build_info Version of the gateway, always 1\n"
                   "# TYPE profd_gateway_build_info gauge\n"
                   "profd_gateway_build_info{version=\"" PROFD_VERSION "\"} 1\n");
    for (size_t i = 0; i < ARRAY_SIZE(whole_rows); i++) {
        status_metrics_head(out, &whole_rows[i]);
        text_printf(out, "%s ", whole_rows[i].name);
        status_metrics_value(out, whole_rows[i].value(status, NULL));
    }
    for (size_t i = 0; status->n_sends > 0 && i < ARRAY_SIZE(send_rows); i++)
        status_metrics_send(out, status, &send_rows[i]);
}
