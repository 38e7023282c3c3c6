/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>

#include "method/method-private.h"
#include "protocol/value.h"
#include "session/account.h"
#include "session/degraded.h"
#include "util/clock.h"
#include "util/text.h"

/*
 * Figures for machines, with names in the style of Prometheus. One table has the figures that exist
 * once, another those of each session. Their number depends only on the number of sessions: names
 * of processes or files are never labels.
 */

enum { INTERVAL_MIN_MS = 100 };

#define SECONDS(ns) ((double)(ns) / (double)NS_PER_SECOND)

/* All sources of the rows, gathered once per reply. */
typedef struct Facts {
    StoreUse use;
    SnapshotUse snapshots;
    BinaryUse binaries;
    BinariesCounts binary_counts;
    HistoryCounts history;
    TableCacheCounts tables;
    uint64_t resyncs, restarts, memory_bytes, cpu_ns, scan_ns, n_open;
    SamplerCounts sampled;
} Facts;

typedef struct WholeRow {
    const char *name, *type, *help;
    double (*value)(const Facts *facts);
} WholeRow;

typedef struct SessionRow {
    const char *name, *type, *help;
    double (*value)(const SessionTotals *totals);
} SessionRow;

#define WHOLE(field, expression)                                                                   \
    static double whole_##field(const Facts *f) {                                                  \
        return (double)(expression);                                                               \
    }
#define OF_SESSION(field, expression)                                                              \
    static double of_##field(const SessionTotals *t) {                                             \
        return (double)(expression);                                                               \
    }

WHOLE(sessions, f->n_open)
WHOLE(restarts, f->restarts)
WHOLE(cpu, SECONDS(f->cpu_ns))
WHOLE(scan, SECONDS(f->scan_ns))
WHOLE(memory, f->memory_bytes)
WHOLE(used, f->use.used_bytes)
WHOLE(limit, f->use.limit_bytes)
WHOLE(free, f->use.free_bytes)
WHOLE(reach, SECONDS(f->use.reach_ns))
WHOLE(snapshots, f->snapshots.n)
WHOLE(snapshot_bytes, f->snapshots.used_bytes)
WHOLE(binaries, f->binaries.n)
WHOLE(binary_bytes, f->binaries.bytes)
WHOLE(binary_limit, f->binaries.limit_bytes)
WHOLE(binaries_kept, f->binaries.kept)
WHOLE(binaries_removed, f->binaries.removed)
WHOLE(binaries_failed, f->binary_counts.failed)
WHOLE(code_maps, f->binary_counts.code_maps)
WHOLE(code_maps_refused, f->binary_counts.refused)
WHOLE(sweeps, f->sampled.sweeps)
WHOLE(drain, SECONDS(f->sampled.drain_ns))
WHOLE(side_band, f->sampled.side_band_bytes)
WHOLE(side_band_lost, f->sampled.side_band_lost)
WHOLE(data_lost, f->sampled.data_lost)
WHOLE(processes, f->history.processes)
WHOLE(history_bytes, f->history.memory_bytes)
WHOLE(inferred, f->history.inferred)
WHOLE(unidentified, f->history.unidentified)
WHOLE(resyncs, f->resyncs)
WHOLE(tables_evicted, f->tables.evicted)

OF_SESSION(samples, t->samples)
OF_SESSION(lost, t->lost)
OF_SESSION(dropped, t->dropped)
OF_SESSION(throttles, t->throttles)
OF_SESSION(throttled, SECONDS(t->throttled_ns))
OF_SESSION(raw, t->raw_bytes)
OF_SESSION(stored, t->stored_bytes)
OF_SESSION(segments, t->segments)
OF_SESSION(queue, t->queue_bytes)
OF_SESSION(queue_high, t->queue_high_bytes)

/* clang-format off */
static const WholeRow whole_rows[] = {
    { "profd_sessions",                     "gauge",   "Sessions that have events open",                                                               whole_sessions          },
    { "profd_recorder_restarts_total",      "counter", "Recorders that died and were started again",                                                   whole_restarts          },
    { "profd_cpu_seconds_total",            "counter", "CPU time that all processes of profd used",                                                    whole_cpu               },
    { "profd_scan_cpu_seconds_total",       "counter", "CPU time that reading /proc and programs took",                                                whole_scan              },
    { "profd_resident_bytes",               "gauge",   "Memory of the recorder",                                                                       whole_memory            },
    { "profd_store_used_bytes",             "gauge",   "Bytes that all of the store takes: segments, snapshots and kept symbols",                      whole_used              },
    { "profd_store_limit_bytes",            "gauge",   "Bytes that all of the store may take",                                                         whole_limit             },
    { "profd_store_free_bytes",             "gauge",   "Bytes that are free on the file system of the store",                                          whole_free              },
    { "profd_store_reach_seconds",          "gauge",   "How far back a full store reaches, in the session with the shortest reach; 0 while not known", whole_reach             },
    { "profd_snapshots",                    "gauge",   "Snapshots that are kept",                                                                      whole_snapshots         },
    { "profd_snapshot_bytes",               "gauge",   "Bytes that snapshots take",                                                                    whole_snapshot_bytes    },
    { "profd_binaries",                     "gauge",   "Files whose symbols are kept",                                                                 whole_binaries          },
    { "profd_binary_bytes",                 "gauge",   "Bytes that kept symbols take",                                                                 whole_binary_bytes      },
    { "profd_binary_limit_bytes",           "gauge",   "Bytes that kept symbols may take",                                                             whole_binary_limit      },
    { "profd_binaries_kept_total",          "counter", "Files whose symbols were written to the store",                                                whole_binaries_kept     },
    { "profd_binaries_removed_total",       "counter", "Files whose symbols were removed to make room, or for want of samples",                        whole_binaries_removed  },
    { "profd_binaries_failed_total",        "counter", "Files whose symbols could not be written",                                                     whole_binaries_failed   },
    { "profd_code_maps",                    "gauge",   "Processes whose map of generated code is held open",                                           whole_code_maps         },
    { "profd_code_maps_refused_total",      "counter", "Maps of generated code that were links, too large or not the user's own",                      whole_code_maps_refused },
    { "profd_sweeps_total",                 "counter", "Sweeps over all rings",                                                                        whole_sweeps            },
    { "profd_drain_seconds_total",          "counter", "Time that sweeps took",                                                                        whole_drain             },
    { "profd_side_band_bytes_total",        "counter", "Bytes of records about processes",                                                             whole_side_band         },
    { "profd_side_band_lost_total",         "counter", "Records about processes that were lost because a ring was full",                               whole_side_band_lost    },
    { "profd_data_mappings_lost_total",     "counter", "Mappings of data, for unwinding, that were lost because a ring was full",                      whole_data_lost         },
    { "profd_processes",                    "gauge",   "Processes in the table",                                                                       whole_processes         },
    { "profd_process_table_bytes",          "gauge",   "Memory of the table of processes",                                                             whole_history_bytes     },
    { "profd_process_facts_inferred_total", "counter", "Facts about processes that /proc showed and no record had reported",                           whole_inferred          },
    { "profd_unidentified_files",           "gauge",   "Mapped files without a known build id",                                                        whole_unidentified      },
    { "profd_resyncs_total",                "counter", "How often /proc was read again",                                                               whole_resyncs           },
    { "profd_unwind_tables_evicted_total",  "counter", "Unwind tables of files that were dropped because their memory was full",                       whole_tables_evicted    },
};

static const SessionRow session_rows[] = {
    { "profd_samples_total",           "counter", "Samples taken",                                         of_samples    },
    { "profd_lost_samples_total",      "counter", "Samples lost for any reason",                           of_lost       },
    { "profd_dropped_samples_total",   "counter", "Samples lost because the queue of the writer was full", of_dropped    },
    { "profd_throttles_total",         "counter", "How often the kernel throttled an event",               of_throttles  },
    { "profd_throttled_seconds_total", "counter", "Time that events were throttled, summed over all CPUs", of_throttled  },
    { "profd_raw_bytes_total",         "counter", "Bytes of records before compression",                   of_raw        },
    { "profd_stored_bytes_total",      "counter", "Bytes written into segments",                           of_stored     },
    { "profd_segments_total",          "counter", "Segments finished",                                     of_segments   },
    { "profd_queue_bytes",             "gauge",   "Bytes of records that wait for the writer",             of_queue      },
    { "profd_queue_high_bytes",        "gauge",   "Most bytes that ever waited for the writer",            of_queue_high },
};
/* clang-format on */

static void method_metrics_add(json_t **list, const char *name, const char *type, const char *help,
                               json_t *labels, double value) {
    value_append(list, json_pack("{s:s, s:s, s:s, s:o, s:f}", "name", name, "type", type, "help",
                                 help, "labels", labels, "value", value));
}

static json_t *method_metrics_label_session(const SessionEntry *entry) {
    return json_pack("{s:s}", "session", entry->config.name);
}

static void method_metrics_add_stacks(json_t **list, const SessionEntry *entry,
                                      const SessionTotals *totals) {
    for (unsigned i = 0; totals->is_unwound && i < UNWIND_VERDICTS; i++)
        method_metrics_add(list, "profd_stacks_total", "counter",
                           "Stacks of user code that were unwound, by how that ended",
                           json_pack("{s:s, s:s}", "session", entry->config.name, "result",
                                     unwind_verdict_name(i)),
                           (double)totals->stacks.samples[i]);
    if (totals->is_unwound)
        method_metrics_add(list, "profd_stacks_held_total", "counter",
                           "Unwound samples that stayed in their rings until they were written",
                           method_metrics_label_session(entry), (double)totals->held_samples);
}

/* Which call graphs the session takes. */
static void method_metrics_add_call_graph(json_t **list, const SessionEntry *entry) {
    _cleanup_(buffer_done) Buffer mode = {};

    if (!session_entry_records(entry))
        return;
    sampler_put_call_graph(session_sampler(entry->session), &mode);
    text_putc(&mode, '\0');
    if (buffer_error(&mode) == 0)
        method_metrics_add(list, "profd_session_call_graph", "gauge",
                           "The call graphs that the session takes, as CallGraph= writes them",
                           json_pack("{s:s, s:o}", "session", entry->config.name, "mode",
                                     answer_text((const char *)mode.data)),
                           1);
    method_metrics_add(list, "profd_session_ring_bytes", "gauge",
                       "Memory of the ring buffers of the session",
                       method_metrics_label_session(entry),
                       (double)sampler_rings(session_sampler(entry->session)).bytes);
}

static void method_metrics_add_states(json_t **list, const SessionEntry *entry) {
    size_t n;
    const DegradedReason *reasons = degraded_reasons(&n);
    unsigned set = session_entry_degraded(entry);

    method_metrics_add(list, "profd_session_up", "gauge", "Whether the session records",
                       method_metrics_label_session(entry), session_entry_samples(entry));
    for (size_t i = 0; i < n; i++)
        if (set & reasons[i].reason)
            method_metrics_add(
                list, "profd_session_degraded", "gauge",
                "Why the session records less than it was asked to",
                json_pack("{s:s, s:s}", "session", entry->config.name, "reason", reasons[i].name),
                1);
}

static Facts method_metrics_gather(const Daemon *daemon) {
    Facts facts = {.use = store_use(daemon->store),
                   .snapshots = snapshot_use(daemon->snapshots),
                   .binaries = binary_store_use(binaries_store(daemon->binaries)),
                   .binary_counts = binaries_counts(daemon->binaries),
                   .history = history_counts(tracker_history(daemon->tracker)),
                   .tables = table_cache_counts(tracker_tables(daemon->tracker)),
                   .resyncs = tracker_resyncs(daemon->tracker),
                   .restarts = daemon->keeper.restarts,
                   .memory_bytes = account_memory_bytes(),
                   .cpu_ns = account_cpu_ns(daemon->tracker),
                   .scan_ns = account_scan_ns(daemon->tracker),
                   .n_open = session_table_n_open(daemon->sessions),
                   .sampled = sampler_shared_counts(daemon->sampler)};

    return facts;
}

static json_t *method_metrics_metrics(const Daemon *daemon) {
    json_t *list = json_array();
    Facts facts = method_metrics_gather(daemon);

    method_metrics_add(&list, "profd_build_info", "gauge", "Version of profd, always 1",
                       json_pack("{s:s}", "version", PROFD_VERSION), 1);
    for (size_t i = 0; i < ARRAY_SIZE(whole_rows); i++) {
        const WholeRow *row = &whole_rows[i];

        method_metrics_add(&list, row->name, row->type, row->help, json_object(),
                           row->value(&facts));
    }
    for (size_t i = 0; i < session_table_count(daemon->sessions); i++) {
        const SessionEntry *entry = session_table_at(daemon->sessions, i);
        SessionTotals totals = session_entry_totals(entry);

        for (size_t k = 0; k < ARRAY_SIZE(session_rows); k++) {
            const SessionRow *row = &session_rows[k];

            method_metrics_add(&list, row->name, row->type, row->help,
                               method_metrics_label_session(entry), row->value(&totals));
        }
        method_metrics_add_stacks(&list, entry, &totals);
        method_metrics_add_call_graph(&list, entry);
        method_metrics_add_states(&list, entry);
    }
    return json_pack("{s:o}", "metrics", list);
}

typedef struct Stream {
    Daemon *daemon;
    Call *call;
    LoopSource *timer;
} Stream;

static void method_metrics_on_gone(void *userdata) {
    Stream *stream = userdata;

    loop_source_free(stream->timer);
    free(stream);
}

/* A client that reads slowly misses some of them. */
static int method_metrics_on_timer(void *userdata) {
    Stream *stream = userdata;
    json_t *parameters = method_metrics_metrics(stream->daemon);

    if (parameters)
        (void)call_continue(stream->call, parameters);
    return 0;
}

int method_get_metrics(void *userdata, Call *call) {
    Daemon *daemon = userdata;
    uint64_t interval_ns = 0;
    int r = ask_span(call, "intervalUsec", &interval_ns);
    Stream *stream;

    if (r < 0 || (r > 0 && interval_ns < (uint64_t)INTERVAL_MIN_MS * NS_PER_MS))
        return call_fail_parameter(call, "intervalUsec", "it is shorter than 100 ms, or too long");
    if (r == 0)
        return call_reply(call, method_metrics_metrics(daemon));
    if (!call_wants_more(call))
        return call_fail(call, "org.varlink.service.ExpectedMore", NULL);
    stream = calloc(1, sizeof(*stream));
    if (!stream)
        return -ENOMEM;
    *stream = (Stream){.daemon = daemon, .call = call};
    r = loop_add_timer(daemon->loop, interval_ns, method_metrics_on_timer, stream, &stream->timer);
    if (r < 0) {
        free(stream);
        return r;
    }
    call_on_gone(call, method_metrics_on_gone, stream);
    return method_metrics_on_timer(stream);
}
