/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The parsers of the table of keys that only profd has, see ConfigKey. */

#include "config/config.h"

/* A size, `10%`, an empty text for the built-in rule, or `infinity` if max is CONFIG_NO_LIMIT. */
int config_parse_amount(const ConfigKey *key, const char *value, void *base);

int config_parse_storage(const ConfigKey *key, const char *value, void *base);
int config_parse_layout(const ConfigKey *key, const char *value, void *base);
int config_parse_compress(const ConfigKey *key, const char *value, void *base);

/* For a SessionConfig only. */
int config_parse_events(const ConfigKey *key, const char *value, void *base);
int config_parse_frequency(const ConfigKey *key, const char *value, void *base);
int config_parse_call_graph(const ConfigKey *key, const char *value, void *base);
int config_parse_cpus(const ConfigKey *key, const char *value, void *base);
int config_parse_cgroup(const ConfigKey *key, const char *value, void *base);
int config_parse_pids(const ConfigKey *key, const char *value, void *base);
/* Where a key of config_parse_pids() stores its number of items. */
uint32_t *config_count_of(const ConfigKey *key, void *base);
