/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "profile/row/profile-tree.h"

#include "test.h"

/* Rows and trees of a small profile that is made here. */

static Bytes text(const char *s) {
    return (Bytes){.data = (const uint8_t *)s, .size = strlen(s)};
}

typedef struct Made {
    Profile *profile;
    FrameNames *names;
} Made;

static void made_done(Made *made) {
    profile_free(made->profile);
    frame_names_free(made->names);
}

static uint32_t add_text(TextSet *set, const char *s) {
    uint32_t number;

    if (text_set_add(set, text(s), &number) < 0)
        abort();
    return number;
}

/* A function is one letter, its file is "lib" for small letters and "app" for large ones. The
 * function "i" is inlined into "I". */
static uint32_t add_frame(Made *made, char name) {
    FrameMapping mapping = {.kind = FRAME_USER, .dso = text(name >= 'a' ? "lib" : "app")};
    Frame frame = {.address = (uint64_t)name};
    FrameLine lines[2] = {};
    uint32_t number, n = 0;

    mapping.path = mapping.dso;
    if (frame_table_add_mapping(made->profile->frames, &mapping, &frame.mapping) < 0 ||
        frame_table_add(made->profile->frames, &frame, &number) < 0)
        abort();
    if (number < made->names->n_names)
        return number;
    if (name == 'I')
        lines[n++].function = add_text(made->names->texts, "i");
    lines[n++].function = add_text(made->names->texts, (char[]){name, '\0'});
    if (frame_names_add(made->names, FRAME_NAMED, frame.address, lines, n) < 0)
        abort();
    return number;
}

/* "ABC": A called B, which called C. */
static void add_cell(Made *made, uint32_t label, const char *stack, uint64_t samples) {
    Profile *p = made->profile;
    uint32_t node = STACK_ROOT;

    for (; *stack; stack++)
        if (stack_tree_add(p->stacks, node, add_frame(made, *stack), &node) < 0)
            abort();
    p->cells[p->n_cells++] =
        (ProfileCell){.label = label, .stack = node, .samples = samples, .period = 10 * samples};
}

static void add_label(Profile *p, const char *comm, uint32_t cpu, uint32_t event) {
    ProfileLabel *label = &p->labels[p->n_labels++];

    memset(label, 0xff, sizeof(*label));
    label->values[PROFILE_COMM] = add_text(p->texts, comm);
    label->values[PROFILE_CPU] = cpu;
    label->values[PROFILE_EVENT] = event;
}

static Made make(void) {
    Made made = {.profile = calloc(1, sizeof(Profile))};
    Profile *p = made.profile;

    if (!p || frame_names_new(&made.names) < 0 || frame_table_new(&p->frames) < 0 ||
        stack_tree_new(0xffff, &p->stacks) < 0 || text_set_new(&p->texts) < 0)
        abort();
    p->labels = calloc(3, sizeof(*p->labels));
    p->cells = calloc(8, sizeof(*p->cells));
    p->events = calloc(2, sizeof(*p->events));
    p->n_events = 2;
    if (!p->labels || !p->cells || !p->events)
        abort();
    p->events[0].name = add_text(p->texts, "cycles");
    p->events[1].name = add_text(p->texts, "faults");
    add_label(p, "shop", 0, 0);
    add_label(p, "shop", 1, 0);
    add_label(p, "tool", 0, 1);
    add_cell(&made, 0, "Mab", 3);
    add_cell(&made, 1, "Mb", 2);
    add_cell(&made, 0, "Maaa", 5);
    add_cell(&made, 2, "MI", 7);
    add_cell(&made, 0, "", 1);
    return made;
}

static RowTable *rows_of(const Made *made, RowKeys keys, uint32_t event) {
    RowTable *table;

    if (row_table_new(made->profile, made->names, &keys, event, &table) < 0)
        abort();
    return table;
}

/* "comm/symbol: samples of total", a line for each row. */
static const char *shown(const RowTable *table, Buffer *out) {
    char counts[64];

    buffer_clear(out);
    for (size_t i = 0; i < table->n; i++) {
        const ProfileRow *row = &table->rows[table->order ? table->order[i] : i];

        for (size_t k = 0; k < table->keys.n; k++) {
            buffer_append(out, "/", k > 0);
            row_table_put(table, row, table->keys.items[k], out);
        }
        snprintf(counts, sizeof(counts), ": %" PRIu64 " of %" PRIu64 "\n", row->samples,
                 row->total_samples);
        buffer_append(out, counts, strlen(counts));
    }
    buffer_zero(out, 1);
    return (const char *)out->data;
}

TEST(samples_count_once_in_each_row_of_their_stack) {
    _cleanup_(made_done) Made made = make();
    _cleanup_(row_table_freep) RowTable *table =
        rows_of(&made, (RowKeys){{ROW_SYMBOL}, 1}, PROFILE_NONE);
    _cleanup_(buffer_done) Buffer out = {};

    CHECK_EQ(row_table_sort(table, ROW_BY_TOTAL, false), 0);
    CHECK_STREQ(shown(table, &out), "M: 0 of 17\na: 5 of 8\ni: 7 of 7\nI: 0 of 7\nb: 5 of 5\n"
                                    "[unknown]: 1 of 1\n");
    CHECK_EQ(table->samples, 18);
    CHECK_EQ(table->period, 180);
}

TEST(rows_of_one_event_leave_out_the_others) {
    _cleanup_(made_done) Made made = make();
    _cleanup_(row_table_freep) RowTable *table =
        rows_of(&made, (RowKeys){{PROFILE_COMM, PROFILE_CPU}, 2}, 0);
    _cleanup_(buffer_done) Buffer out = {};

    CHECK_EQ(row_table_sort(table, ROW_BY_SELF, true), 0);
    CHECK_STREQ(shown(table, &out), "shop/0: 9 of 9\nshop/1: 2 of 2\n");
}

TEST(labels_that_the_keys_do_not_tell_apart_are_one_row) {
    _cleanup_(made_done) Made made = make();
    _cleanup_(row_table_freep) RowTable *table =
        rows_of(&made, (RowKeys){{PROFILE_COMM, ROW_DSO}, 2}, 0);
    _cleanup_(buffer_done) Buffer out = {};

    CHECK_EQ(row_table_sort(table, ROW_BY_NAME, false), 0);
    CHECK_STREQ(shown(table, &out), "shop/[unknown]: 1 of 1\nshop/app: 0 of 10\n"
                                    "shop/lib: 10 of 10\n");
}

/* "a 8 (b 3) (a 5)" */
static void put_tree(const Made *made, const ProfileTree *tree, uint32_t node, Buffer *out) {
    char count[32];

    for (node = tree->nodes[node].child; node != UINT32_MAX; node = tree->nodes[node].next) {
        Bytes name = text_set_get(made->names->texts, tree->nodes[node].function);

        snprintf(count, sizeof(count), " %" PRIu64, tree->nodes[node].samples);
        buffer_append(out, " (", 2);
        buffer_append(out, name.data, name.size);
        buffer_append(out, count, strlen(count));
        put_tree(made, tree, node, out);
        buffer_append(out, ")", 1);
    }
}

static const char *tree_of(const Made *made, const RowTable *table, const char *symbol,
                           TreeDirection direction, Buffer *out) {
    _cleanup_(profile_tree_freep) ProfileTree *tree = NULL;
    _cleanup_free_ uint8_t *chosen = calloc(table->n, 1);
    uint32_t root = 0;

    for (uint32_t i = 0; i < table->n; i++) {
        buffer_clear(out);
        row_table_put(table, &table->rows[i], ROW_SYMBOL, out);
        chosen[i] = bytes_equal_str(buffer_bytes(out), symbol);
        root = chosen[i] ? i : root;
    }
    if (profile_tree_new(table, direction, chosen, &tree) < 0 ||
        profile_tree_sort(tree, made->names, false) < 0)
        abort();
    buffer_clear(out);
    for (uint32_t i = 0; i < table->n; i++)
        if ((tree->roots[i] != UINT32_MAX) != (i == root))
            abort();
    put_tree(made, tree, tree->roots[root], out);
    buffer_zero(out, 1);
    return (const char *)out->data;
}

TEST(callers_begin_at_the_function_that_ran) {
    _cleanup_(made_done) Made made = make();
    _cleanup_(row_table_freep) RowTable *table =
        rows_of(&made, (RowKeys){{ROW_SYMBOL}, 1}, PROFILE_NONE);
    _cleanup_(buffer_done) Buffer out = {};

    CHECK_STREQ(tree_of(&made, table, "b", TREE_CALLERS, &out), " (a 3 (M 3)) (M 2)");
    CHECK_STREQ(tree_of(&made, table, "i", TREE_CALLERS, &out), " (I 7 (M 7))");
}

TEST(callees_begin_at_the_outermost_call) {
    _cleanup_(made_done) Made made = make();
    _cleanup_(row_table_freep) RowTable *table =
        rows_of(&made, (RowKeys){{ROW_SYMBOL}, 1}, PROFILE_NONE);
    _cleanup_(buffer_done) Buffer out = {};

    CHECK_STREQ(tree_of(&made, table, "a", TREE_CALLEES, &out), " (a 5 (a 5)) (b 3)");
    CHECK_STREQ(tree_of(&made, table, "M", TREE_CALLEES, &out),
                " (a 8 (a 5 (a 5)) (b 3)) (I 7 (i 7)) (b 2)");
}

TEST(each_key_has_a_name) {
    for (unsigned key = 0; key < ROW_KEYS; key++)
        CHECK_EQ(row_key_by_name(row_key_name(key)), key);
    CHECK_EQ(row_key_by_name("commander"), ROW_KEYS);
}

TEST_MAIN()
