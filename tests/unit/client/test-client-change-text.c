/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/compare/change-text.h"

#include <time.h>

#include "make-profile.h"
#include "test.h"
#include "util/text.h"

/* The sentences of changed: what they claim, how many changes are not listed, and what is missing
 * of the times that are compared. */

#define US    1000000ULL
#define NS    1000000000ULL
#define BEGIN 1000000800ULL /* 2001-09-09 02:00:00 UTC */

typedef struct Made {
    MadeProfile profiles[CHANGE_SIDES];
    View views[CHANGE_SIDES];
    ChangeList list;
    Context context;
} Made;

/* Five minutes with 1,000 samples, and those before. */
static void make_list(Made *made) {
    *made = (Made){.list = {.unit = "CPUs", .is_spread_known = true}};
    setenv("TZ", "UTC", 1);
    tzset();
    for (unsigned side = 0; side < CHANGE_YESTERDAY; side++) {
        View *view = &made->views[side];

        made->profiles[side] = make_profile(1U << PROFILE_EVENT);
        (void)make_event(&made->profiles[side], "cpu-clock", true);
        view->profile = made->profiles[side].profile;
        view->profile->events[0].samples = view->profile->samples = 1000;
        view->title = (char *)"host";
        view->since_us = (BEGIN - side * 300) * US;
        view->until_us = (BEGIN + 300 - side * 300) * US;
        made->list.sides[side] = view;
        made->list.host.is_known[side] = true;
        made->list.host.figures[side] = 1.5;
    }
    made->list.events[CHANGE_YESTERDAY] = PROFILE_NONE;
}

static void made_done(Made *made) {
    for (unsigned side = 0; side < CHANGE_YESTERDAY; side++) {
        made_profile_done(&made->profiles[side]);
        pd_coverage_done(&made->views[side].coverage);
    }
    buffer_done(&made->context.out.buffer);
    free(made->list.items);
}

static void add_change(Made *made) {
    const Change change = {.kind = CHANGE_UNIT,
                           .against = CHANGE_BEFORE,
                           .group = made_bytes("shop"),
                           .figures = {1, 0.25},
                           .is_known = {true, true}};

    made_ok(change_list_add(&made->list, &change));
}

static const char *printed(Made *made) {
    Buffer *out = &made->context.out.buffer;

    buffer_clear(out);
    change_list_print(&made->context, &made->list);
    text_putc(out, '\0');
    return (const char *)out->data;
}

static bool page_has(const Made *made, const char *sentence) {
    _cleanup_(buffer_done) Buffer out = {};
    bool found = false;

    change_list_put(&made->list, &out);
    for (size_t at = 0; at < out.size; at += strlen((const char *)out.data + at) + 1)
        found |= strcmp((const char *)out.data + at, sentence) == 0;
    return found;
}

TEST(no_change_is_said_with_both_bounds) {
    _cleanup_(made_done) Made made;

    make_list(&made);
    made.context.no_legend = true;
    CHECK_STREQ(printed(&made),
                "Nothing changed by more than chance and by at least 2% of all load: in all 1.50 "
                "CPUs, 1.50 in the 5 min before (+0.00).\n");
}

TEST(changes_that_are_not_listed_are_counted) {
    static const char one[] = "1 more change is not listed here; 'profctl diff' has a row for "
                              "each.",
                      many[] = "1,007 more changes are not listed here; 'profctl diff' has a row "
                               "for each.";
    _cleanup_(made_done) Made made;

    make_list(&made);
    add_change(&made);
    CHECK(!strstr(printed(&made), " more change"));
    made.list.n_more = 1;
    CHECK(strstr(printed(&made), one));
    made.list.n_more = 1007;
    CHECK(strstr(printed(&made), many));
    CHECK(page_has(&made, many));
    made.context.json = JSON_SHORT;
    CHECK(strstr(printed(&made), "\"more\":1007}"));
}

TEST(a_side_with_everything_has_no_remark) {
    _cleanup_(made_done) Made made;

    make_list(&made);
    add_change(&made);
    CHECK_STREQ(printed(&made), "host, 2001-09-09 02:00:00 to 02:05:00:\n"
                                "In all 1.50 CPUs, 1.50 in the 5 min before (+0.00).\n"
                                "- shop uses 1.00 CPUs, 0.25 in the 5 min before (+0.75).\n");
}

TEST(lost_samples_are_remarked_for_their_side) {
    _cleanup_(made_done) Made made;

    make_list(&made);
    /* Of another event, which is not compared. */
    (void)make_event(&made.profiles[CHANGE_NOW], "page-faults", false);
    made.views[CHANGE_NOW].profile->events[1].lost = 9;
    made.views[CHANGE_BEFORE].profile->events[0].lost = 5;
    CHECK(strstr(printed(&made), "\nThe time before is not complete: 1,000 samples, 5 lost; what "
                                 "is missing may look like a change.\n"));
    CHECK(!strstr(printed(&made), "This window"));
    CHECK(page_has(&made, "The time before is not complete: 1,000 samples, 5 lost; what is missing "
                          "may look like a change."));
    made.context.no_legend = true;
    CHECK(!strstr(printed(&made), "lost"));
    made.context.json = JSON_SHORT;
    CHECK(strstr(printed(&made), "\"before\":{\"title\":\"host\",\"samples\":1000,\"period\":0,"
                                 "\"lost\":5,\"folded\":0,\"foldedLabels\":0,"));
}

TEST(folded_stacks_are_remarked_for_their_side) {
    _cleanup_(made_done) Made made;

    make_list(&made);
    made.views[CHANGE_NOW].profile->folded = 30;
    made.views[CHANGE_NOW].profile->folded_labels = 4;
    CHECK(strstr(printed(&made),
                 "\nThis window: 1,000 samples, 30 with rare stacks folded into [other], 4 of rare "
                 "groups folded without their values.\n"));
    made.context.json = JSON_SHORT;
    CHECK(strstr(printed(&made), "\"folded\":30,\"foldedLabels\":4,"));
}

TEST(gaps_of_a_baseline_are_remarked) {
    const PdGap gap = {.from_ns = (BEGIN - 200) * NS,
                       .to_ns = (BEGIN - 140) * NS,
                       .cpu = PD_ALL_CPUS,
                       .reason = PD_GAP_STOPPED};
    _cleanup_(made_done) Made made;
    View *before;

    make_list(&made);
    before = &made.views[CHANGE_BEFORE];
    before->coverage_known = before->is_partial = true;
    before->coverage = (PdCoverage){.from_ns = (BEGIN - 300) * NS, .to_ns = BEGIN * NS};
    CHECK_OK(pd_coverage_add_gap(&before->coverage, &gap));
    CHECK(strstr(printed(&made),
                 "\nThe time before is not complete: 1,000 samples, 4 min of 5 min, not recorded "
                 "2001-09-09 01:56:40 to 01:57:40 (stopped); what is missing may look like a "
                 "change.\n"));
    made.context.json = JSON_SHORT;
    CHECK(strstr(printed(&made), "\"complete\":false,\"gaps\":[{\"sinceUsec\":1000000600000000,"));
}

TEST(a_side_without_samples_is_not_compared_and_has_no_remark) {
    _cleanup_(made_done) Made made;

    make_list(&made);
    made.list.events[CHANGE_BEFORE] = PROFILE_NONE;
    made.views[CHANGE_BEFORE].is_partial = true;
    CHECK(!strstr(printed(&made), "complete"));
    made.context.json = JSON_SHORT;
    CHECK(strstr(printed(&made), "\"before\":{\"title\":\"host\",\"samples\":0,"));
    CHECK(strstr(printed(&made), "\"complete\":false,"));
}

TEST(a_damaged_baseline_is_remarked) {
    _cleanup_(made_done) Made made;

    make_list(&made);
    made.views[CHANGE_BEFORE].is_partial = true;
    CHECK(strstr(printed(&made), "\nThe time before is not complete: 1,000 samples, and a part "
                                 "could not be read; what is missing may look like a change.\n"));
}

TEST_MAIN()
