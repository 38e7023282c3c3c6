/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <assert.h>
#include <string.h>

#include "config/gateway-config-private.h"
#include "config/gateway-value.h"
#include "fuzz.h"

/*
 * Configurations of the gateway of any bytes: two files, taken together and then the first one
 * alone, and what a reload compares. Whatever they say, what comes out is a configuration that the
 * gateway could run with. Input: the files, with a byte 0x1e between them.
 */

enum { SEPARATOR = 0x1e };

static void on_problem(void *userdata, const char *path, unsigned line, const char *problem) {
    (void)userdata;
    (void)line;
    fuzz_touch((const uint8_t *)path, strlen(path));
    fuzz_touch((const uint8_t *)problem, strlen(problem));
}

static void add_file(GatewayLoad *load, const uint8_t *data, size_t size) {
    ConfigFile *file = &load->files.list[load->files.n++];

    file->path = strdup("a.conf");
    file->text = malloc(size + 1);
    if (!file->path || !file->text)
        abort();
    if (size > 0)
        memcpy(file->text, data, size);
    file->text[size] = '\0';
    file->size = size;
}

static bool is_text(const char *text, size_t size) {
    size_t n = strnlen(text, size);

    for (size_t i = 0; i < n; i++)
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
            return false;
    return n < size;
}

static void check_send(const SendConfig *send) {
    assert(*send->name && *send->type && *send->url);
    assert(is_text(send->url, sizeof(send->url)) && is_text(send->tenant, sizeof(send->tenant)));
    assert(is_text(send->proxy, sizeof(send->proxy)));
    assert(!strchr(send->credential, '/') && (*send->url == '/' || !strchr(send->url, ' ')));
    assert((strcmp(send->type, "file") == 0) == (*send->url == '/'));
    assert(send->share_percent >= 1 && send->share_percent <= 100);
    assert(send->max_series >= 1 && send->max_series <= 10000);
    assert(send->timeout_ns >= 1000000000 && send->object_interval_ns >= 60000000000);
}

static void check_sound(const GatewayConfig *config) {
    assert(config->n_sends <= GATEWAY_SENDS_MAX && config->n_rules <= GATEWAY_RULES_MAX);
    assert(config->interval_ns >= 1000000000 && config->interval_ns <= 600000000000);
    assert(*config->host && is_text(config->host, sizeof(config->host)));
    for (size_t i = 0; i < config->n_sends; i++) {
        check_send(&config->sends[i]);
        assert(gateway_config_send(config, config->sends[i].name) == &config->sends[i]);
        assert(gateway_config_same_send(config, config, config->sends[i].name));
    }
    for (size_t i = 0; i < config->n_rules; i++)
        assert(config->rules[i].rule);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    _cleanup_(gateway_load_done) GatewayLoad both = {.files = {.on_problem = on_problem}};
    _cleanup_(gateway_load_done) GatewayLoad one = {.files = {.on_problem = on_problem}};
    const uint8_t *end = size > 0 ? memchr(data, SEPARATOR, size) : NULL;
    size_t n = end ? (size_t)(end - data) : size;

    add_file(&one, data, n);
    add_file(&both, data, n);
    if (end)
        add_file(&both, end + 1, size - n - 1);
    if (gateway_load_take(&one) < 0 || gateway_load_take(&both) < 0)
        abort();
    check_sound(one.config);
    check_sound(both.config);
    for (size_t i = 0; i < one.config->n_sends; i++)
        (void)gateway_config_same_send(one.config, both.config, one.config->sends[i].name);
    (void)gateway_config_same_source(one.config, both.config);
    (void)gateway_config_same_listen(one.config, both.config);
    return 0;
}
