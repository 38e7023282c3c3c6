/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What all views share: where samples come from, which of them count, and what the frames are
 * called. A view is a command with the rows of VIEW_OPTIONS, whose arguments are recordings;
 * without arguments it reads the running profd:
 *
 *     typedef struct NameSettings { ViewSettings view; bool icicle; } NameSettings;
 *
 *     static const Option name_options[] = {
 *         VIEW_OPTIONS(NameSettings, view)
 *         {0, "icicle", NULL, "…", option_flag, offsetof(NameSettings, icicle)},
 *         {},
 *     };
 *
 *     static int name_run(Context *c, void *settings, char **arguments) {
 *         _cleanup_(view_done) View view = {};
 *         int status = view_load(c, &s->view, arguments, &(ViewRequest){}, &view);
 *
 *         if (!view.profile)
 *             return status;
 *         … shows view.profile …
 *         return status;
 *     }
 */

#include "client/file/selector.h"
#include "client/frame/command.h"
#include "client/frame/timestamp.h"
#include "perfdata/feature/coverage.h"
#include "profile/frame-names.h"
#include "profile/profile.h"
#include "profile/row/profile-row.h"
#include "util/fields.h"

typedef enum ViewWeight { VIEW_BY_DEFAULT, VIEW_BY_COUNT, VIEW_BY_PERIOD } ViewWeight;

/* As the help of --by names the keys; a test compares it with the table of keys. */
#define VIEW_KEY_WORDS                                                                             \
    "comm, pid, tid, cgroup, unit, container, dso, symbol, srcline, cpu, event, time"

typedef struct ViewSettings {
    OptionTimestamp last, since, until;
    const char *session;
    OptionWords events;
    SelectorOptions selected;
    OptionWords dsos, symbols, srclines; /* of the innermost frame */
    RowKeys by;
    ViewWeight weight;
    bool inlined;
} ViewSettings;

/* clang-format off */
/* Rows of options; `type` is the struct of the command's settings, `member` its ViewSettings. */
#define VIEW_WINDOW_OPTIONS(type, member) \
    {0,   "last",    "SPAN",    "The last SPAN, as 60s or '1h 30min'; of a running profd by default 5min", option_span, offsetof(type, member.last)}, \
    {'S', "since",   "TIME",    "Start of the window: '2026-11-21 10:00', -5min, today; see profctl(1)", option_timestamp, offsetof(type, member.since)}, \
    {'U', "until",   "TIME",    "End of the window", option_timestamp, offsetof(type, member.until)}, \
    {'s', "session", "SESSION", "Session of the running profd, by default 'default'", option_string, offsetof(type, member.session)},
#define VIEW_FILTER_OPTIONS(type, member) \
    {'e', "event",   "EVENT,…", "Only samples of these events; * and ? match", option_words, offsetof(type, member.events)}, \
    {'p', "pid",     "PID,…",   "Only samples of these processes", option_numbers, offsetof(type, member.selected.pids)}, \
    {'t', "tid",     "TID,…",   "Only samples of these threads", option_numbers, offsetof(type, member.selected.tids)}, \
    {0,   "comm",    "NAME,…",  "Only samples of threads with these names", option_words, offsetof(type, member.selected.comms)}, \
    {'G', "cgroup",  "PATH,…",  "Only samples of these control groups and those below them", option_words, offsetof(type, member.selected.cgroups)}, \
    {'u', "unit",    "UNIT,…",  "Only samples of these systemd units, as shop or 'web@*'", option_words, offsetof(type, member.selected.units)}, \
    {'C', "cpu",     "CPU,…",   "Only samples of these CPUs, as 0-3,8", option_numbers, offsetof(type, member.selected.cpus)}, \
    {0,   "dso",     "FILE,…",  "Only samples taken in these programs and libraries; * and ? match", option_words, offsetof(type, member.dsos)}, \
    {0,   "symbol",  "NAME,…",  "Only samples taken in these functions; * and ? match", option_words, offsetof(type, member.symbols)},
#define VIEW_LINE_OPTIONS(type, member) \
    {0,   "srcline", "FILE[:LINE],…", "Only samples taken in these source lines; this takes long", option_words, offsetof(type, member.srclines)},
#define VIEW_WEIGHT_OPTIONS(type, member) \
    {0,   "count",   NULL,      "Compute shares from the number of samples", view_option_count, offsetof(type, member.weight)}, \
    {0,   "period",  NULL,      "Compute shares from the periods of the samples, as nanoseconds or cycles", view_option_period, offsetof(type, member.weight)},
#define VIEW_NAME_OPTIONS(type, member) \
    {0,   "inline",  NULL,      "Show inlined functions too; this takes long", option_flag, offsetof(type, member.inlined)},
#define VIEW_BY_OPTIONS(type, member) \
    {0,   "by",      "KEY,…",   "Group by these keys: " VIEW_KEY_WORDS, view_option_by, offsetof(type, member.by)},
#define VIEW_OPTIONS(type, member) \
    VIEW_WINDOW_OPTIONS(type, member) \
    VIEW_FILTER_OPTIONS(type, member) \
    VIEW_LINE_OPTIONS(type, member) \
    VIEW_WEIGHT_OPTIONS(type, member) \
    VIEW_NAME_OPTIONS(type, member)
/* clang-format on */

/* Field: RowKeys. Words separated by commas; a repeated option adds. */
int view_option_by(const Option *option, const char *argument, void *field);
/* Field: ViewWeight. */
int view_option_count(const Option *option, const char *argument, void *field);
int view_option_period(const Option *option, const char *argument, void *field);
/* Frees what the options have stored; for Command.done. */
void view_settings_done(ViewSettings *settings);

/* What a view needs, beside what the user asks for. */
typedef struct ViewRequest {
    unsigned keys;       /* bits of ProfileKey, beside those of --by */
    uint64_t bucket_ns;  /* for PROFILE_TIME; 0: a second */
    uint64_t last_us;    /* of a running profd without a window; 0: five minutes */
    bool nameless;       /* frames need no names */
    bool merges_unnamed; /* code without a symbol is named by its file alone, "[gzip]" */
    bool may_be_nothing; /* no samples is a result too, not STATUS_NOT_FOUND */
    bool ignores_gaps; /* that a part was not recorded is not reported and makes nothing partial */
    /* The command itself shows on the terminal what was not recorded; it is not reported on stderr.
     */
    bool shows_gaps;
    bool may_be_absent; /* that nothing was recorded is not reported: STATUS_NOT_FOUND alone */
} ViewRequest;

/* The texts are not escaped. */
typedef struct View {
    Profile *profile;
    FrameNames *names;   /* NULL if ViewRequest.nameless */
    char *title;         /* the host, or the names of the recordings */
    char *subtitle;      /* window, samples, lost ones, completeness: one sentence */
    char *page_subtitle; /* the same, with the day and the zone of each time */
    int zone_min;        /* how far the clock of the texts is ahead of UTC at the first sample */
    uint32_t event;      /* the event that has the most samples; PROFILE_NONE: there are none */
    uint64_t bucket_ns;  /* for PROFILE_TIME, as was asked for */
    uint64_t since_us, until_us; /* the window by the wall clock; 0, 0: it is not known */
    bool is_live;                /* it comes from a running profd */
    bool is_partial;             /* a part of the window is missing; reported on stderr */
    bool coverage_known;
    PdCoverage coverage; /* CLOCK_REALTIME, of the window; if it is known */
} View;

/*
 * Reads the recordings in `files` (ended by NULL; "-": standard input; none: the running profd) and
 * makes a profile of what the settings select. Returns an ExitStatus: STATUS_OK, or STATUS_PARTIAL
 * if something of the window is missing, which was reported; *ret then has a profile. After any
 * other one, which was reported too, it has none.
 */
int view_load(Context *c, const ViewSettings *settings, char **files, const ViewRequest *request,
              View *ret);
void view_done(View *view);

/* From the first to the last sample of all recordings, by the wall clock: 0, -ENODATA if one does
 * not say, -ECANCELED if one cannot be opened, which was reported, or another negative errno. */
int view_recordings_span(char **files, uint64_t *ret_since_us, uint64_t *ret_until_us);

/* Whether weights are periods: what the user chose, else `otherwise`. */
bool view_by_period(const ViewSettings *settings, bool otherwise);
/* For JSON: "complete" and "gaps" of the window; null where the recording does not say. */
void view_put_completeness(const View *view, Fields *f);
/* Appends ", …" for each kind of detail that was folded since there was too much. */
void view_put_folded(const View *view, Buffer *out);
/* Remarks on stderr how many samples of the event were lost, or of all for PROFILE_NONE: for
 * outputs that have no room for it. */
void view_remark_lost(const Context *c, const View *view, uint32_t event);
/* The name of an event; not escaped. */
Bytes view_event_name(const View *view, uint32_t event);
