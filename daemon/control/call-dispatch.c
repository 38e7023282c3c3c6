/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "control/control-private.h"
#include "util/log.h"

/*
 * Parses a message and calls the method that it names. A call is refused, in this order, for an
 * unknown interface or method, for a missing right, for a wrong call mode, and for wrong
 * parameters. So a client without the right to call a method learns nothing about it beyond the
 * interface.
 */

static const ControlMethod *call_dispatch_find_method(const Control *control, const char *name) {
    for (size_t i = 0; i < control->options.n_methods; i++)
        if (strcmp(control->options.methods[i].name, name) == 0)
            return &control->options.methods[i];
    return NULL;
}

static int call_dispatch_deny(Call *call) {
    static LogRate rate = {.interval_ns = CONTROL_RATE_NS, .burst = 10};
    const Peer *peer = &call->caller->peer;
    char uid[16], pid[16];

    snprintf(uid, sizeof(uid), "%u", (unsigned)peer->uid);
    snprintf(pid, sizeof(pid), "%d", (int)peer->pid);
    log_limited_struct(&rate, LOG_LEVEL_NOTICE, 0,
                       LOG_FIELDS({"PROFD_EVENT", "call-refused"}, {"PROFD_METHOD", call->member},
                                  {"PROFD_PEER_UID", uid}, {"PROFD_PEER_PID", pid}),
                       "Refused %s to user %s (pid %s), who is not in group %s", call->member, uid,
                       pid, call->method->right == RIGHT_ADMIN ? "profd-admin" : "profd-read");
    return call_fail(call, "org.varlink.service.PermissionDenied", NULL);
}

/* 0: the mode is right; 1: the call was refused and freed. */
static int call_dispatch_check_mode(Call *call) {
    MethodMode mode = call->method ? call->method->mode : METHOD_PLAIN;

    if (mode == METHOD_MORE && !call->more)
        (void)call_fail(call, "org.varlink.service.ExpectedMore", NULL);
    else if (mode == METHOD_UPGRADE && !call->upgrade)
        (void)call_fail(call, "ExpectedUpgrade", NULL);
    else if (mode != METHOD_UPGRADE && call->upgrade)
        (void)call_fail_parameter(call, "upgrade", "no bytes follow a reply of this method");
    else
        return 0;
    return 1;
}

static int call_dispatch_fail_method(Call *call) {
    return call_fail(
        call, "org.varlink.service.MethodNotFound",
        json_pack("{s:s+++}", "method", interface_name(call->interface), ".", call->member, ""));
}

static int call_dispatch_check_parameters(Call *call) {
    char field[INTERFACE_FIELD_SIZE];
    int r = interface_check(call->interface, INTERFACE_CALL, call->member, call->parameters,
                            INTERFACE_STRICT, field);

    if (r == 0)
        return 0;
    if (r == -EINVAL)
        (void)call_fail_parameter(call, field,
                                  "it is unknown to this profd, missing, or of another type");
    else if (r == -ENOENT)
        (void)call_dispatch_fail_method(call);
    else
        call_fail_errno(call, r);
    return 1;
}

static int call_dispatch_run(Call *call) {
    Caller *caller = call->caller;
    const ControlMethod *method = call->method;
    int r;

    if (method && caller->peer.right < method->right)
        return call_dispatch_deny(call);
    call->is_audited = method && method->changes;
    if (call_dispatch_check_mode(call) != 0 || call_dispatch_check_parameters(call) != 0)
        return 0;
    if (!method)
        return service_call(call);
    r = method->run(caller->control->options.userdata, call);
    if (r < 0 && caller->call)
        call_fail_errno(caller->call, r);
    return 0;
}

/* Finds the method by its full name, "INTERFACE.METHOD", and calls it. */
static int call_dispatch_dispatch(Call *call, const char *method) {
    Control *control = call->caller->control;
    Interface *const interfaces[] = {control->interface, control->service};
    const char *dot = strrchr(method, '.');
    size_t n = dot ? (size_t)(dot - method) : strlen(method);

    for (size_t i = 0; dot && !call->interface && i < ARRAY_SIZE(interfaces); i++)
        if (strlen(interface_name(interfaces[i])) == n &&
            strncmp(interface_name(interfaces[i]), method, n) == 0)
            call->interface = interfaces[i];
    if (!call->interface)
        return call_fail(call, "org.varlink.service.InterfaceNotFound",
                         json_pack("{s:s%}", "interface", method, n));
    call->member = dot + 1;
    call->method =
        call->interface == control->interface ? call_dispatch_find_method(control, dot + 1) : NULL;
    if (call->interface == control->interface && !call->method)
        return call_dispatch_fail_method(call);
    return call_dispatch_run(call);
}

int call_begin(Caller *caller, Bytes bytes) {
    _cleanup_json_ json_t *message = NULL;
    MessageCall parsed;
    Call *call;
    int r = message_parse(bytes.data, bytes.size, &message);

    if (r == 0)
        r = message_to_call(message, &parsed);
    if (r > 0)
        return call_refuse_message(caller, (MessageFault)r);
    if (r < 0)
        return r;
    call = calloc(1, sizeof(*call));
    if (!call)
        return -ENOMEM;
    *call = (Call){.caller = caller,
                   .message = TAKE_PTR(message),
                   .nothing = json_object(),
                   .more = parsed.more,
                   .oneway = parsed.oneway,
                   .upgrade = parsed.upgrade};
    call->parameters = parsed.parameters ? parsed.parameters : call->nothing;
    caller->call = call;
    return call_dispatch_dispatch(call, parsed.method);
}
