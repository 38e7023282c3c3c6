/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "control/control-private.h"
#include "util/log.h"

/*
 * A call in progress, and what a handler may do with it: reply, fail, stream a list, send a file.
 * Each reply is checked against the interface before it is sent, so that clients can rely on it.
 */

enum {
    STREAM_SLICE = 64, /* replies of a list that are sent before other connections have a turn */
    BUSY_RETRY_MS = 1000,
    AUDIT_TEXT_MAX = 400,
    AUDIT_REASON_MAX = 200,
    AUDIT_BURST = 200,
};

/* Logs who requested a change and the outcome; `error` NULL: success. Lines for users other than
 * administrators are rate-limited, so that a client cannot flood the journal until other messages
 * are dropped. */
static void call_audit(Call *call, const char *outcome, const char *error, const json_t *reason) {
    static LogRate rate = {.interval_ns = CONTROL_RATE_NS, .burst = AUDIT_BURST};
    const Peer *peer = &call->caller->peer;
    _cleanup_free_ char *text = json_dumps(call->parameters, JSON_COMPACT);
    _cleanup_free_ char *why = json_dumps(reason, JSON_COMPACT);
    char uid[16], pid[16], line[AUDIT_TEXT_MAX + AUDIT_REASON_MAX + 400];
    const LogField fields[] = {{"PROFD_EVENT", "call"},
                               {"PROFD_METHOD", call->member},
                               {"PROFD_OUTCOME", outcome},
                               {"PROFD_PEER_UID", uid},
                               {"PROFD_PEER_PID", pid}};

    if (!call->is_audited)
        return;
    call->is_audited = false;
    snprintf(uid, sizeof(uid), "%u", (unsigned)peer->uid);
    snprintf(pid, sizeof(pid), "%d", (int)peer->pid);
    snprintf(line, sizeof(line), "User %s (pid %s) called %s with %.*s: %s%s%s%s%.*s", uid, pid,
             call->member, AUDIT_TEXT_MAX, text ? text : "{}", outcome, error ? ", " : "",
             error ? error : "", why ? " " : "", AUDIT_REASON_MAX, why ? why : "");
    if (peer->right >= RIGHT_ADMIN)
        log_struct(LOG_LEVEL_NOTICE, 0, fields, ARRAY_SIZE(fields), "%s", line);
    else
        log_limited_struct(&rate, LOG_LEVEL_NOTICE, 0, fields, ARRAY_SIZE(fields), "%s", line);
}

static Call *call_free(Call *call) {
    if (call->free_stream)
        call->free_stream(call->stream_userdata);
    json_decref(call->held);
    json_decref(call->nothing);
    json_decref(call->message);
    free(call);
    return NULL;
}

Call *call_abandon(Call *call) {
    if (!call)
        return NULL;
    call_audit(call, "abandoned", "the client went away", NULL);
    if (call->on_gone)
        call->on_gone(call->gone_userdata);
    return call_free(call);
}

static void call_end(Call *call) {
    Caller *caller = call->caller;

    caller->call = NULL;
    call_free(call);
    caller_wake(caller);
}

const Peer *call_peer(const Call *call) {
    return &call->caller->peer;
}

json_t *call_parameters(const Call *call) {
    return call->parameters;
}

bool call_wants_more(const Call *call) {
    return call->more;
}

uint64_t call_connection(const Call *call) {
    return call->caller->number;
}

void call_on_gone(Call *call, void (*on_gone)(void *userdata), void *userdata) {
    call->on_gone = on_gone;
    call->gone_userdata = userdata;
}

void call_end_with_client(Call *call) {
    call->ends_with_client = true;
}

/* Takes ownership of parameters. */
static int call_send_error(Caller *caller, const char *error, json_t *parameters) {
    _cleanup_json_ json_t *message = json_pack("{s:s, s:o}", "error", error, "parameters",
                                               parameters ? parameters : json_object());

    return message ? caller_send(caller, message, SIZE_MAX) : -ENOMEM;
}

int call_refuse_message(Caller *caller, MessageFault fault) {
    static LogRate rate = {.interval_ns = CONTROL_RATE_NS, .burst = 5};
    const Peer *peer = &caller->peer;

    log_limited(&rate, LOG_LEVEL_NOTICE, 0,
                "User %u (pid %d) sent a message that is no call (%s), closing the connection",
                (unsigned)peer->uid, (int)peer->pid, message_fault_name(fault));
    (void)call_send_error(caller, "io.profd.Control.BadMessage",
                          json_pack("{s:s}", "reason", message_fault_name(fault)));
    return -EBADMSG;
}

/* Takes ownership of parameters. */
static int call_send_reply(Call *call, json_t *parameters, bool continues, size_t limit) {
    _cleanup_json_ json_t *taken = parameters, *message = NULL;
    char field[INTERFACE_FIELD_SIZE] = "";
    int r;

    /* A handler ran out of memory while it built the reply. */
    if (!taken)
        return -ENOMEM;
    r = interface_check(call->interface, INTERFACE_REPLY, call->member, taken, INTERFACE_STRICT,
                        field);

    if (r < 0)
        return log_error(r,
                         "The reply to %s does not match its interface at '%s', please report this "
                         "fault of profd",
                         call->member, field);
    if (call->oneway)
        return 0;
    message = continues ? json_pack("{s:O, s:b}", "parameters", taken, "continues", 1)
                        : json_pack("{s:O}", "parameters", taken);
    return message ? caller_send(call->caller, message, limit) : -ENOMEM;
}

int call_continue(Call *call, json_t *parameters) {
    assert(call->more);
    return call_send_reply(call, parameters, true, OUTPUT_MAX_BYTES);
}

void call_fail_errno(Call *call, int error) {
    (void)call_fail(call, "Failed", json_pack("{s:s}", "reason", strerror(-error)));
}

int call_reply(Call *call, json_t *parameters) {
    int r = call_send_reply(call, parameters, false, SIZE_MAX);

    if (r < 0 && r != -EPIPE)
        call_fail_errno(call, r);
    else {
        call_audit(call, "done", NULL, NULL);
        call_end(call);
    }
    return 0;
}

/* Whether the error reports that the client reached a limit. */
static bool call_is_of_limits(const char *error) {
    static const char *const names[] = {"Busy", "DiskBudget", "TooManySessions"};

    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (strcmp(names[i], error) == 0)
            return true;
    return false;
}

static void call_log_limit(const Call *call, const char *error) {
    static LogRate rate = {.interval_ns = CONTROL_RATE_NS, .burst = 10};
    const Peer *peer = &call->caller->peer;

    log_limited(&rate, LOG_LEVEL_NOTICE, 0, "Refused %s to user %u (pid %d), the answer is %s",
                call->member, (unsigned)peer->uid, (int)peer->pid, error);
}

int call_fail(Call *call, const char *error, json_t *parameters) {
    _cleanup_json_ json_t *taken = parameters ? parameters : json_object();
    const Interface *interface = call->caller->control->interface;
    char name[128], field[INTERFACE_FIELD_SIZE] = "";
    bool is_ours = !strchr(error, '.');

    if (is_ours &&
        interface_check(interface, INTERFACE_ERROR, error, taken, INTERFACE_STRICT, field) < 0)
        log_error(
            0,
            "The error %s does not match its interface at '%s', please report this fault of profd",
            error, field);
    if (call_is_of_limits(error))
        call_log_limit(call, error);
    call_audit(call, "refused", error, taken);
    snprintf(name, sizeof(name), "%s%s%s", is_ours ? interface_name(interface) : "",
             is_ours ? "." : "", error);
    if (!call->oneway && call_send_error(call->caller, name, TAKE_PTR(taken)) == -ENOMEM)
        call->caller->is_ending = true;
    call_end(call);
    return 0;
}

int call_fail_parameter(Call *call, const char *parameter, const char *reason) {
    return call_fail(call, "org.varlink.service.InvalidParameter",
                     json_pack("{s:s, s:s}", "parameter", parameter, "reason", reason));
}

int call_stream(Call *call, int (*next)(void *userdata, json_t **ret),
                void (*free_userdata)(void *), void *userdata) {
    assert(call->more && !call->next);
    call->next = next;
    call->free_stream = free_userdata;
    call->stream_userdata = userdata;
    caller_wake(call->caller);
    return 0;
}

static int call_pump_one(Call *call) {
    _cleanup_json_ json_t *item = NULL;
    int r = call->next(call->stream_userdata, &item);

    if (r < 0)
        call_fail_errno(call, r);
    else if (r == 0)
        (void)call_reply(call, call->held ? TAKE_PTR(call->held) : json_object());
    else {
        if (call->held)
            (void)call_continue(call, TAKE_PTR(call->held));
        call->held = TAKE_PTR(item);
    }
    return r;
}

int call_pump(Call *call) {
    Caller *caller = call->caller;

    for (int i = 0; i < STREAM_SLICE; i++) {
        if (caller_waiting(caller) > OUTPUT_PAUSE_BYTES)
            return 0;
        if (call_pump_one(call) <= 0)
            return 1;
    }
    return 1;
}

/* Sends the reply, then a file or a stream. Returns what call_reply_file() returns. */
static int call_hand_over(Call *call, json_t *parameters, int fd, uint64_t bytes,
                          const CallStream *stream) {
    _cleanup_json_ json_t *taken = parameters;
    _cleanup_close_ int file = fd;
    Caller *caller = call->caller;
    int r = call_send_reply(call, TAKE_PTR(taken), false, SIZE_MAX);

    if (r < 0 && r != -EPIPE) {
        call_fail_errno(call, r);
        return 0;
    }
    if (r == 0)
        r = caller_transfer(caller, TAKE_FD(file), bytes, stream);
    if (r < 0)
        caller->is_ending = true;
    call_end(call);
    return r == 0;
}

int call_reply_file(Call *call, json_t *parameters, int fd, uint64_t bytes) {
    _cleanup_json_ json_t *taken = parameters;
    _cleanup_close_ int file = fd;

    assert(call->upgrade);
    if (!caller_may_transfer(call->caller))
        return call_fail(call, "Busy", json_pack("{s:i}", "retryAfterMs", BUSY_RETRY_MS));
    return call_hand_over(call, TAKE_PTR(taken), TAKE_FD(file), bytes, NULL);
}

int call_reply_stream(Call *call, json_t *parameters, const CallStream *stream) {
    assert(call->upgrade);
    return call_hand_over(call, parameters, -1, 0, stream);
}
