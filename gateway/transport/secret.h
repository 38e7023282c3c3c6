/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The credentials of a destination, read from their file at each use, so that a renewed token
 * counts from its next request on. */

#include "config/gateway-config.h"

enum { SECRET_MAX = 16384 };

typedef struct Secret {
    char text[SECRET_MAX]; /* a bearer token, or USER:PASSWORD; "": none */
    bool is_basic;
} Secret;

/* Without credentials in the configuration: none. -EINVAL: the file holds a control character, is
 * empty, or is no file; -ENOENT also where systemd passed no credentials. */
int secret_read(const SendConfig *config, Secret *ret);
/* Overwrites it. */
void secret_done(Secret *secret);
