/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/doctor/doctor-check.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client/frame/screen.h"
#include "client/remote/remote.h"
#include "client/remote/reply.h"
#include "protocol/value.h"
#include "util/text.h"

/*
 * The command `doctor`: runs one check after the other and prints the findings. It needs no daemon,
 * changes nothing and needs no rights; it reports what it may not read. With --root the checks read
 * the files of another host, such as the simulated ones of the tests.
 */

/* clang-format off */
static const DoctorCheck checks[] = {
    {"daemon",    true,  doctor_daemon},
    {"groups",    false, doctor_groups},
    {"events",    true,  doctor_events},
    {"paranoid",  false, doctor_paranoid},
    {"rate",      false, doctor_rate},
    {"pmu",       false, doctor_pmu},
    {"counters",  false, doctor_counters},
    {"rights",    false, doctor_rights},
    {"limits",    false, doctor_limits},
    {"kptr",      false, doctor_kptr},
    {"lockdown",  false, doctor_lockdown},
    {"tracefs",   false, doctor_tracefs},
    {"cgroup",    false, doctor_cgroup},
    {"clock",     true,  doctor_clock},
    {"disk",      true,  doctor_disk},
    {"perf",      true,  doctor_perf},
    {"debuginfo", false, doctor_debuginfo},
    {"programs",  false, doctor_programs},
};
/* clang-format on */

static const char *const health_names[] = {"ok", "warn", "fail"};
static const Color health_colors[] = {COLOR_GOOD, COLOR_WARNING, COLOR_BAD};

enum { NAME_WIDTH = 10, MARGIN = 18, NO_WIDTH = 1 << 16 };

typedef struct DoctorSettings {
    const char *root;
} DoctorSettings;

static void doctor_put_color(Context *c, Color color) {
    if (context_colors(c))
        text_puts(&c->out.buffer, color_sequence(color));
}

/* As the column of the table calls them; what is not there has no count. */
static void doctor_print_counts(const Doctor *d, Buffer *out) {
    const char *separator = "\n";

    for (unsigned health = HEALTH_OK; health <= HEALTH_FAIL; health++)
        if (d->counts[health] > 0) {
            text_printf(out, "%s%zu %s", separator, d->counts[health], health_names[health]);
            separator = ", ";
        }
    text_puts(out, "\n");
}

static void doctor_print_text(Context *c, const Doctor *d) {
    unsigned terminal = context_width(c);
    size_t width = terminal > MARGIN * 2 ? terminal : terminal ? MARGIN * 2 : NO_WIDTH;
    Buffer *out = &c->out.buffer;

    for (size_t i = 0; i < d->n; i++) {
        const Diagnosis *a = &d->items[i];

        if (c->quiet && a->health == HEALTH_OK)
            continue;
        doctor_put_color(c, health_colors[a->health]);
        text_printf(out, "%-4s", health_names[a->health]);
        doctor_put_color(c, COLOR_NONE);
        text_printf(out, "  %-*s  ", NAME_WIDTH, a->check);
        screen_wrap(out, a->text, MARGIN, MARGIN, width);
        if (!a->remedy)
            continue;
        text_printf(out, "%*s-> ", MARGIN - 3, "");
        screen_wrap(out, a->remedy, MARGIN, MARGIN, width);
    }
    if (!c->no_legend && !c->quiet)
        doctor_print_counts(d, out);
}

/* The caller owns the result; NULL without memory. */
static json_t *doctor_describe(const Doctor *d) {
    json_t *rows = json_array();

    for (size_t i = 0; i < d->n; i++) {
        const Diagnosis *a = &d->items[i];

        value_append(&rows, json_pack("{so ss so so}", "check", remote_word(a->check), "state",
                                      health_names[a->health], "text", remote_word(a->text),
                                      "remedy", a->remedy ? remote_word(a->remedy) : json_null()));
    }
    if (json_array_size(rows) != d->n) {
        json_decref(rows);
        return NULL;
    }
    return json_pack("{sI sI sI so}", "ok", (json_int_t)d->counts[HEALTH_OK], "warn",
                     (json_int_t)d->counts[HEALTH_WARN], "fail", (json_int_t)d->counts[HEALTH_FAIL],
                     "checks", rows);
}

static int doctor_print(Context *c, Doctor *d) {
    json_t *all;
    int status;

    if (c->json == JSON_OFF) {
        if (!d->failed)
            doctor_print_text(c, d);
        return STATUS_OK;
    }
    all = d->failed ? NULL : doctor_describe(d);
    d->failed |= !all;
    status = all ? reply_print(c, all) : STATUS_OK;
    json_decref(all);
    return status;
}

static int doctor_run(Context *c, void *settings, char **arguments) {
    const DoctorSettings *s = settings;
    Doctor d = {.root = s->root ? s->root : "", .context = c, .uid = geteuid()};
    int status;

    if (s->root && access(s->root, X_OK) < 0)
        return complain(STATUS_FAILED, "Failed to open the folder '%s': %s.", s->root,
                        strerror(errno));
    snprintf(d.store, sizeof(d.store), "/var/lib/profd");
    for (size_t i = 0; i < ARRAY_SIZE(checks); i++)
        if (!s->root || !checks[i].live) {
            d.check = checks[i].name;
            checks[i].run(&d);
        }
    status = doctor_print(c, &d);
    if (d.failed)
        status = complain(STATUS_FAILED, "Failed to print the checks: memory ran out.");
    else if (status == STATUS_OK && d.counts[HEALTH_FAIL] > 0)
        status = STATUS_DEGRADED;
    doctor_done(&d);
    return status;
}

/* clang-format off */
static const Option doctor_options[] = {
    {0, "root", "FOLDER", "Check the files of the host whose root is FOLDER, not of this one", option_string, offsetof(DoctorSettings, root)},
    {},
};
/* clang-format on */

const Command command_doctor = {
    .name = "doctor",
    .arguments = "",
    .summary = "Check this host for all that profd needs, and print remedies",
    .notes =
        "Works without a daemon and changes nothing. Each line is 'ok', 'warn' (recordings lack "
        "something) or 'fail' (nothing is recorded, or recordings cannot be used), with a remedy "
        "below. --quiet prints no 'ok' lines.\n\nExit status: 0 no check fails, 7 a check fails.",
    .options = doctor_options,
    .settings_size = sizeof(DoctorSettings),
    .run = doctor_run,
};
