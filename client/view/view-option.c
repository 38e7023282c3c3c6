/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/view/view.h"

/* The options that all views share; their rows are macros in view.h. */

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
}
