/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/doctor.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "client/reply.h"
#include "client/screen.h"
#include "protocol/value.h"
#include "util/array.h"
#include "util/file.h"
#include "util/parse.h"
#include "util/text.h"

/*
 * The command `doctor`: makes one check after the other and prints what each said. It needs no
 * daemon, changes nothing and asks for no right; what it may not look at it says. With --root the
 * checks read the files of a host that lies somewhere else, as that of a made-up one in the tests.
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
};
/* clang-format on */

static const char *const health_names[] = {"ok", "warn", "fail"};
static const Color health_colors[] = {COLOR_GOOD, COLOR_WARNING, COLOR_BAD};

enum { NAME_WIDTH = 10, MARGIN = 18, NO_WIDTH = 1 << 16 };

/* Formatted, and made safe where it is not; NULL without memory. */
_printf_(2, 0) static char *make_text(Doctor *d, const char *format, va_list ap) {
    _cleanup_(buffer_done) Buffer safe = {};
    _cleanup_free_ char *text = NULL;
    int n = vasprintf(&text, format, ap);

    if (n < 0) {
        text = NULL;
        d->failed = true;
        return NULL;
    }
    text_escape_again(&safe, (Bytes){.data = (const uint8_t *)text, .size = (size_t)n});
    text_putc(&safe, '\0');
    if (buffer_error(&safe)) {
        d->failed = true;
        return NULL;
    }
    return (char *)TAKE_PTR(safe.data);
}

void doctor_say(Doctor *d, Health health, const char *format, ...) {
    Diagnosis *diagnosis = array_grow(&d->items, &d->n);
    va_list ap;

    if (!diagnosis) {
        d->failed = true;
        return;
    }
    diagnosis->check = d->check;
    diagnosis->health = health;
    d->counts[health]++;
    va_start(ap, format);
    diagnosis->text = make_text(d, format, ap);
    va_end(ap);
}

void doctor_mend(Doctor *d, const char *format, ...) {
    va_list ap;

    if (d->n == 0 || d->failed)
        return;
    va_start(ap, format);
    free(d->items[d->n - 1].remedy);
    d->items[d->n - 1].remedy = make_text(d, format, ap);
    va_end(ap);
}

void doctor_done(Doctor *d) {
    for (size_t i = 0; i < d->n; i++) {
        free(d->items[i].text);
        free(d->items[i].remedy);
    }
    free(d->items);
    d->items = NULL;
    d->n = 0;
}

const char *doctor_escape(const char *text, char *ret, size_t size) {
    _cleanup_(buffer_done) Buffer b = {};
    size_t n = 0;

    for (; *text; text++) {
        buffer_clear(&b);
        /* Byte by byte: what is not ASCII is nowhere needed to be read here. */
        text_escape(&b, (Bytes){.data = (const uint8_t *)text, .size = 1});
        if (buffer_error(&b) || n + b.size >= size)
            break;
        memcpy(ret + n, b.data, b.size);
        n += b.size;
    }
    ret[n] = '\0';
    return ret;
}

bool doctor_mount(const Doctor *d, const char *type, char *ret, size_t size) {
    _cleanup_free_ char *line = NULL;
    char path[PATH_MAX], where[256], what[64];
    bool found = false;
    size_t room = 0;
    FILE *f =
        doctor_path(d, "/proc/self/mounts", path, sizeof(path)) < 0 ? NULL : fopen(path, "re");

    while (f && !found && getline(&line, &room, f) > 0)
        found = sscanf(line, "%*s %255s %63s", where, what) == 2 && strcmp(what, type) == 0;
    if (f)
        (void)fclose(f);
    if (found)
        (void)snprintf(ret, size, "%s", where);
    return found;
}

int doctor_path(const Doctor *d, const char *path, char *ret, size_t size) {
    int n = snprintf(ret, size, "%s%s", d->root, path);

    return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

int doctor_read(const Doctor *d, const char *path, char *ret, size_t size) {
    char full[PATH_MAX];
    int r = doctor_path(d, path, full, sizeof(full));

    return r < 0 ? r : file_read_text(full, ret, size);
}

int doctor_read_number(const Doctor *d, const char *path, int64_t *ret) {
    char text[32];
    uint64_t v;
    bool negative;
    int r = doctor_read(d, path, text, sizeof(text));

    if (r < 0)
        return r;
    negative = text[0] == '-';
    r = parse_u64(text + negative, &v);
    if (r < 0)
        return r;
    if (v > INT64_MAX)
        return -ERANGE;
    *ret = negative ? -(int64_t)v : (int64_t)v;
    return 0;
}

bool doctor_exists(const Doctor *d, const char *path) {
    char full[PATH_MAX];

    return doctor_path(d, path, full, sizeof(full)) == 0 && access(full, F_OK) == 0;
}

unsigned doctor_cpus(const Doctor *d) {
    OptionNumbers cpus = {};
    char text[512];
    uint64_t n = 0;

    if (doctor_read(d, "/sys/devices/system/cpu/online", text, sizeof(text)) > 0 &&
        option_numbers(NULL, text, &cpus) == 0)
        for (size_t i = 0; i < cpus.n; i++)
            n += cpus.items[i].last - cpus.items[i].first + 1ULL;
    option_numbers_done(&cpus);
    return n == 0 ? 1 : (unsigned)MIN(n, (uint64_t)65536);
}

typedef struct DoctorSettings {
    const char *root;
} DoctorSettings;

static void put_color(Context *c, Color color) {
    if (context_colors(c))
        text_puts(&c->out.buffer, color_sequence(color));
}

static void print_text(Context *c, const Doctor *d) {
    unsigned terminal = context_width(c);
    size_t width = terminal > MARGIN * 2 ? terminal : terminal ? MARGIN * 2 : NO_WIDTH;
    Buffer *out = &c->out.buffer;

    for (size_t i = 0; i < d->n; i++) {
        const Diagnosis *a = &d->items[i];

        if (c->quiet && a->health == HEALTH_OK)
            continue;
        put_color(c, health_colors[a->health]);
        text_printf(out, "%-4s", health_names[a->health]);
        put_color(c, COLOR_NONE);
        text_printf(out, "  %-*s  ", NAME_WIDTH, a->check);
        screen_wrap(out, a->text, MARGIN, MARGIN, width);
        if (!a->remedy)
            continue;
        text_printf(out, "%*s-> ", MARGIN - 3, "");
        screen_wrap(out, a->remedy, MARGIN, MARGIN, width);
    }
    if (!c->no_legend && !c->quiet)
        text_printf(out, "\n%zu ok, %zu to look at, %zu to mend\n", d->counts[HEALTH_OK],
                    d->counts[HEALTH_WARN], d->counts[HEALTH_FAIL]);
}

/* The caller's; NULL without memory. */
static json_t *describe(const Doctor *d) {
    json_t *rows = json_array();

    for (size_t i = 0; i < d->n; i++) {
        const Diagnosis *a = &d->items[i];

        value_append(&rows,
                     json_pack("{ss ss ss ss?}", "check", a->check, "state",
                               health_names[a->health], "text", a->text, "remedy", a->remedy));
    }
    if (json_array_size(rows) != d->n) {
        json_decref(rows);
        return NULL;
    }
    return json_pack("{sI sI sI so}", "ok", (json_int_t)d->counts[HEALTH_OK], "warn",
                     (json_int_t)d->counts[HEALTH_WARN], "fail", (json_int_t)d->counts[HEALTH_FAIL],
                     "checks", rows);
}

static int print(Context *c, Doctor *d) {
    json_t *all;
    int status;

    if (c->json == JSON_OFF) {
        if (!d->failed)
            print_text(c, d);
        return STATUS_OK;
    }
    all = d->failed ? NULL : describe(d);
    d->failed |= !all;
    status = all ? reply_print(c, all) : STATUS_OK;
    json_decref(all);
    return status;
}

static int run_doctor(Context *c, void *settings, char **arguments) {
    const DoctorSettings *s = settings;
    Doctor d = {.root = s->root ? s->root : "", .context = c, .uid = geteuid()};
    int status;

    if (s->root && access(s->root, X_OK) < 0)
        return complain(STATUS_FAILED, "There is no folder '%s' to look into: %s.", s->root,
                        strerror(errno));
    snprintf(d.store, sizeof(d.store), "/var/lib/profd");
    for (size_t i = 0; i < ARRAY_SIZE(checks); i++)
        if (!s->root || !checks[i].live) {
            d.check = checks[i].name;
            checks[i].run(&d);
        }
    status = print(c, &d);
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
    .summary = "Check what this host allows profd to see, and say how to mend it",
    .notes = "Works without a daemon and changes nothing. Each line is 'ok', 'warn' (recordings "
             "are less than they could be) or 'fail' (there are none, or they cannot be used), "
             "with what mends it below. --quiet leaves out what is ok.\n\n"
             "Exit status: 0 nothing fails, 7 something does.",
    .options = doctor_options,
    .settings_size = sizeof(DoctorSettings),
    .run = run_doctor,
};
