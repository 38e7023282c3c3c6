/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/doctor/doctor-check.h"

#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>

#include "client/remote/remote-error.h"
#include "client/remote/remote.h"
#include "client/remote/reply.h"
#include "client/remote/session-text.h"
#include "protocol/connection.h"
#include "protocol/message.h"
#include "util/text.h"

/*
 * profd itself: whether it answers, what it reports about itself, and whether this user may ask for
 * more. If profd does not run, only this check fails; the others go on.
 */

#define ANSWER_NS 5000000000ULL

static void doctor_daemon_say_unreachable(Doctor *d, int r) {
    const char *path = d->context->socket ? d->context->socket : CONNECTION_DEFAULT_PATH;
    char shown[256];

    (void)doctor_escape(path, shown, sizeof(shown));
    if (r == -ENOENT || r == -ECONNREFUSED) {
        doctor_say(d, HEALTH_FAIL, "profd is not running: nothing listens at %s", shown);
        doctor_mend(d, "systemctl start profd; 'journalctl -u profd' shows why it ended");
    } else if (r == -EACCES || r == -EPERM) {
        doctor_say(d, HEALTH_FAIL, "you may not reach profd at %s", shown);
        doctor_mend(
            d, "run it as root; 'ls -l' shows the permissions of the folder and of the socket");
    } else {
        doctor_say(d, HEALTH_FAIL, "profd does not answer at %s: %s", shown, strerror(-r));
        doctor_mend(d, "systemctl restart profd; 'journalctl -u profd' shows more");
    }
}

/* profd runs but tells this user nothing, which is not a fault of profd. */
static void doctor_daemon_say_refused(Doctor *d, const Reply *reply) {
    static const char hint[] = "\nHint: ";
    _cleanup_json_ json_t *parameters = reply->parameters ? reply_shown(reply->parameters) : NULL;
    _cleanup_(buffer_done) Buffer text = {};
    bool denied = strcmp(reply->error, "org.varlink.service.PermissionDenied") == 0;
    char *remedy;

    (void)remote_error_describe(&(RemoteFailure){.method = "GetStatus",
                                                 .command = "doctor",
                                                 .error = reply->error,
                                                 .parameters = parameters},
                                &text);
    text_putc(&text, '\0');
    if (buffer_error(&text) < 0)
        return;
    remedy = strstr((char *)text.data, hint);
    if (remedy)
        *remedy = '\0';
    doctor_say(d, denied ? HEALTH_WARN : HEALTH_FAIL, "profd answers, but not this user: %s",
               (const char *)text.data);
    if (remedy)
        doctor_mend(d, "run it as root; %s", remedy + strlen(hint));
    else
        doctor_mend(d, "'journalctl -u profd' shows more");
}

/* Gets the reply of GetStatus(), which the caller frees; 1: it was refused, and that was
 * reported. */
static int doctor_daemon_ask_status(Doctor *d, json_t **ret) {
    _cleanup_(remote_freep) Remote *remote = NULL;
    Connection *connection = NULL;
    Reply reply = {};
    int r = remote_try(d->context, &remote);

    if (r == 0)
        connection = remote_connection(remote);
    if (r == 0)
        r = connection_call(connection, "io.profd.Control.GetStatus", json_object(), 0, ANSWER_NS);
    if (r >= 0)
        r = connection_receive(connection, ANSWER_NS, &reply);
    if (r < 0)
        return r;
    if (reply.error) {
        doctor_daemon_say_refused(d, &reply);
        return 1;
    }
    *ret = reply_shown(reply.parameters);
    return *ret ? 0 : -ENOMEM;
}

/* Whether some session reports this reason itself. */
static bool doctor_daemon_is_of_a_session(const json_t *sessions, const char *reason) {
    const json_t *session, *own;
    size_t i, k;

    json_array_foreach(sessions, i, session)
        json_array_foreach(reply_member(session, "degraded"), k,
                           own) if (strcmp(reply_string(own, "reason"), reason) == 0) return true;
    return false;
}

/* `session`: NULL for the reasons of the daemon as a whole; those that one of `sessions` reports
 * are skipped. */
static void doctor_daemon_say_degraded(Doctor *d, const json_t *list, const char *session,
                                       const json_t *sessions, Health state) {
    const json_t *reason;
    size_t i;

    json_array_foreach(list, i, reason) {
        if (doctor_daemon_is_of_a_session(sessions, reply_string(reason, "reason")))
            continue;
        doctor_say(d, state, "%s%s%sis degraded (%s): %s", session ? "session '" : "profd ",
                   session ? session : "", session ? "' " : "", reply_string(reason, "reason"),
                   reply_string(reason, "meaning"));
        if (*reply_string(reason, "remedy"))
            doctor_mend(d, "%s", reply_string(reason, "remedy"));
    }
}

static void doctor_daemon_say_sessions(Doctor *d, const json_t *sessions) {
    const json_t *session;
    size_t i;

    json_array_foreach(sessions, i, session) {
        const char *name = reply_string(session, "name");

        if (strcmp(reply_string(session, "state"), "failed") == 0) {
            doctor_say(d, HEALTH_FAIL, "session '%s' failed: %s", name,
                       reply_string(session, "error"));
            doctor_mend(d, "profctl show-session %s", name);
            continue;
        }
        doctor_daemon_say_degraded(d, reply_member(session, "degraded"), name, NULL,
                                   session_records_nothing(session) ? HEALTH_FAIL : HEALTH_WARN);
    }
}

static void doctor_daemon_say_state(Doctor *d, const char *version, const char *state) {
    if (strcmp(state, "idle") != 0) {
        doctor_say(d, HEALTH_OK, "profd %s answers and is %s", version, state);
        return;
    }
    doctor_say(d, HEALTH_FAIL, "profd %s answers and records nothing", version);
    doctor_mend(d,
                "'profctl status' shows why; 'profctl start SESSION' starts one of its sessions");
}

void doctor_daemon(Doctor *d) {
    json_t *status = NULL;
    const json_t *store, *sessions;
    int r = doctor_daemon_ask_status(d, &status);

    if (r < 0)
        doctor_daemon_say_unreachable(d, r);
    if (r != 0)
        return;
    d->daemon_answers = true;
    doctor_daemon_say_state(d, reply_string(status, "version"), reply_string(status, "state"));
    if (strcmp(reply_string(status, "version"), PROFD_VERSION) != 0) {
        doctor_say(d, HEALTH_WARN, "profd is of version %s, this profctl of " PROFD_VERSION,
                   reply_string(status, "version"));
        doctor_mend(d, "systemctl kill --kill-whom=main -s USR1 profd starts the one that is "
                       "installed now, without a gap");
    }
    if (reply_count(status, "restarts") > 0) {
        doctor_say(d, HEALTH_WARN, "its recorder was started again %ju time%s",
                   (uintmax_t)reply_count(status, "restarts"),
                   reply_count(status, "restarts") == 1 ? "" : "s");
        doctor_mend(d, "'journalctl -u profd' shows why it ended");
    }
    sessions = reply_member(status, "sessions");
    doctor_daemon_say_degraded(d, reply_member(status, "degraded"), NULL, sessions, HEALTH_WARN);
    doctor_daemon_say_sessions(d, sessions);
    store = reply_member(status, "store");
    if (store && *reply_string(store, "path"))
        (void)snprintf(d->store, sizeof(d->store), "%s", reply_string(store, "path"));
    json_decref(status);
}

/* Finds a line of /etc/group or /etc/passwd: 1 and its number, 0: none, or a negative errno. */
static int doctor_daemon_find_entry(const Doctor *d, const char *file, const char *name,
                                    unsigned *ret_id, char *ret_members, size_t size) {
    _cleanup_free_ char *line = NULL;
    char path[PATH_MAX], members[1024];
    size_t room = 0, n = strlen(name);
    bool found = false;
    FILE *f;
    int r = doctor_path(d, file, path, sizeof(path));

    if (r < 0)
        return r;
    f = fopen(path, "re");
    if (!f)
        return -errno;
    while (!found && getline(&line, &room, f) > 0) {
        if (strncmp(line, name, n) != 0 || line[n] != ':')
            continue;
        members[0] = '\0';
        found = sscanf(line + n, ":%*[^:]:%u:%1023[^\n]", ret_id, members) >= 1;
        (void)snprintf(ret_members, size, "%s", members);
    }
    (void)fclose(f);
    return found;
}

/* Groups of a directory service are not in /etc/group; for this host use the system's functions. */
static bool doctor_daemon_find_group(const Doctor *d, const char *name, gid_t *ret) {
    char members[1024];
    struct group *group = d->root[0] ? NULL : getgrnam(name);
    unsigned id;

    if (group)
        *ret = group->gr_gid;
    else if (doctor_daemon_find_entry(d, "/etc/group", name, &id, members, sizeof(members)) == 1)
        *ret = id;
    else
        return false;
    return true;
}

static bool doctor_daemon_find_user(const Doctor *d, const char *name) {
    char rest[1024];
    unsigned id;

    return (!d->root[0] && getpwnam(name)) ||
           doctor_daemon_find_entry(d, "/etc/passwd", name, &id, rest, sizeof(rest)) == 1;
}

static bool doctor_daemon_is_member(gid_t group) {
    gid_t groups[1024];
    int n = getgroups(ARRAY_SIZE(groups), groups);

    if (getegid() == group)
        return true;
    for (int i = 0; i < n; i++)
        if (groups[i] == group)
            return true;
    return false;
}

/* Whether the system lists the user in the group although this login does not have it yet. */
static bool doctor_daemon_is_member_to_be(const char *group, const char *user) {
    struct group *entry = getgrnam(group);

    for (char **member = entry ? entry->gr_mem : NULL; member && *member; member++)
        if (strcmp(*member, user) == 0)
            return true;
    return false;
}

/* Checks whether this user may ask profd for more than its health. */
static void doctor_daemon_judge_membership(Doctor *d, gid_t read, gid_t admin) {
    const struct passwd *who = getpwuid(d->uid);
    const char *name = who ? who->pw_name : "you";
    char shown[256];

    (void)doctor_escape(name, shown, sizeof(shown));
    if (doctor_daemon_is_member(admin))
        doctor_say(d, HEALTH_OK, "%s is in profd-admin and may do everything", shown);
    else if (doctor_daemon_is_member(read))
        doctor_say(d, HEALTH_OK, "%s is in profd-read and may read recordings and take snapshots",
                   shown);
    else if (doctor_daemon_is_member_to_be("profd-read", name) ||
             doctor_daemon_is_member_to_be("profd-admin", name)) {
        doctor_say(d, HEALTH_WARN, "%s has joined profd's groups since logging in", shown);
        doctor_mend(d, "log in again");
    } else {
        doctor_say(
            d, HEALTH_WARN,
            "%s is in neither profd-read nor profd-admin, and may only see the health of profd",
            shown);
        doctor_mend(d, "usermod -aG profd-read %s, then log in again", shown);
    }
}

void doctor_groups(Doctor *d) {
    gid_t read = 0, admin = 0;
    bool has_read = doctor_daemon_find_group(d, "profd-read", &read),
         has_admin = doctor_daemon_find_group(d, "profd-admin", &admin);

    if (!doctor_daemon_find_user(d, "profd")) {
        doctor_say(d, HEALTH_WARN,
                   "there is no user 'profd': the recorder runs as root, without capabilities");
        doctor_mend(d, "systemd-sysusers profd.conf");
    }
    if (!has_read || !has_admin) {
        doctor_say(d, HEALTH_WARN, "there is no group '%s': only root %s",
                   has_read ? "profd-admin" : "profd-read",
                   has_read ? "may change what is recorded"
                            : "may read recordings and use profctl");
        doctor_mend(d, "systemd-sysusers profd.conf");
        return;
    }
    if (d->uid == 0 || d->root[0])
        doctor_say(d, HEALTH_OK, "the groups profd-read and profd-admin are there");
    else
        doctor_daemon_judge_membership(d, read, admin);
}
