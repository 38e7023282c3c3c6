/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "profile/frame-table.h"
#include "profile/stack-tree.h"

#include <errno.h>

#include "test.h"

/* Mappings, frames and stacks get one number each, however often they come. */

static Bytes text(const char *s) {
    return (Bytes){.data = (const uint8_t *)s, .size = strlen(s)};
}

static uint32_t mapping_number(FrameTable *table, const FrameMapping *mapping) {
    uint32_t number;

    if (frame_table_add_mapping(table, mapping, &number) < 0)
        abort();
    return number;
}

static FrameTable *make_table(void) {
    FrameTable *table;

    if (frame_table_new(&table) < 0)
        abort();
    return table;
}

TEST(a_file_is_known_by_its_build_id) {
    _cleanup_(frame_table_freep) FrameTable *table = make_table();
    FrameMapping a = {.kind = FRAME_USER,
                      .path = text("/usr/bin/shop"),
                      .dso = text("shop"),
                      .build_id_size = 20,
                      .build_id = {1, 2, 3},
                      .inode = 7};
    FrameMapping b = a;
    uint32_t first = mapping_number(table, &a);

    b.path = text("/payload/usr/bin/shop");
    b.inode = 8;
    CHECK_EQ(mapping_number(table, &b), first);
    b.build_id[19] = 1;
    CHECK(mapping_number(table, &b) != first);
    CHECK_EQ(frame_table_n_mappings(table), 2);
    CHECK_EQ(frame_table_mapping(table, first)->path.size, strlen("/usr/bin/shop"));
    CHECK_STREQ((const char *)frame_table_mapping(table, first)->dso.data, "shop");
}

TEST(copies_of_a_file_under_other_names_count_separately) {
    _cleanup_(frame_table_freep) FrameTable *table = make_table();
    FrameMapping shop = {
        .kind = FRAME_USER, .dso = text("shop"), .build_id_size = 20, .build_id = {1}};
    FrameMapping tool = shop;

    tool.dso = text("tool");
    CHECK(mapping_number(table, &shop) != mapping_number(table, &tool));
}

TEST(a_file_without_a_build_id_is_known_by_its_inode_and_path) {
    _cleanup_(frame_table_freep) FrameTable *table = make_table();
    FrameMapping a = {.kind = FRAME_USER,
                      .path = text("/srv/tool"),
                      .dso = text("tool"),
                      .major = 8,
                      .minor = 1,
                      .inode = 7,
                      .generation = 3};
    FrameMapping b = a;
    uint32_t first = mapping_number(table, &a);

    CHECK_EQ(mapping_number(table, &b), first);
    b.generation = 4;
    CHECK(mapping_number(table, &b) != first);
    b = a;
    b.path = text("/srv/tool2");
    CHECK(mapping_number(table, &b) != first);
    b = a;
    b.path = (Bytes){};
    CHECK(mapping_number(table, &b) != first);
    CHECK_EQ(frame_table_n_mappings(table), 4);
}

TEST(generated_code_is_that_of_one_process) {
    _cleanup_(frame_table_freep) FrameTable *table = make_table();
    FrameMapping a = {.kind = FRAME_JIT, .path = text("//anon"), .dso = text("//anon"), .pid = 1};
    FrameMapping b = a;

    b.pid = 2;
    CHECK(mapping_number(table, &a) != mapping_number(table, &b));
}

TEST(equal_frames_have_one_number) {
    _cleanup_(frame_table_freep) FrameTable *table = make_table();
    FrameMapping mapping = {.kind = FRAME_KERNEL, .dso = text("[kernel.kallsyms]")};
    Frame frame = {.mapping = mapping_number(table, &mapping), .address = 0xffffffff81000000};
    uint32_t first, second, third;

    CHECK_OK(frame_table_add(table, &frame, &first));
    CHECK_OK(frame_table_add(table, &frame, &second));
    CHECK_EQ(first, second);
    frame.is_return = true;
    CHECK_OK(frame_table_add(table, &frame, &third));
    CHECK(third != first);
    CHECK_EQ(frame_table_n_frames(table), 2);
    CHECK_EQ(frame_table_frame(table, first)->address, 0xffffffff81000000);
    CHECK(frame_table_frame(table, third)->is_return);
}

TEST(stacks_share_their_callers) {
    _cleanup_(stack_tree_freep) StackTree *tree = NULL;
    uint32_t top, a, b, again;

    CHECK_OK(stack_tree_new(100, &tree));
    CHECK_OK(stack_tree_add(tree, STACK_ROOT, 5, &top));
    CHECK_OK(stack_tree_add(tree, top, 6, &a));
    CHECK_OK(stack_tree_add(tree, top, 7, &b));
    CHECK_OK(stack_tree_add(tree, top, 6, &again));
    CHECK_EQ(a, again);
    CHECK(a != b);
    CHECK_EQ(stack_tree_n_nodes(tree), 4);
    CHECK_EQ(stack_tree_node(tree, b)->parent, top);
    CHECK_EQ(stack_tree_node(tree, b)->frame, 7);
    CHECK_EQ(stack_tree_node(tree, b)->depth, 2);
    CHECK_EQ(stack_tree_node(tree, STACK_ROOT)->depth, 0);
}

TEST(a_full_tree_refuses_new_stacks_and_keeps_the_old_ones) {
    _cleanup_(stack_tree_freep) StackTree *tree = NULL;
    uint32_t node = STACK_ROOT, last = UINT32_MAX;

    CHECK_OK(stack_tree_new(1000, &tree));
    for (uint32_t i = 0; i < 999; i++)
        CHECK_OK(stack_tree_add(tree, node, i, &node));
    CHECK_EQ(stack_tree_add(tree, node, 999, &last), -ENOSPC);
    CHECK_EQ(last, UINT32_MAX);
    CHECK_OK(stack_tree_add(tree, STACK_ROOT, 0, &last));
    CHECK_EQ(last, 1);
    CHECK_EQ(stack_tree_node(tree, node)->depth, 999);
}

TEST_MAIN()
