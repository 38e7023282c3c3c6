/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Varlink interfaces: their text becomes types, against which parameters are checked, on both ends
 * of a connection. The texts of the interfaces that profd has are built in.
 */

#include <jansson.h>

#include "util/macro.h"

extern const char interface_text_control[]; /* io.profd.Control */
extern const char interface_text_service[]; /* org.varlink.service */

typedef struct Interface Interface;

/* `text` is borrowed and outlives it. -EBADMSG: no interface, from *ret_line (from 1) on. */
int interface_new(const char *text, Interface **ret, unsigned *ret_line);
Interface *interface_free(Interface *interface);
DEFINE_CLEANUP(Interface *, interface_free);

/* "io.profd.Control" */
const char *interface_name(const Interface *interface);
const char *interface_text(const Interface *interface);
/* The methods in the order of the text, NULL behind the last one. */
const char *interface_method(const Interface *interface, size_t i);

typedef enum InterfacePart { INTERFACE_CALL, INTERFACE_REPLY, INTERFACE_ERROR } InterfacePart;
typedef enum InterfaceStrictness {
    INTERFACE_STRICT,
    INTERFACE_ADDED_FIELDS, /* of a newer service are passed over */
} InterfaceStrictness;

enum { INTERFACE_FIELD_SIZE = 128 };

/*
 * Whether an object (NULL: an empty one) holds what a method takes, gives back, or an error tells.
 * -ENOENT: the interface has no such method or error. -EINVAL: a field is missing, unknown or of
 * another type; ret_field (escaped, cut where it is too long) tells which: "settings", "pids[3]".
 */
int interface_check(const Interface *interface, InterfacePart part, const char *member,
                    const json_t *object, InterfaceStrictness strictness,
                    char ret_field[INTERFACE_FIELD_SIZE]);
