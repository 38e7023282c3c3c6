/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "client/frame/color.h"
#include "client/frame/width.h"
#include "client/remote/remote.h"
#include "client/remote/reply.h"
#include "protocol/value.h"
#include "util/text.h"

/*
 * `profctl cat-config`: prints the effective configuration as a file that profd could read, with
 * the origin of each value in a comment after it.
 */

enum { SOURCE_COLUMN = 40 };

static void cat_config_print_setting(Context *c, const json_t *setting) {
    const char *key = reply_string(setting, "key"), *value = reply_string(setting, "value");
    const char *source = reply_string(setting, "source");
    bool colors = context_colors(c);
    Buffer *out = &c->out.buffer;
    size_t n = width_of(key, strlen(key)) + 1 + width_of(value, strlen(value));

    text_printf(out, "%s=%s", key, value);
    if (c->no_legend || !*source) {
        text_putc(out, '\n');
        return;
    }
    /* A comment must be preceded by a space. */
    text_printf(out, "%*s", n < SOURCE_COLUMN ? (int)(SOURCE_COLUMN - n) : 1, "");
    text_printf(out, "%s; %s%s\n", colors ? color_sequence(COLOR_FAINT) : "", source,
                colors ? color_sequence(COLOR_NONE) : "");
}

static void cat_config_print(Context *c, const json_t *settings) {
    const json_t *setting;
    const char *before = "";
    size_t i;

    json_array_foreach(settings, i, setting) {
        const char *section = reply_string(setting, "section");

        if (strcmp(section, before) != 0)
            text_printf(&c->out.buffer, "%s[%s]\n", i > 0 ? "\n" : "", section);
        before = section;
        cat_config_print_setting(c, setting);
    }
}

static int cat_config_run(Context *c, void *settings, char **arguments) {
    json_t *parameters = json_object(), *list;
    int r;

    if (arguments[0])
        value_set(&parameters, "session", remote_word(arguments[0]));
    r = remote_ask_list(c, "Describe", parameters, "setting", &list);
    if (r != STATUS_OK)
        return r;
    if (!c->json) {
        context_page(c);
        cat_config_print(c, list);
    }
    return reply_print_done(c, r, list);
}

const Command command_cat_config = {
    .name = "cat-config",
    .arguments = "[SESSION]",
    .n_max = 1,
    .summary = "Show the settings in effect, and where each comes from",
    .notes = "In the form of profd.conf(5); --no-legend leaves out where they come from.",
    .run = cat_config_run,
};
