/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Parsers for a table of keys, and the way back: members of 1 (bool), 4 or 8 bytes. */

#include "config/config-table.h"
#include "util/buffer.h"

/* A member of 4 or 8 bytes, as the row's size says, between min and max. -ERANGE. */
int config_store_number(const ConfigKey *key, uint64_t v, void *base);
uint64_t config_number_of(const ConfigKey *key, const void *base);

/* "0%" to "100%"; -ERANGE. */
int config_read_percent(const char *value, uint64_t *ret);

int config_parse_bool(const ConfigKey *key, const char *value, void *base);
int config_parse_count(const ConfigKey *key, const char *value, void *base);
int config_parse_size(const ConfigKey *key, const char *value, void *base);
int config_parse_span(const ConfigKey *key, const char *value, void *base);
int config_parse_power_of_two(const ConfigKey *key, const char *value, void *base);
/* The same, where `0` and `infinity` both mean no limit and are stored as 0. */
int config_parse_count_limit(const ConfigKey *key, const char *value, void *base);
int config_parse_size_limit(const ConfigKey *key, const char *value, void *base);
int config_parse_span_limit(const ConfigKey *key, const char *value, void *base);

/* Prints the value of a key that has one of these parsers; false: it has another one. */
bool config_print_number(const ConfigKey *key, const void *base, Buffer *out);
/* In the largest unit that divides the value. */
void config_put_size(Buffer *out, uint64_t bytes);
