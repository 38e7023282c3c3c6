/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "capture/event/event-attr.h"
#include "capture/event/event-list.h"
#include "capture/event/event-tracing.h"
#include "perfdata/feature/environment-feature.h"
#include "util/file.h"
#include "util/parse.h"

/*
 * The events that profd would open for a text of Event=: "attrs EVENT [KEY=VALUE …]" prints a line
 * for each event with its name, a tab, and its attr in perf's words; "attrs --tracing EVENT" writes
 * the tracing data. Keys: frequency, period, call-graph (fp, dwarf, lbr), stack-size, inherit,
 * user-only, idle.
 */

static int open_tracefs(void *userdata _unused_, const char *path, int *ret_fd) {
    char full[1024];
    int fd;

    (void)snprintf(full, sizeof(full), "/sys/kernel/tracing/events/%s", path);
    fd = open(full, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    *ret_fd = fd;
    return 0;
}

static int set_key(EventPolicy *policy, const char *key, const char *value) {
    static const char *const names[] = {"", "none", "fp", "dwarf", "lbr"};
    uint64_t number = 0;

    (void)parse_u64(value, &number);
    if (strcmp(key, "frequency") == 0)
        policy->frequency_hz = number;
    else if (strcmp(key, "max-frequency") == 0)
        policy->max_frequency_hz = number;
    else if (strcmp(key, "frequency-said") == 0)
        policy->frequency_is_set = number;
    else if (strcmp(key, "period") == 0)
        policy->period = number;
    else if (strcmp(key, "stack-size") == 0)
        policy->stack_bytes = (uint32_t)number;
    else if (strcmp(key, "inherit") == 0)
        policy->inherit = number;
    else if (strcmp(key, "user-only") == 0)
        policy->exclude_kernel = number;
    else if (strcmp(key, "kernel-only") == 0)
        policy->exclude_user = number;
    else if (strcmp(key, "idle") == 0)
        policy->exclude_idle = number;
    else if (strcmp(key, "call-graph") == 0) {
        for (unsigned i = 0; i < ARRAY_SIZE(names); i++)
            if (strcmp(value, names[i]) == 0)
                policy->call_graph = (EventCallGraph)i;
    } else
        return -EINVAL;
    return 0;
}

static int print_attrs(const EventList *list, const EventPolicy *policy) {
    _cleanup_free_ PdAttr *attrs = calloc(list->n, sizeof(*attrs));
    _cleanup_(buffer_done) Buffer out = {};
    char error[1024];
    size_t bad;
    int r;

    if (!attrs)
        return -ENOMEM;
    r = event_attrs_settle(list, policy, attrs, &bad, error, sizeof(error));
    if (r < 0) {
        fprintf(stderr, "%s\n", error);
        return r;
    }
    for (size_t i = 0; i < list->n; i++) {
        buffer_append(&out, list->specs[i].name, strlen(list->specs[i].name));
        buffer_append(&out, "\t", 1);
        print_attr(&attrs[i], &out);
        buffer_append(&out, "\n", 1);
    }
    return buffer_error(&out) < 0 ? buffer_error(&out)
                                  : file_write_all(STDOUT_FILENO, out.data, out.size);
}

static int write_tracing(const EventList *list, const EventHost *host) {
    _cleanup_(buffer_done) Buffer out = {};
    int r = event_tracing(list, host, &out);

    return r < 0 ? r : file_write_all(STDOUT_FILENO, out.data, out.size);
}

int main(int argc, char **argv) {
    static const EventHost host = {.sysfs = "/sys", .open_tracefs = open_tracefs};
    _cleanup_(event_list_freep) EventList *list = NULL;
    EventPolicy policy = {.frequency_hz = 4000, .watermark_bytes = 4096};
    bool tracing = argc > 2 && strcmp(argv[1], "--tracing") == 0;
    char error[1024];
    int r;

    if (argc < 2)
        return 2;
    for (int i = 2; i < argc && !tracing; i++) {
        char *value = strchr(argv[i], '=');

        if (!value)
            return 2;
        *value = '\0';
        if (set_key(&policy, argv[i], value + 1) < 0)
            return 2;
    }
    r = event_list_parse(argv[tracing ? 2 : 1], &host, &list, error, sizeof(error));
    if (r < 0) {
        fprintf(stderr, "%s\n", error);
        return 1;
    }
    return (tracing ? write_tracing(list, &host) : print_attrs(list, &policy)) < 0;
}
