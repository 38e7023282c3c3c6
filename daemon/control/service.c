/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "control/control-private.h"

/*
 * org.varlink.service, which every Varlink service implements: our name and the text of our
 * interfaces, so that a generic client can discover what it may call.
 */

static int service_get_info(Call *call) {
    const Control *control = call->caller->control;

    return call_reply(call, json_pack("{s:s, s:s, s:s, s:s, s:[s, s]}", "vendor", "profd",
                                      "product", "profd, always-on system profiler", "version",
                                      control->options.version, "url", "", "interfaces",
                                      interface_name(control->service),
                                      interface_name(control->interface)));
}

static int service_get_interface_description(Call *call) {
    const Control *control = call->caller->control;
    const Interface *const interfaces[] = {control->interface, control->service};
    const char *name = json_string_value(json_object_get(call->parameters, "interface"));

    for (size_t i = 0; i < ARRAY_SIZE(interfaces); i++)
        if (strcmp(interface_name(interfaces[i]), name) == 0)
            return call_reply(call,
                              json_pack("{s:s}", "description", interface_text(interfaces[i])));
    return call_fail(call, "org.varlink.service.InterfaceNotFound",
                     json_pack("{s:s}", "interface", name));
}

int service_call(Call *call) {
    return strcmp(call->member, "GetInfo") == 0 ? service_get_info(call)
                                                : service_get_interface_description(call);
}
