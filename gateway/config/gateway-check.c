/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>

#include "config/gateway-config-private.h"
#include "config/gateway-value.h"

/*
 * Checks keys together after all were read. A destination that cannot work is left out: the others
 * go on, and profd keeps the samples. So is a destination whose rules are not understood, because a
 * rule may say what must not leave the host.
 */

static void gateway_check_listen(GatewayLoad *load) {
    const GatewayConfig *config = load->config;
    bool has_tls = *config->listen_certificate_file && *config->listen_key_file;

    if (!*config->listen_certificate_file != !*config->listen_key_file)
        gateway_load_report(load, load->whole, SECTION_LISTEN,
                            *config->listen_key_file ? "KeyFile" : "CertificateFile",
                            "CertificateFile= and KeyFile= of [Listen] need each other");
    if (*config->listen_address && !gateway_address_is_loopback(config->listen_address) &&
        (!has_tls || !*config->listen_token_file))
        gateway_load_report(load, load->whole, SECTION_LISTEN, "Address",
                            "Address=%s is reached from other hosts: it needs CertificateFile=, "
                            "KeyFile= and TokenFile=",
                            config->listen_address);
}

/* Reports the problem and says that the destination cannot work. */
static bool gateway_check_url(GatewayLoad *load, size_t i) {
    const SendConfig *send = &load->config->sends[i];
    bool is_file = strcmp(send->type, "file") == 0;

    if (!*send->type)
        gateway_load_report(load, &load->sends[i], SECTION_SEND, "Type",
                            "[Send %s] has no Type=, it is left out: write pyroscope, parca, otlp, "
                            "s3 or file",
                            send->name);
    else if (!*send->url || (*send->url == '/') != is_file)
        gateway_load_report(
            load, &load->sends[i], SECTION_SEND, "URL",
            "[Send %s] has no URL= for Type=%s, it is left out: write %s", send->name, send->type,
            is_file ? "the absolute path of a folder" : "http://HOST or https://HOST");
    else
        return true;
    return false;
}

/* One of them says who we are. */
static void gateway_check_identity(GatewayLoad *load, size_t i) {
    static const char *const keys[] = {"TokenFile", "PasswordFile", "Credential"};
    const char *first = NULL;

    for (size_t k = 0; k < ARRAY_SIZE(keys); k++) {
        if (!gateway_load_has(&load->sends[i], SECTION_SEND, keys[k]))
            continue;
        if (first)
            gateway_load_report(load, &load->sends[i], SECTION_SEND, keys[k],
                                "%s= and %s= do not go together: keep one of them", keys[k], first);
        first = keys[k];
    }
}

static void gateway_check_tls(GatewayLoad *load, size_t i) {
    static const char *const keys[] = {"CAFile", "CertificateFile", "KeyFile"};
    const SendConfig *send = &load->config->sends[i];

    if (!*send->certificate_file && *send->key_file)
        gateway_load_report(load, &load->sends[i], SECTION_SEND, "KeyFile",
                            "KeyFile= needs CertificateFile=");
    for (size_t k = 0; k < ARRAY_SIZE(keys); k++)
        if (strncmp(send->url, "https://", 8) != 0 &&
            gateway_load_has(&load->sends[i], SECTION_SEND, keys[k]))
            gateway_load_report(load, &load->sends[i], SECTION_SEND, keys[k],
                                "%s= has no effect: URL= does not begin with https://", keys[k]);
}

/* The begin of an interval is as old as the interval is long before anything is sent. */
static void gateway_check_age(GatewayLoad *load, size_t i) {
    const SendConfig *send = &load->config->sends[i];

    if (!gateway_send_keeps_recordings(send) && send->max_age_ns > 0 &&
        send->max_age_ns < 3 * load->config->interval_ns)
        gateway_load_report(load, &load->sends[i], SECTION_SEND, "MaxAgeSec",
                            "MaxAgeSec= is less than three times IntervalSec=, so what fails once "
                            "would not be sent again");
}

/* Reports a type that cannot have recordings, and keys that only recordings use. */
static void gateway_check_content(GatewayLoad *load, size_t i) {
    static const char *const keys[] = {"KeyTemplate", "ObjectIntervalSec"};
    const SendConfig *send = &load->config->sends[i];
    bool is_store = strcmp(send->type, "s3") == 0, is_file = strcmp(send->type, "file") == 0;
    bool has_recordings = gateway_send_keeps_recordings(send);
    const char *problem = NULL;

    /* Its keys may contradict each other; such a destination is refused later. */
    if (has_recordings && load->check_store && load->check_store(send, &problem) < 0)
        gateway_load_report(load, &load->sends[i], SECTION_SEND, "Type", "[Send %s]: %s",
                            send->name, problem ?: "its keys do not go together");
    if (!is_store && gateway_load_has(&load->sends[i], SECTION_SEND, "Region"))
        gateway_load_report(load, &load->sends[i], SECTION_SEND, "Region",
                            "Region= is for Type=s3 alone");
    if (!is_store && !is_file && gateway_load_has(&load->sends[i], SECTION_SEND, "Content"))
        gateway_load_report(load, &load->sends[i], SECTION_SEND, "Content",
                            "Content= is for Type=s3 and Type=file alone");
    for (size_t k = 0; k < ARRAY_SIZE(keys); k++)
        if (!has_recordings && gateway_load_has(&load->sends[i], SECTION_SEND, keys[k]))
            gateway_load_report(load, &load->sends[i], SECTION_SEND, keys[k],
                                "%s= is for recordings and snapshots alone, see Content=", keys[k]);
}

static int gateway_compile_rule(GatewayLoad *load, size_t i) {
    GatewayRule *rule = &load->config->rules[i];
    const RelabelText text = {.action = rule->action,
                              .source_labels = *rule->source_labels ? rule->source_labels : NULL,
                              .separator = rule->separator,
                              .regex = rule->regex,
                              .target_label = *rule->target_label ? rule->target_label : NULL,
                              .replacement = rule->replacement};
    const char *problem = NULL;
    int r = relabel_rule_new(&text, &rule->rule, &problem);

    if (r != -EINVAL)
        return r;
    gateway_load_report(load, &load->rules[i], SECTION_RELABEL, "Regex",
                        "[Relabel %s] cannot be used because %s", rule->name, problem);
    load->rules[i].is_bad = true;
    return 0;
}

/* Sends= names destinations that there are. */
static void gateway_check_rule_names(GatewayLoad *load, size_t i) {
    const char *word = load->config->rules[i].sends;

    for (size_t n; *word; word += n + strspn(word + n, " ,")) {
        char name[GATEWAY_TEXT_MAX];

        n = strcspn(word, " ,");
        memcpy(name, word, n);
        name[n] = '\0';
        if (gateway_config_send(load->config, name))
            continue;
        gateway_load_report(load, &load->rules[i], SECTION_RELABEL, "Sends",
                            "There is no [Send %s] that [Relabel %s] could be for", name,
                            load->config->rules[i].name);
        load->rules[i].names_nobody = true;
    }
}

static bool gateway_check_rules_of(GatewayLoad *load, size_t i) {
    const SendConfig *send = &load->config->sends[i];

    if (load->refused.path) {
        gateway_load_report(load, &load->sends[i], SECTION_SEND, "Type",
                            "[Send %s] is left out, because line %u of %s is not understood and "
                            "may be of a rule that says what must not be sent",
                            send->name, load->refused.line, load->refused.path);
        return false;
    }
    for (size_t k = 0; k < load->config->n_rules; k++) {
        const GatewayRule *rule = &load->config->rules[k];
        bool is_for = gateway_rule_is_for(rule, send->name);

        if (is_for ? !load->rules[k].is_bad : !load->rules[k].names_nobody)
            continue;
        gateway_load_report(load, &load->sends[i], SECTION_SEND, "Type",
                            "[Send %s] is left out, because [Relabel %s] is not understood and may "
                            "say what must not be sent",
                            send->name, rule->name);
        return false;
    }
    return true;
}

static void gateway_remove_send(GatewayLoad *load, size_t i) {
    GatewayConfig *config = load->config;
    size_t behind = --config->n_sends - i;

    memmove(&config->sends[i], &config->sends[i + 1], behind * sizeof(config->sends[0]));
    memmove(&load->sends[i], &load->sends[i + 1], behind * sizeof(load->sends[0]));
    memset(&config->sends[config->n_sends], 0, sizeof(config->sends[0]));
}

/* Rules that are not understood are for no destination that is left. */
static void gateway_remove_bad_rules(GatewayLoad *load) {
    GatewayConfig *config = load->config;
    size_t kept = 0;

    for (size_t i = 0; i < config->n_rules; i++) {
        if (load->rules[i].is_bad)
            relabel_rule_free(config->rules[i].rule);
        else if (kept++ != i)
            config->rules[kept - 1] = config->rules[i];
    }
    config->n_rules = kept;
}

static void gateway_check_host(GatewayConfig *config) {
    const ConfigKey *key = config_table_find(gateway_config_table(), SECTION_GATEWAY, "Host");
    char name[sizeof(config->host)] = "";

    if (*config->host)
        return;
    if (gethostname(name, sizeof(name) - 1) < 0 || !*name || key->parse(key, name, config) < 0)
        strcpy(config->host, "localhost");
}

int gateway_check(GatewayLoad *load) {
    int r = 0;

    gateway_check_host(load->config);
    gateway_check_listen(load);
    for (size_t i = 0; r == 0 && i < load->config->n_rules; i++) {
        gateway_check_rule_names(load, i);
        r = gateway_compile_rule(load, i);
    }
    for (size_t i = 0; r == 0 && i < load->config->n_sends;) {
        gateway_check_identity(load, i);
        gateway_check_tls(load, i);
        gateway_check_age(load, i);
        gateway_check_content(load, i);
        if (gateway_check_url(load, i) && gateway_check_rules_of(load, i))
            i++;
        else
            gateway_remove_send(load, i);
    }
    gateway_remove_bad_rules(load);
    return r;
}
