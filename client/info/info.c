/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/info/info-state.h"

#include <string.h>
#include <sys/stat.h>

#include "client/file/recording.h"
#include "util/text.h"

/*
 * `profctl info`: reads a recording once, from the first record to the last, and prints where it
 * was made and what it contains. The features are read after the records, because in a pipe they
 * are only known then. Damage is part of the result, not a reason to print nothing.
 */

static void info_done(Info *info) {
    summary_done(&info->summary);
    info->attribution = attribution_free(info->attribution);
    info->tally = pd_tally_free(info->tally);
    info->environment = pd_environment_free(info->environment);
    info->reader = pd_reader_free(info->reader);
}

static int info_count_records(Info *info) {
    PdEvents *events = pd_reader_events(info->reader);
    PdRecord record;
    int r, q;

    r = pd_tally_new(&info->tally);
    if (r >= 0)
        r = attribution_new(info->reader, &info->attribution);
    if (r < 0)
        return r;
    while ((r = pd_reader_next(info->reader, &record)) > 0) {
        PdStamp stamp = {};

        (void)pd_events_stamp(events, &record, &stamp);
        q = summary_add(&info->summary, &record, &stamp);
        if (q >= 0)
            q = attribution_add(info->attribution, &record, &stamp);
        if (q >= 0 && record.type == PD_RECORD_MMAP2)
            q = pd_tally_add(info->tally, events, &record);
        if (q < 0)
            return q;
    }
    return r < 0 ? r : attribution_finish(info->attribution);
}

static int info_gather(Info *info) {
    const PdDamage *damage;
    PdDamage why = {};
    unsigned n_damaged = 0;
    struct stat st;
    int r;

    r = info_count_records(info);
    if (r >= 0)
        r = pd_environment_new(&info->environment);
    if (r >= 0)
        r = pd_environment_from_reader(info->environment, info->reader, &n_damaged, &why);
    if (r < 0)
        return r;
    damage = pd_reader_damage(info->reader);
    if (damage)
        info->damage = *damage;
    else if (n_damaged > 0)
        info->damage = why;
    info->has_stacks = info_stacks_read(info->path, &info->stacks);
    if (strcmp(info->path, "-") != 0 && stat(info->path, &st) == 0 && S_ISREG(st.st_mode))
        info->captured = st.st_mtime;
    return 0;
}

static int info_print(Context *c, const Info *info) {
    if (c->json) {
        Fields fields = fields_to(&c->out.buffer, context_fields_format(c));

        int r = info_print_json(info, &fields);

        text_putc(&c->out.buffer, '\n');
        return r < 0 ? r : buffer_error(&c->out.buffer);
    }
    context_page(c);
    return info_print_text(c, info, &c->out.buffer);
}

static int info_run(Context *c, void *settings, char **arguments) {
    _cleanup_(info_done) Info info = {.path = arguments[0]};
    int r, status;

    status = recording_open(info.path, &info.reader);
    if (status != STATUS_OK)
        return status;
    r = info_gather(&info);
    if (r >= 0)
        r = info_print(c, &info);
    if (r < 0)
        return complain(STATUS_FAILED, "Failed to read '%s': %s.", recording_name(info.path),
                        strerror(-r));
    return recording_verdict(info.path, info.reader, &info.damage);
}

const Command command_info = {
    .name = "info",
    .group = COMMAND_RECORDING,
    .arguments = "FILE",
    .n_min = 1,
    .n_max = 1,
    .summary = "Show what is in a recording and where it was made",
    .notes = "FILE is a perf.data file, a folder of perf record --threads, or - for a stream on\n"
             "standard input. The status is 0 when all of it was read, 8 when a part was, 1 when\n"
             "it is no perf.data.",
    .run = info_run,
};
