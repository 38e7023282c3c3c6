/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <assert.h>
#include <string.h>

#include "config/config-private.h"
#include "fuzz.h"

/*
 * Configurations of any bytes: a main file and drop-ins, taken together and then without the last
 * one, and the way from the one to the other. Whatever they say, what comes out is a configuration
 * that profd could record with. Input: the files, with a byte 0x1e between two of them.
 */

enum { SEPARATOR = 0x1e, FILES_MAX = 8 };

static void on_problem(void *userdata, const char *path, unsigned line, const char *problem) {
    (void)userdata;
    (void)line;
    fuzz_touch((const uint8_t *)path, strlen(path));
    fuzz_touch((const uint8_t *)problem, strlen(problem));
}

static void add_file(ConfigLoad *load, const uint8_t *data, size_t size) {
    ConfigFile *file = &load->files.list[load->files.n];

    file->path = strdup("a.conf");
    file->text = malloc(size + 1);
    if (!file->path || !file->text)
        abort();
    if (size > 0)
        memcpy(file->text, data, size);
    file->text[size] = '\0';
    file->size = size;
    load->files.n++;
}

static void split(ConfigLoad *load, const uint8_t *data, size_t size) {
    while (load->files.n < FILES_MAX) {
        const uint8_t *end = size > 0 ? memchr(data, SEPARATOR, size) : NULL;
        size_t n = end ? (size_t)(end - data) : size;

        add_file(load, data, n);
        if (!end)
            return;
        data += n + 1;
        size -= n + 1;
    }
}

/* A default may not fit another key, so these rules hold only for the whole configuration. */
static void check_sound(const Config *config) {
    uint32_t enabled = 0;

    assert(config->n_sessions >= 1 && config->n_sessions <= CONFIG_SESSIONS_MAX);
    assert(strcmp(config->sessions[0].name, "default") == 0);
    for (uint32_t i = 0; i < config->n_sessions; i++) {
        const SessionConfig *s = &config->sessions[i];

        assert(config_name_is_valid(s->name) && config_session(config, s->name) == s);
        assert(s->events[0] && memchr(s->events, '\0', sizeof(s->events)));
        assert(s->frequency_hz >= 1 && s->frequency_hz <= 100000);
        assert(config->max_frequency_hz == 0 || s->frequency_hz <= config->max_frequency_hz);
        assert((s->buffer_bytes & (s->buffer_bytes - 1)) == 0 && s->buffer_bytes >= 8192);
        assert(s->buffer_bytes <= config->max_buffer_total_bytes);
        assert(s->n_pids == 0 || !s->cgroup[0]);
        assert(s->user_samples || s->kernel_samples);
        assert((s->call_graph == CALL_GRAPH_DWARF || s->call_graph == CALL_GRAPH_UNWIND) ==
               (s->stack_bytes > 0));
        enabled += s->enabled;
    }
    assert(enabled <= config->max_sessions);
}

static int on_change(void *userdata, ConfigFate fate, const SessionConfig *old,
                     const SessionConfig *new) {
    (void)userdata;
    assert(fate != CONFIG_KEPT && (old || new));
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    _cleanup_(config_load_done) ConfigLoad whole = {.files = {.on_problem = on_problem}};
    _cleanup_(config_load_done) ConfigLoad less = {.files = {.on_problem = on_problem}};

    split(&whole, data, size);
    split(&less, data, size);
    less.files.n--;
    free(less.files.list[less.files.n].path);
    free(less.files.list[less.files.n].text);
    if (config_take(&whole) < 0 || config_take(&less) < 0)
        abort();
    check_sound(whole.config);
    check_sound(less.config);
    (void)config_touches(less.config, whole.config);
    (void)config_diff(less.config, whole.config, on_change, NULL);
    return 0;
}
