/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Parsers of the values that only the gateway has; lib/config has those of numbers. */

#include <stdbool.h>

#include "config/config-table.h"

/* Text in UTF-8 without control characters, at most as long as the member; in quotes it may be
 * empty or begin and end with spaces. */
int gateway_parse_text(const ConfigKey *key, const char *value, void *base);
/* A word without spaces and control characters. */
int gateway_parse_word(const ConfigKey *key, const char *value, void *base);
/* A word without slashes that does not begin with a point. */
int gateway_parse_name(const ConfigKey *key, const char *value, void *base);
/* An absolute path. */
int gateway_parse_path(const ConfigKey *key, const char *value, void *base);
/* An absolute path, the name of a file in the runtime folder, or "none". */
int gateway_parse_socket(const ConfigKey *key, const char *value, void *base);
/* A number and a port, "127.0.0.1:9137" or "[::1]:9137", or "none". */
int gateway_parse_address(const ConfigKey *key, const char *value, void *base);
/* http://, https:// or an absolute path. */
int gateway_parse_url(const ConfigKey *key, const char *value, void *base);
/* The name of an engine; of what objects hold. */
int gateway_parse_type(const ConfigKey *key, const char *value, void *base);
int gateway_parse_content(const ConfigKey *key, const char *value, void *base);
/* The action of a rule. */
int gateway_parse_action(const ConfigKey *key, const char *value, void *base);
/* A percentage from 1% to 100%. */
int gateway_parse_percent(const ConfigKey *key, const char *value, void *base);

/* Whether the address of ADDRESS:PORT is one that only this host reaches. */
bool gateway_address_is_loopback(const char *address);
