/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "binary/code-map-list.h"

#include <errno.h>
#include <fcntl.h>

#include "test.h"
#include "util/clock.h"

/* When the file of a process that generates code is read, and read again. */

static CodeMapList list;

static CodeMap *begin(void) {
    code_map_list_init(&list);
    return code_map_list_add(&list, 77);
}

static CodeMapAnswer opened(uint64_t size) {
    return (CodeMapAnswer){.pid = 77,
                           .source = open("/dev/null", O_RDONLY | O_CLOEXEC),
                           .fd = -1,
                           .size = size,
                           .mtime_ns = 1};
}

static CodeMap *due(uint64_t now_ns) {
    size_t at = 0;

    return code_map_list_due(&list, now_ns, &at);
}

TEST(a_file_that_could_not_be_read_is_read_again_each_time_later) {
    CodeMap *map = begin();
    CodeMapAnswer answer = opened(0);
    uint64_t now_ns = 0;

    answer.result = -ECANCELED;
    answer.is_unread = true;
    CHECK(!code_map_list_answer(map, &answer, now_ns));
    CHECK(map->known.source >= 0);
    CHECK(due(now_ns + 5 * NS_PER_SECOND) == map);
    now_ns += 5 * NS_PER_SECOND;
    CHECK(!code_map_list_answer(map, &answer, now_ns));
    CHECK(!due(now_ns + 9 * NS_PER_SECOND));
    now_ns += 10 * NS_PER_SECOND;
    CHECK(due(now_ns) == map);
    answer.result = 0;
    answer.is_unread = false;
    CHECK(!code_map_list_answer(map, &answer, now_ns));
    CHECK(due(now_ns + 5 * NS_PER_SECOND) == map);
    code_map_list_done(&list);
}

TEST(the_last_update_of_a_process_that_has_ended_is_tried_some_times) {
    CodeMap *map = begin();
    CodeMapAnswer answer = opened(10);
    unsigned n = 0;

    CHECK(!code_map_list_answer(map, &answer, 0));
    CHECK(!code_map_list_is_over(map));
    answer.has_ended = answer.is_unread = true;
    answer.result = -EAGAIN;
    do
        CHECK(!code_map_list_answer(map, &answer, 0));
    while (!code_map_list_is_over(map) && ++n < 100);
    CHECK(n >= 2 && n < 10);
    code_map_list_done(&list);
}

TEST(the_file_of_a_process_that_has_ended_is_over_when_it_was_read) {
    CodeMap *map = begin();
    CodeMapAnswer answer = opened(10);

    CHECK(!code_map_list_answer(map, &answer, 0));
    answer.has_ended = true;
    CHECK(!code_map_list_answer(map, &answer, 0));
    CHECK(code_map_list_is_over(map));
    code_map_list_done(&list);
}

TEST_MAIN()
