/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/remote/remote-error.h"

#include <grp.h>
#include <inttypes.h>
#include <pwd.h>
#include <string.h>

#include "client/frame/figure.h"
#include "client/remote/reply.h"
#include "util/text.h"

/*
 * One table: an error, the exit status of profctl, and a sentence in which {name} stands for a
 * parameter of the error, formatted by {name|size} and the like. Of the rows for one error, the
 * first whose required parameter is present is used. A denial depends on the user: a user in no
 * group needs other advice than one who joined the group after logging in.
 */

enum { NAME_MAX_LENGTH = 32 };

typedef struct ErrorRow {
    const char *error;
    int status;
    const char *needs; /* a parameter that must not be null, or NULL */
    const char *sentence;
} ErrorRow;

/* clang-format off */
static const ErrorRow rows[] = {
    { "NoSuchSession",      STATUS_NOT_FOUND,     "near",       "There is no session '{session}'.{near|near}" },
    { "NotConfigured",      STATUS_NOT_FOUND,     "near",       "Session '{session}' is not configured.{near|near} A new session needs an event, such as -e auto." },
    { "NotConfigured",      STATUS_NOT_FOUND,     NULL,         "Session '{session}' is not configured. A new session needs an event, such as -e auto." },
    { "NoSuchSession",      STATUS_NOT_FOUND,     NULL,         "There is no session '{session}'; 'profctl list' shows the sessions." },
    { "SessionExists",      STATUS_FAILED,        NULL,         "There is a session '{session}' already; stop it first, or choose another name." },
    { "SessionNotActive",   STATUS_FAILED,        NULL,         "Session '{session}' is {state}, which does not allow this; 'profctl show-session {session}' shows more." },
    { "TooManySessions",    STATUS_FAILED,        NULL,         "There are {limit} sessions already, and no more are allowed; stop one, or raise MaxSessions= in profd.conf." },
    { "BadSetting",         STATUS_USAGE,         NULL,         "{key}={value} is not understood: it takes {expected}." },
    { "EventUnsupported",   STATUS_FAILED,        NULL,         "{reason}." },
    { "NoSuchCgroup",       STATUS_NOT_FOUND,     "near",       "Cannot start '{session}': control group '{cgroup}' does not exist.{near|near}" },
    { "NoSuchUnit",         STATUS_NOT_FOUND,     "near",       "Cannot start '{session}': unit '{unit}' has no control group.{near|near}" },
    { "NoSuchUnit",         STATUS_NOT_FOUND,     NULL,         "Cannot start '{session}': unit '{unit}' has no control group." },
    { "AmbiguousUnit",      STATUS_USAGE,         NULL,         "Cannot start '{session}': '{unit}' matches several control groups.{cgroups|near} Use --cgroup." },
    { "NoSuchCgroup",       STATUS_NOT_FOUND,     NULL,         "Cannot start '{session}': control group '{cgroup}' does not exist." },
    { "NoSuchCpu",          STATUS_NOT_FOUND,     NULL,         "Cannot start '{session}': this host has no CPU {cpu}." },
    { "NoSuchProcess",      STATUS_NOT_FOUND,     NULL,         "Cannot start '{session}': there is no process or thread {pid}." },
    { "NoSuchSegment",      STATUS_NOT_FOUND,     NULL,         "Session '{session}' has no segment '{segment}'; 'profctl list --segments {session}' shows its segments." },
    { "NoSuchBinary",       STATUS_NOT_FOUND,     NULL,         "profd keeps no symbols under the name '{name}'." },
    { "NoSuchSnapshot",     STATUS_NOT_FOUND,     "near",       "There is no snapshot '{name}'.{near|near}" },
    { "NoSuchSnapshot",     STATUS_NOT_FOUND,     NULL,         "There is no snapshot '{name}'; 'profctl snapshots' shows the snapshots." },
    { "SnapshotExists",     STATUS_FAILED,        NULL,         "There is a snapshot '{name}' already; remove it with 'profctl rm {name}', or choose another name." },
    { "WindowUnavailable",  STATUS_NOT_FOUND,     "oldestUsec", "profd has no recording of this window: its recordings reach from {oldestUsec|moment} to {newestUsec|moment}." },
    { "WindowUnavailable",  STATUS_NOT_FOUND,     NULL,         "profd has no recording of this window: it has recorded nothing yet." },
    { "NoSamplesMatch",     STATUS_NOT_FOUND,     NULL,         "No samples match {selection} in this window.{near|near}" },
    { "DiskBudget",         STATUS_FAILED,        NULL,         "The snapshot needs {need|size}, which does not fit into the limit of {limit|size} for all snapshots; remove some with 'profctl rm', choose a smaller window, or raise SnapshotMaxUse= in profd.conf." },
    { "DiskFull",           STATUS_FAILED,        NULL,         "The disk of '{path}' is full; make room, or delete old segments with 'profctl vacuum'." },
    { "Busy",               STATUS_FAILED,        NULL,         "profd is too busy; try again in {retryAfterMs|ms}." },
    { "ConfigInvalid",      STATUS_FAILED,        "problems",   "The configuration was not loaded, the previous one stays in effect:{problems|problems}" },
    { "ConfigInvalid",      STATUS_FAILED,        NULL,         "The configuration was not loaded, the previous one stays in effect; 'profd --check-config' shows why." },
    { "Cancelled",          STATUS_FAILED,        NULL,         "The snapshot was cancelled, and profd keeps nothing of it." },
    { "Failed",             STATUS_FAILED,        "reason",     "profd failed: {reason}." },
    { "Failed",             STATUS_FAILED,        NULL,         "profd failed; 'journalctl -u profd' shows more." },
    { "BadMessage",         STATUS_FAILED,        NULL,         "profd{version} does not understand this call ({reason}); it and this profctl " PROFD_VERSION " do not fit together." },
    { "ExpectedUpgrade",    STATUS_FAILED,        NULL,         "profd{version} expects another kind of call than this profctl " PROFD_VERSION " makes; they do not fit together." },
    { "org.varlink.service.InvalidParameter", STATUS_USAGE, "reason",    "Invalid {parameter|option}: {reason}." },
    { "org.varlink.service.InvalidParameter", STATUS_USAGE, "parameter", "profd{version} does not accept {parameter|option} and gives no reason; this profctl is " PROFD_VERSION "." },
};

/* The names of parameters that users know. Others keep their own name. */
static const struct {
    const char *parameter, *option;
} options[] = {
    { "atUsec",       "--at"        },
    { "cgroups",      "--cgroup"    },
    { "comms",        "--comm"      },
    { "compress",     "--compress"  },
    { "cpus",         "--cpu"       },
    { "durationUsec", "--duration"  },
    { "followUpUsec", "--follow-up" },
    { "intervalUsec", "--watch"     },
    { "lastUsec",     "--last"      },
    { "layout",       "--layout"    },
    { "level",        "log level"   },
    { "maxAgeUsec",   "--time"      },
    { "maxBytes",     "--size"      },
    { "maxSegments",  "--segments"  },
    { "name",         "name"        },
    { "pids",         "--pid"       },
    { "reason",       "--reason"    },
    { "session",      "name of a session" },
    { "sinceUsec",    "--since"     },
    { "tids",         "--tid"       },
    { "unit",         "--unit"      },
    { "units",        "--unit"      },
    { "untilUsec",    "--until"     },
};

/* Members of profd-read may call these too; other restricted methods are for administrators. */
static const char *const readers[] = {
    "Describe", "Follow", "GetMetrics", "GetStatus", "ListBinaries", "ListSegments", "ListSessions",
    "ListSnapshots", "Monitor", "PinSnapshot", "Read", "RemoveSnapshot", "Snapshot",
};
/* clang-format on */

static void remote_error_put_problems(Buffer *out, const json_t *problems) {
    bool several = json_array_size(problems) > 1;
    const json_t *problem;
    size_t i;

    json_array_foreach(problems, i, problem) {
        text_puts(out, several ? "\n  " : " ");
        if (*reply_string(problem, "path"))
            text_printf(out, "%s:%" PRIu64 ": ", reply_string(problem, "path"),
                        reply_count(problem, "line"));
        text_puts(out, reply_string(problem, "text"));
    }
    /* Reasons are sentences with or without a full stop. */
    if (out->size > 0 && out->data[out->size - 1] != '.')
        text_putc(out, '.');
}

static void remote_error_put_near(Buffer *out, const json_t *names) {
    const json_t *name;
    size_t i, n = json_array_size(names);

    json_array_foreach(names, i, name) {
        text_puts(out, i == 0 ? " Did you mean " : i + 1 < n ? ", " : " or ");
        text_printf(out, "'%s'", json_is_string(name) ? json_string_value(name) : "?");
    }
    text_puts(out, n > 0 ? "?" : "");
}

/* Formats a parameter as text or number. */
static void remote_error_put_plain(Buffer *out, const json_t *value) {
    if (json_is_string(value))
        text_puts(out, json_string_value(value));
    else if (json_is_integer(value))
        text_printf(out, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    else
        text_putc(out, '?');
}

static void remote_error_put_option(Buffer *out, const char *parameter) {
    for (size_t i = 0; i < ARRAY_SIZE(options); i++)
        if (strcmp(options[i].parameter, parameter) == 0) {
            text_puts(out, options[i].option);
            return;
        }
    text_printf(out, "'%s'", parameter);
}

static void remote_error_put_parameter(Buffer *out, const RemoteFailure *failure, const char *name,
                                       const char *kind) {
    const json_t *value = json_object_get(failure->parameters, name);

    if (strcmp(name, "version") == 0)
        text_printf(out, "%s%s", failure->version ? " " : "",
                    failure->version ? failure->version : "");
    else if (strcmp(kind, "option") == 0)
        remote_error_put_option(out, reply_string(failure->parameters, name));
    else if (!json_is_integer(value) && !json_is_array(value))
        remote_error_put_plain(out, value);
    else if (strcmp(kind, "size") == 0)
        figure_size(out, reply_count(failure->parameters, name));
    else if (strcmp(kind, "moment") == 0)
        figure_moment(out, reply_count(failure->parameters, name));
    else if (strcmp(kind, "ms") == 0)
        figure_span(out, reply_count(failure->parameters, name) * 1000);
    else if (strcmp(kind, "problems") == 0)
        remote_error_put_problems(out, value);
    else if (strcmp(kind, "near") == 0)
        remote_error_put_near(out, value);
    else
        remote_error_put_plain(out, value);
}

static void remote_error_fill_in(Buffer *out, const char *sentence, const RemoteFailure *failure) {
    while (*sentence) {
        size_t n = strcspn(sentence, "{");
        char name[NAME_MAX_LENGTH] = "", *kind;

        buffer_append(out, sentence, n);
        sentence += n;
        if (!*sentence)
            break;
        n = strcspn(sentence, "}");
        memcpy(name, sentence + 1, MIN(n - 1, sizeof(name) - 1));
        kind = strchr(name, '|');
        if (kind)
            *kind++ = '\0';
        remote_error_put_parameter(out, failure, name, kind ? kind : "");
        sentence += n + 1;
    }
    /* A parameter that is a question ends the sentence itself. */
    if (out->size > 1 && memcmp(out->data + out->size - 2, "?.", 2) == 0)
        out->size--;
}

static const char *remote_error_group_for(const char *method) {
    for (size_t i = 0; i < ARRAY_SIZE(readers); i++)
        if (strcmp(readers[i], method) == 0)
            return "profd-read";
    return "profd-admin";
}

static bool remote_error_holds(const gid_t *groups, int n, gid_t group) {
    for (int i = 0; i < n; i++)
        if (groups[i] == group)
            return true;
    return false;
}

/* Whether this process is in the group, whatever the files say. */
static bool remote_error_is_in_group(gid_t group) {
    _cleanup_free_ gid_t *groups = NULL;
    int n = getgroups(0, NULL);

    if (getegid() == group)
        return true;
    groups = n > 0 ? calloc((size_t)n, sizeof(*groups)) : NULL;
    n = groups ? getgroups(n, groups) : 0;
    return remote_error_holds(groups, MAX(n, 0), group);
}

/* Whether the user will be in it at the next login. */
static bool remote_error_will_be_in_group(const struct passwd *user, gid_t group) {
    gid_t groups[256];
    int n = ARRAY_SIZE(groups);

    return user && getgrouplist(user->pw_name, user->pw_gid, groups, &n) >= 0 &&
           remote_error_holds(groups, MIN(n, (int)ARRAY_SIZE(groups)), group);
}

void remote_error_describe_denial(const char *command, const char *method, Buffer *out) {
    const char *name = remote_error_group_for(method);
    const struct group *group = getgrnam(name);
    const struct passwd *user;
    bool member = group && remote_error_is_in_group(group->gr_gid);

    /* A member of profd-read who was refused needs the rights of administrators. */
    if (member && strcmp(name, "profd-read") == 0) {
        name = "profd-admin";
        group = getgrnam(name);
        member = group && remote_error_is_in_group(group->gr_gid);
    }
    text_printf(out, "Permission denied: '%s' requires root", command);
    if (member || geteuid() == 0) {
        text_puts(out,
                  " or more rights than yours.\nHint: 'journalctl -u profd' shows the reason.");
        return;
    }
    text_printf(out, " or membership in '%s'.\nHint: ", name);
    user = getpwuid(geteuid());
    if (!group)
        text_printf(out, "this host has no group '%s'; 'systemd-sysusers profd.conf' makes it.",
                    name);
    else if (remote_error_will_be_in_group(user, group->gr_gid))
        text_printf(out, "you joined '%s' after this login; log in again, or run 'newgrp %s'.",
                    name, name);
    else {
        text_puts(out, "root adds you with 'adduser ");
        text_escape_str(out, user ? user->pw_name : "USER");
        text_printf(out, " %s'; then log in again.", name);
    }
}

static int remote_error_describe_unknown(const RemoteFailure *failure, Buffer *out) {
    text_printf(out,
                "profd%s%s does not know '%s': it is older than this profctl " PROFD_VERSION
                "; update it, and 'systemctl restart profd'.",
                failure->version ? " " : "", failure->version ? failure->version : "",
                failure->method);
    return STATUS_FAILED;
}

int remote_error_describe(const RemoteFailure *failure, Buffer *out) {
    static const char standard[] = "org.varlink.service.";
    const char *error = failure->error;

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        if (strcmp(rows[i].error, error) == 0 &&
            (!rows[i].needs || reply_has(failure->parameters, rows[i].needs))) {
            remote_error_fill_in(out, rows[i].sentence, failure);
            return rows[i].status;
        }
    if (strncmp(error, standard, strlen(standard)) == 0)
        error += strlen(standard);
    if (strcmp(error, "PermissionDenied") == 0) {
        remote_error_describe_denial(failure->command ? failure->command : failure->method,
                                     failure->method, out);
        return STATUS_NOT_PERMITTED;
    }
    if (error != failure->error && strstr(error, "Not"))
        return remote_error_describe_unknown(failure, out);
    text_printf(out, "profd refused '%s': ", failure->method);
    text_escape_again(out, (Bytes){.data = (const uint8_t *)error, .size = strlen(error)});
    text_putc(out, '.');
    return STATUS_FAILED;
}
