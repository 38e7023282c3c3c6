/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config/gateway-config.h"

#include <string.h>

#include "config/gateway-config-private.h"

/*
 * The life of a configuration, and what differs between two of them. Destinations that a reload
 * does not touch go on with the configuration that they were made with, so it counts its users.
 */

GatewayConfig *gateway_config_ref(GatewayConfig *config) {
    config->references++;
    return config;
}

GatewayConfig *gateway_config_free(GatewayConfig *config) {
    if (!config || --config->references > 0)
        return NULL;
    for (size_t i = 0; i < config->n_rules; i++)
        relabel_rule_free(config->rules[i].rule);
    free(config);
    return NULL;
}

const SendConfig *gateway_config_send(const GatewayConfig *config, const char *name) {
    for (size_t i = 0; i < config->n_sends; i++)
        if (strcmp(config->sends[i].name, name) == 0)
            return &config->sends[i];
    return NULL;
}

bool gateway_send_keeps_recordings(const SendConfig *send) {
    bool is_file = strcmp(send->type, "file") == 0;

    return strcmp(send->type, "s3") == 0 ||
           (is_file && *send->content && strcmp(send->content, "profiles") != 0);
}

bool gateway_rule_is_for(const GatewayRule *rule, const char *send) {
    size_t wanted = strlen(send), n;

    if (!*rule->sends)
        return true;
    for (const char *word = rule->sends; *word; word += n + strspn(word + n, " ,")) {
        n = strcspn(word, " ,");
        if (n == wanted && strncmp(word, send, n) == 0)
            return true;
    }
    return false;
}

/* By the table, so that no key can be forgotten. */
static bool gateway_config_same(const char *section, const void *a, const void *b) {
    ConfigTable table = gateway_config_table();

    for (size_t i = 0; i < table.n; i++) {
        const ConfigKey *key = &table.keys[i];

        if (strcmp(key->section, section) == 0 &&
            memcmp((const char *)a + key->offset, (const char *)b + key->offset, key->size) != 0)
            return false;
    }
    return true;
}

bool gateway_config_same_source(const GatewayConfig *a, const GatewayConfig *b) {
    return gateway_config_same(SECTION_GATEWAY, a, b);
}

bool gateway_config_same_listen(const GatewayConfig *a, const GatewayConfig *b) {
    return gateway_config_same(SECTION_LISTEN, a, b);
}

static const GatewayRule *gateway_config_rule_for(const GatewayConfig *config, const char *send,
                                                  size_t *at) {
    while (*at < config->n_rules) {
        const GatewayRule *rule = &config->rules[(*at)++];

        if (gateway_rule_is_for(rule, send))
            return rule;
    }
    return NULL;
}

bool gateway_config_same_send(const GatewayConfig *a, const GatewayConfig *b, const char *name) {
    const SendConfig *of_a = gateway_config_send(a, name), *of_b = gateway_config_send(b, name);
    const GatewayRule *rule_a, *rule_b;
    size_t at_a = 0, at_b = 0;

    if (!of_a || !of_b || !gateway_config_same(SECTION_SEND, of_a, of_b))
        return false;
    do {
        rule_a = gateway_config_rule_for(a, name, &at_a);
        rule_b = gateway_config_rule_for(b, name, &at_b);
        if (rule_a && rule_b && !gateway_config_same(SECTION_RELABEL, rule_a, rule_b))
            return false;
    } while (rule_a && rule_b);
    return rule_a == rule_b;
}
