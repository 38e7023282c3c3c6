/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/view/view.h"

#include <errno.h>

/* The options that all views share; their rows are macros in view.h. */

int view_option_by(const Option *option, const char *argument, void *field) {
    OptionWords words = {};
    RowKeys *keys = field;
    int r = option_words(option, argument, &words);

    for (size_t i = 0; i < words.n && r >= 0; i++) {
        unsigned key = row_key_by_name(words.items[i]);

        if (key == ROW_KEYS)
            r = -EINVAL;
        else if (!row_keys_hold(keys, key))
            keys->items[keys->n++] = (uint8_t)key;
    }
    option_words_done(&words);
    return r;
}

int view_option_count(const Option *option, const char *argument, void *field) {
    *(ViewWeight *)field = VIEW_BY_COUNT;
    return 0;
}

int view_option_period(const Option *option, const char *argument, void *field) {
    *(ViewWeight *)field = VIEW_BY_PERIOD;
    return 0;
}

bool view_by_period(const ViewSettings *settings, bool otherwise) {
    return settings->weight == VIEW_BY_DEFAULT ? otherwise : settings->weight == VIEW_BY_PERIOD;
}

void view_settings_done(ViewSettings *settings) {
    option_words_done(&settings->events);
    selector_options_done(&settings->selected);
    option_words_done(&settings->dsos);
    option_words_done(&settings->symbols);
    option_words_done(&settings->srclines);
}
