/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Varlink interfaces: a text is parsed into types, and parameters are checked against them on both
 * sides of a connection. The texts of profd's interfaces are built in.
 */

#include <jansson.h>

#include "util/macro.h"

extern const char interface_text_control[]; /* io.profd.Control */
extern const char interface_text_service[]; /* org.varlink.service */

typedef struct Interface Interface;

/* `text` is borrowed and must outlive the interface. -EBADMSG: invalid, at *ret_line (counted from
 * 1). */
int interface_new(const char *text, Interface **ret, unsigned *ret_line);
Interface *interface_free(Interface *interface);
DEFINE_CLEANUP(Interface *, interface_free);

/* "io.profd.Control" */
const char *interface_name(const Interface *interface);
const char *interface_text(const Interface *interface);
/* The i-th method in the order of the text, NULL after the last one. */
const char *interface_method(const Interface *interface, size_t i);

typedef enum InterfacePart { INTERFACE_CALL, INTERFACE_REPLY, INTERFACE_ERROR } InterfacePart;
typedef enum InterfaceStrictness {
    INTERFACE_STRICT,
    INTERFACE_ADDED_FIELDS, /* fields that a newer service has added are ignored */
} InterfaceStrictness;

enum { INTERFACE_FIELD_SIZE = 128 };

/*
 * Whether an object (NULL: an empty one) is valid as the parameters of a method, a reply, or an
 * error. -ENOENT: the interface has no such method or error. -EINVAL: a field is missing, unknown
 * or has another type; ret_field (escaped, and cut if it is too long) names it: "settings",
 * "pids[3]".
 */
int interface_check(const Interface *interface, InterfacePart part, const char *member,
                    const json_t *object, InterfaceStrictness strictness,
                    char ret_field[INTERFACE_FIELD_SIZE]);
