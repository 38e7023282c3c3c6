/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/frame/stack-text.h"

#include "test.h"
#include "unwind/unwind.h"
#include "util/macro.h"
#include "util/text.h"

/* The row of a verdict; NULL: there is none. */
static const StackRow *row_of(const char *verdict) {
    for (size_t i = 0; i < STACK_ROWS; i++)
        if (strcmp(stack_rows[i].name, verdict) == 0)
            return &stack_rows[i];
    return NULL;
}

TEST(each_verdict_of_a_walk_has_a_row_and_all_but_two_a_text) {
    CHECK_EQ(STACK_ROWS, UNWIND_VERDICTS);
    for (unsigned i = 0; i < UNWIND_VERDICTS; i++) {
        const StackRow *row = row_of(unwind_verdict_name(i));

        CHECK(row);
        CHECK_EQ(strncmp(row->key, "stacks_", strlen("stacks_")), 0);
        CHECK_EQ(row->text == NULL, i == UNWIND_WHOLE || i == UNWIND_NO_USER);
    }
}

TEST(samples_without_a_stack_do_not_count) {
    StackCounts counts = {.samples[STACK_ROWS - 1] = 12};
    _cleanup_(buffer_done) Buffer text = {};

    stack_text_put(&text, &counts);
    CHECK_EQ(text.size, 0);
    counts.samples[0] = 3;
    counts.samples[1] = 1;
    stack_text_put(&text, &counts);
    text_putc(&text, '\0');
    CHECK_STREQ((const char *)text.data, "75.0 % of 4 whole; 1 truncated");
}

TEST_MAIN()
